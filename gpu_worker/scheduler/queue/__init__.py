"""Who is next, whatever there is room for: requests in line, in the tree of projects, and who has waited too long."""
