"""The ways in which a cell runs: in front, in the background, many at once, as a block, or in the notebook after all.

`foreground`, `background` (on a `background_runner`), `sweeps`, `blocks` and `fallback` each run cells through a
`conversation` with the pool; `outcome` and `shared_state` land what comes back. Knows no option and no command.
"""
