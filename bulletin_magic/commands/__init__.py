"""What people type: `%%gpu` and its options, `%gpu` and its verbs, `%gpu on`, `%debug`, and the object `gpu`.

`magics` registers them; `gpu_cell` does what `%%gpu` says, by its `options`, and `gpu_line` what `%gpu` and a verb
say. Each verb's sentences are a file of their own (`attach`, `panel`, `plan_report`, `pull`, `push_and_reset`,
`vars_report`).
"""
