"""`bulletin init`: the files of a hub and its pool, written for what there is, to start as they are."""
