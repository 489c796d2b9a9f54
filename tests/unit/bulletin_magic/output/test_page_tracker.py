"""Which pages miss what: by when they came, what they asked for, and when cells showed something."""

from bulletin_magic.output.cell_outputs import CellOutputs
from bulletin_magic.output.missed_output import describe_missed
from bulletin_magic.output.page_tracker import PageTracker

#: The clock of the browser, when that of the kernel is at 0.
BROWSER_MS = 1_800_000_000_000
MINUTE = 60_000


class Notebook:
    """One cell of 10 minutes that printed each minute, asked for by the page "first"."""

    def __init__(self, *, lasts: int = 10 * MINUTE) -> None:
        self.pages, self.lasts = PageTracker(), lasts
        self.cell = CellOutputs(3, "train()", "first", began_ms=1_000)
        self.asks("first", sent=900, begins=1_000)

    def asks(self, page: str, sent: int, begins: int) -> None:
        self.pages.note_request(page, BROWSER_MS + sent, begins, [self.cell])

    def prints(self, at: int) -> None:
        self.cell.add("stream", {"name": "stdout", "text": "epoch\n"}, 6, at)

    def runs(self) -> None:
        for at in range(1_000, 1_000 + self.lasts, MINUTE):
            self.prints(at)
        self.prints(1_000 + self.lasts)
        self.cell.ended_ms = 1_000 + self.lasts

    def told(self, page: str) -> str:
        certain, possible = self.pages.pop_missed(page, [self.cell])
        return "certain" if certain else "possible" if possible else ""


def test_a_page_that_came_while_the_cell_ran_is_told_once() -> None:
    notebook = Notebook()
    notebook.pages.note_arrival("second", 5 * MINUTE)
    notebook.runs()
    notebook.asks("second", 6 * MINUTE, 11 * MINUTE)
    assert [notebook.told("second"), notebook.told("second")] == ["certain", ""]
    assert notebook.pages.is_settled(notebook.cell)


def test_a_page_whose_first_telling_line_had_to_wait_is_told_when_its_clock_is_known() -> None:
    notebook = Notebook()
    notebook.runs()
    fast_ms = 3_600_000  # the clock of its browser
    notebook.pages.note_arrival("second", 11 * MINUTE, BROWSER_MS + 5 * MINUTE + fast_ms)
    notebook.asks("second", 12 * MINUTE + fast_ms, 12 * MINUTE)
    assert notebook.told("second") == "certain"


def test_a_page_whose_first_telling_line_are_heard_right_after_a_cell_has_waited_for_it() -> None:
    notebook = Notebook(lasts=1_000)
    notebook.runs()
    notebook.pages.note_arrival("second", 2_020, BROWSER_MS + 1_990)
    notebook.asks("second", 3_000, 3_050)
    assert notebook.told("second") == "certain"


def test_a_page_that_was_heard_as_it_came_is_told_however_late_the_kernel_is_at_its_words() -> None:
    notebook = Notebook(lasts=1_000)
    notebook.pages.note_arrival("second", 1_990)
    notebook.runs()
    notebook.pages.note_arrival("second", 9_000, BROWSER_MS + 1_980)
    notebook.asks("second", 1_985, 9_010)
    assert notebook.told("second") == "certain"


def test_words_of_its_server_are_not_measured_by_its_clock() -> None:
    notebook = Notebook()
    notebook.runs()
    server_ms = BROWSER_MS - 3_600_000
    notebook.pages.note_arrival("second", 12 * MINUTE, server_ms + 12 * MINUTE)
    notebook.pages.note_arrival("second", 12 * MINUTE + 5)
    notebook.asks("second", 12 * MINUTE, 12 * MINUTE + 10)
    assert notebook.told("second") == "possible"


def test_a_page_that_came_later_is_told_that_it_may_be_so() -> None:
    notebook = Notebook()
    notebook.runs()
    notebook.asks("second", 12 * MINUTE, 12 * MINUTE)
    assert [notebook.told("second"), notebook.told("second")] == ["possible", ""]


def test_a_page_that_is_reloaded_after_more_was_done_is_told_nothing() -> None:
    notebook = Notebook()
    notebook.runs()
    notebook.asks("first", 12 * MINUTE, 12 * MINUTE)
    assert notebook.pages.is_settled(notebook.cell)
    notebook.asks("second", 13 * MINUTE, 13 * MINUTE)
    assert notebook.told("second") == ""


def test_cells_that_waited_behind_it_do_not_show_that_the_page_was_there() -> None:
    notebook = Notebook()
    notebook.runs()
    notebook.asks("first", 910, 1_000 + 10 * MINUTE)
    assert not notebook.pages.is_settled(notebook.cell)
    notebook.asks("second", 13 * MINUTE, 13 * MINUTE)
    assert notebook.told("second") == "possible"


def test_a_page_that_was_there_all_along_is_told_nothing() -> None:
    notebook = Notebook()
    notebook.pages.note_arrival("console", 500)
    notebook.runs()
    notebook.asks("console", 12 * MINUTE, 12 * MINUTE)
    assert notebook.told("console") == ""


def test_a_short_cell_is_told_of_only_where_it_is_certain() -> None:
    notebook = Notebook(lasts=1_000)
    notebook.runs()
    notebook.asks("second", 12 * MINUTE, 12 * MINUTE)
    assert notebook.told("second") == ""
    again = Notebook(lasts=1_000)
    again.pages.note_arrival("second", 1_500)
    again.runs()
    assert not again.pages.is_settled(again.cell)
    again.asks("second", 12 * MINUTE, 12 * MINUTE)
    assert again.told("second") == "certain"


def test_a_thread_that_prints_on_is_missed_by_the_next_page() -> None:
    notebook = Notebook()
    notebook.runs()
    notebook.asks("first", 12 * MINUTE, 12 * MINUTE)
    notebook.pages.note_arrival("second", 13 * MINUTE)
    notebook.prints(14 * MINUTE)
    notebook.asks("second", 15 * MINUTE, 15 * MINUTE)
    assert notebook.told("second") == "certain"


def test_the_line_reads_well() -> None:
    cells = [CellOutputs(number, "", "", 0) for number in (3, 4, 5)]
    assert describe_missed(cells[:1], "went on") == (
        "Cell [3] went on while this page was closed: `%gpu attach 3` shows all that it showed."
    )
    assert describe_missed(cells, "may have gone on") == (
        "Cells [3], [4] and [5] may have gone on while this page was closed: `%gpu attach 3` shows all that [3] showed."
    )
