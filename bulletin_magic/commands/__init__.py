"""What people type: `%%gpu` and its options, `%gpu` and its verbs, `%gpu on`, `%debug`, and the object `gpu`.

`magics` registers them and `options` reads them; each verb's sentences are a file of their own (`attach`, `panel`,
`plan_report`, `pull`, `push_and_reset`, `vars_report`). Every one of them ends in a way of `running`.
"""
