"""What a page says to type is understood: each `bulletin` command, and each line of `%%gpu`."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.errors import BadConfig
from bulletin_magic.commands.options import parse
from gpu_worker.cli import COMMANDS
from gpu_worker.console.base_command import Command
from gpu_worker.unknown_settings import require_typed

HERE = Path(__file__).parents[2]
PAGES = sorted([HERE / "README.md", *(HERE / "docs").rglob("*.md")])
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL)
#: Between two commands of a line, and where the output of one goes.
BETWEEN = {"&&", "|", ";", ">", "<", "&"}


def fenced(language: str) -> Iterator[tuple[str, str]]:
    """The lines of all blocks of a language, each with the name of its page."""
    for page in PAGES:
        for block in FENCE.finditer(page.read_text()):
            if block["language"] == language:
                for line in block["text"].replace("\\\n", " ").splitlines():
                    yield str(page.relative_to(HERE)), line.strip()


def commands(line: str) -> Iterator[list[str]]:
    """The words behind each `bulletin` of a line of a shell."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, "#"
    one: list[str] = []
    for word in [*words, ";"]:
        if word not in BETWEEN:
            one.append(word)
            continue
        plain = one[3:] if one[:2] == ["sudo", "-u"] else one
        if plain and (plain[0] == "bulletin" or plain[0].endswith("/bin/bulletin")):
            yield plain[1:]
        one = []


TYPED = [(page, words) for page, line in fenced("sh") for words in commands(line)]
CELLS = [(page, line[len("%%gpu") :]) for page, line in fenced("python") if re.match(r"%%gpu( |$)", line)]


@pytest.mark.parametrize(("page", "words"), TYPED, ids=[f"{page}: {' '.join(words)}" for page, words in TYPED])
def test_a_command_is_one_and_has_these_options(page: str, words: list[str]) -> None:
    assert words, f"{page}: a command without a word"
    assert words[0] in COMMANDS, f"{page}: there is no command {words[0]}"
    if "--help-all" in words:
        return
    command: Command = COMMANDS[words[0]]()
    command.parse_command_line([re.sub(r"[<>]", "", word) for word in words[1:]])
    require_typed(command.cli_config, [type(command), *command.classes], command.aliases)


def test_an_option_that_is_none_is_noticed() -> None:
    with pytest.raises(BadConfig, match="no option --nonsense"):
        COMMANDS["status"]().initialize(["--nonsense=1"])


@pytest.mark.parametrize(("page", "line"), CELLS, ids=[f"{page}: {line}" for page, line in CELLS])
def test_the_options_of_a_cell_are_options(page: str, line: str) -> None:
    parse(line.partition("#")[0])


def test_the_pages_have_many() -> None:
    assert (len(TYPED) > 30, len(CELLS) > 3) == (True, True)
