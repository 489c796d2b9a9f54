"""What `make.py` does, by what it is about. Needs nothing but Python: it installs all else."""
