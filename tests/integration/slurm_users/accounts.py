"""The Unix users of a cluster."""

from tests.other_users import free_uid

UIDS = {"ann": free_uid(61_000), "bob": free_uid(62_000)}
