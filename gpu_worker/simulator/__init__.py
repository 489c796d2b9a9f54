"""The real scheduler under a virtual clock: a trace in, a report out."""
