"""The command line towards a pool that runs: who waits and why, stop this, empty that node."""
