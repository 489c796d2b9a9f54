"""Whole notebooks, as people write them: with %%gpu on every cell they come to the same."""
