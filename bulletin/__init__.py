"""What every side of Bulletin agrees on: words, units, errors, the wire, and the state of a notebook."""

__version__ = "0.1.0"
