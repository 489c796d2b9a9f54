"""The type matrix: kinds of values, what a %%gpu cell may do with them, and a page that says so."""
