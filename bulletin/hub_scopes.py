"""The scopes of JupyterHub that say what a user may do with the pool.

The hub's side gives them to users and groups (`bulletin_spawner.setup`); the broker and the pool's page ask for them.
"""

from collections.abc import Collection

#: What the hub calls the pool's service.
SERVICE = "bulletin"
#: Who may send cells to the pool and see its page.
ACCESS_SCOPE = f"access:services!service={SERVICE}"
#: Who sees everybody's names, and may do to others' cells and to nodes what an admin of the hub may.
MANAGE_SCOPE = "custom:bulletin:manage"
#: Who sees all of a project and of what is in it, and may cancel, hold and put first there. With `!group=NAME` it is of
#: that project alone, without a filter of all those that their user is in.
LEAD_SCOPE = "custom:bulletin:lead"
_OF_GROUP = f"{LEAD_SCOPE}!group="
#: Who may act for the projects that the quota file names them in as leads; of others it allows nothing. No server's
#: token has it: what runs in a lead's notebook is not always the lead's own code.
NAMED_LEAD_SCOPE = "custom:bulletin:named-lead"
#: JupyterHub's own, by which programs read what a hub counts; with ACCESS_SCOPE, also what the pool does.
METRICS_SCOPE = "read:metrics"
#: What the hub gives to its admins, and puts into the tokens that they ask it for and into no server's. By itself it
#: opens the hub's admin page and allows nothing there.
ADMIN_PAGE_SCOPE = "admin-ui"
#: By which the pool's service sees whether the hub has a user, and who is an admin.
READ_USERS_SCOPE = "read:users:name"
#: By which it sees the properties of groups, where rules of the quota file ask for them.
READ_GROUPS_SCOPE = "read:groups"


def may_read_metrics(scopes: Collection[str], *, is_hub_admin: bool) -> bool:
    """Whether a token may read what is counted of all projects."""
    return METRICS_SCOPE in scopes or may_manage(scopes, is_hub_admin=is_hub_admin)


def led_projects(scopes: Collection[str], groups: Collection[str]) -> tuple[str, ...]:
    """List the projects that a token's user leads, by its scopes; each with all that is in it."""
    named = {scope.removeprefix(_OF_GROUP) for scope in scopes if scope.startswith(_OF_GROUP)}
    return tuple(sorted(named | (set(groups) if LEAD_SCOPE in scopes else set())))


def may_be_named_lead(scopes: Collection[str]) -> bool:
    """Whether a token may act for projects that name its user as their lead in the quota file."""
    return NAMED_LEAD_SCOPE in scopes


def may_manage(scopes: Collection[str], *, is_hub_admin: bool) -> bool:
    """Whether a token may manage the pool: by its scopes. That its user is an admin of the hub is not enough."""
    return MANAGE_SCOPE in scopes or (is_hub_admin and ADMIN_PAGE_SCOPE in scopes)
