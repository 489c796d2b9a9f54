"""The ways in which a cell runs: in front, in the background, many at once, as a block, or in the notebook after all.

`foreground` runs cells in a `conversation` with the pool, which `pool_client` finds; `background` and `sweeps` run
them on a `background_runner`; `fallback` runs them in the notebook. `blocks` turns `with gpu:` into a function that a
cell calls. `outcome` and `shared_state` bring home what comes back. Knows no option and no command.
"""
