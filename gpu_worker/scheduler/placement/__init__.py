"""Where the next request fits, what it may pass, and who gives back for it: questions only, answered on counts."""
