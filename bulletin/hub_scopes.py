"""The scopes of JupyterHub that say what a user may do with the pool.

The hub's side gives them to users and groups (`bulletin_spawner.setup`); the broker and the pool's page ask for them.
"""

#: What the hub calls the pool's service.
SERVICE = "bulletin"
#: Who may send cells to the pool and see its page.
ACCESS_SCOPE = f"access:services!service={SERVICE}"
#: Who sees everybody's names, and may do to others' cells and to nodes what an admin of the hub may.
MANAGE_SCOPE = "custom:bulletin:manage"
