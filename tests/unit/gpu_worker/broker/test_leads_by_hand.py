"""What leads may do at a command line, be it by a role of the hub or because the quota file names them."""

import pytest

from bulletin.ids import LeaseId, ProjectId, UserName
from bulletin.wire import console
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.scheduler.policy.projects import Project
from tests.unit.gpu_worker.broker.broker_parts import ANN, EVE, HOUR_MS, BrokerParts

PROJECTS = (
    Project(id=ProjectId("school"), guaranteed_milli=1000, leads=(UserName("lea"),)),
    Project(id=ProjectId("maths"), parent=ProjectId("school")),
    Project(id=ProjectId("guests")),
)
NAMED = Person(user=UserName("lea"), groups=("staff",), may_be_named_lead=True)
BY_ROLE = Person(user=UserName("ria"), groups=("staff",), leads=(ProjectId("school"),))
both = pytest.mark.parametrize("lead", [NAMED, BY_ROLE], ids=["named in the file", "by a role"])


@pytest.fixture
def broker(ledger: Ledger) -> BrokerParts:
    """Three of ann wait in maths, and one of eve elsewhere."""
    made = BrokerParts(ledger, PROJECTS)
    for user, cell in ((ANN, "cell-a"), (ANN, "cell-b"), (EVE, "cell-e")):
        made.submit(user, cell)
    return made


def line(broker: BrokerParts, lead: Person, **asked: object) -> list[tuple[str, str]]:
    report = broker.ask(lead, console.AskQueue(**asked))
    return [(row.user, row.project) for row in report.waiting]


@both
def test_a_lead_puts_a_request_of_theirs_first_and_no_other(broker: BrokerParts, lead: Person) -> None:
    _, last, others = (LeaseId(one.lease) for one in broker.shell.scheduler.state.pending.values())
    assert broker.ask(lead, console.PutFirst(id=last)).what == "put-first"
    assert "No request, lease or cell of yours" in broker.refusal(lead, console.PutFirst(id=others))


@both
def test_a_lead_boosts_who_is_in_their_project_and_reads_who_is(broker: BrokerParts, lead: Person) -> None:
    boost = console.Boost(user=UserName("ann"), project=ProjectId("maths"), for_ms=HOUR_MS)
    assert [row.user for row in broker.ask(lead, boost).boosts] == ["ann"]
    assert [row.user for row in broker.ask(lead, console.AskBoosts()).boosts] == ["ann"]
    said = broker.refusal(lead, console.Boost(user=UserName("eve"), project=ProjectId("guests"), for_ms=HOUR_MS))
    assert said.startswith("Only admins and leads of the project 'guests' see and change who is boosted")


@both
def test_a_lead_asks_for_the_line_of_one_user_and_of_a_project_and_sees_what_is_theirs_of_it(
    broker: BrokerParts, lead: Person
) -> None:
    assert line(broker, lead, user=UserName("ann")) == [("ann", "maths")] * 2
    assert line(broker, lead, user=UserName("eve")) == [], "not even that she waits"
    assert line(broker, lead, project=ProjectId("maths")) == [("ann", "maths")] * 2
    assert "see it from outside" in broker.refusal(lead, console.AskQueue(project=ProjectId("guests")))
    assert "Only admins" in broker.refusal(EVE, console.AskQueue(user=UserName("ann")))


@both
def test_a_lead_sees_how_the_projects_inside_stand(broker: BrokerParts, lead: Person) -> None:
    seen = [row.project for row in broker.ask(lead, console.AskProjects()).projects]
    assert (seen.count("school"), seen.count("maths"), seen.count("guests")) == (1, 1, 0)
