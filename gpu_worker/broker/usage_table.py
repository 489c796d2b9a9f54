"""Who used how much, as comma-separated values in one message: what `bulletin usage --csv` writes, within bounds."""

import io
from collections.abc import Mapping
from itertools import islice

from bulletin.ids import ProjectId
from bulletin.wire.page_requests import AskUsage, UsageTable
from gpu_worker.broker import export
from gpu_worker.broker.ledger import Ledger

#: So many rows fit a message, however long their names are: 256 letters, and numbers.
MOST_ROWS = 2_000


def write_table(ledger: Ledger, asked: AskUsage, parents: Mapping[ProjectId, ProjectId | None]) -> UsageTable:
    """Write the table; blocks while the ledger reads. What a project used counts for all that it is in, too."""
    sums = ledger.each_usage(
        asked.by, period=asked.period, since_ms=asked.since_ms, until_ms=asked.until_ms, parents=parents
    )
    rows = list(islice(export.usage_rows(sums), MOST_ROWS + 1))
    text = io.StringIO(newline="")
    export.write_csv(rows[:MOST_ROWS], export.USAGE_FIELDS, text)
    return UsageTable(csv=text.getvalue(), has_more=len(rows) > MOST_ROWS)
