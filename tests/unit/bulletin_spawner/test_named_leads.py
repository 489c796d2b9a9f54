"""Whom the quota file names as lead is one on the pages, by a login that may; nobody else becomes one by it."""

import msgspec

from bulletin.hub_scopes import ACCESS_SCOPE, NAMED_LEAD_SCOPE
from bulletin_spawner.service.viewer import Viewer, viewer_of, with_named
from tests.unit.bulletin_spawner.page_reports import ADA, ML, REPORT, VISION


def seen_by(name: str, *scopes: str) -> Viewer:
    """Somebody in no group, in a pool whose project `ml` names ada."""
    rows = tuple(msgspec.structs.replace(row, leads=(ADA,) if row.project == ML else ()) for row in REPORT.projects)
    model = {"name": name, "kind": "user", "scopes": [ACCESS_SCOPE, *scopes]}
    return with_named(viewer_of(model, ()), msgspec.structs.replace(REPORT, projects=rows))


def test_who_is_named_is_lead_of_that_project() -> None:
    assert {row.project for row in REPORT.projects} >= {ML, VISION}
    viewer = seen_by("ada", NAMED_LEAD_SCOPE)
    assert (viewer.led, viewer.role) == (("ml",), "lead")


def test_what_they_change_is_asked_with_no_word_of_it_so_that_who_is_named_no_more_changes_nothing() -> None:
    reader = seen_by("ada", NAMED_LEAD_SCOPE).reader
    assert (reader.leads, reader.may_be_named_lead) == ((), True)


def test_a_servers_token_and_other_people_are_none() -> None:
    assert (seen_by("ada").led, seen_by("ada").role) == ((), "user")
    assert seen_by("eve", NAMED_LEAD_SCOPE).led == ()
