"""The Tab key behind %%gpu and %gpu: their options and commands, and nothing else."""

from IPython.core.completer import (
    CompletionContext,
    IPCompleter,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.interactiveshell import InteractiveShell

from bulletin_magic.commands.options import BACKGROUND, FLAGS, RESOURCE_OPTIONS, RUN_OPTIONS
from bulletin_magic.commands.verbs import COMMANDS

_MAGICS_WITH_OPTIONS = {"%%gpu", "%%GPU", "%%remote"}


@context_matcher(identifier="bulletin")  # type: ignore[untyped-decorator]  # IPython does not say
def match(context: CompletionContext) -> SimpleMatcherResult:
    """Return the words that may stand where the cursor is; none on other lines.

    A matcher and not a hook: to what a hook finds, IPython adds the names that Python would have there.
    """
    kind, words = _words(context)
    found = [SimpleCompletion(word, type=kind) for word in words if word.startswith(context.token)]
    return {"completions": found, "suppress": bool(found), "ordered": True}


def _words(context: CompletionContext) -> tuple[str, list[str]]:
    """Return what the list of a front end calls the words, and the words."""
    before = context.text_until_cursor[: len(context.text_until_cursor) - len(context.token)].split()
    if context.cursor_line == 0 and before and before[0] in _MAGICS_WITH_OPTIONS:
        return "option", [*RESOURCE_OPTIONS, *RUN_OPTIONS, *FLAGS, BACKGROUND]
    if before == ["%gpu"]:
        return "command", [command.partition(" ")[0] for command in COMMANDS]
    return "", []


def install(shell: InteractiveShell) -> None:
    """Let the shell's Tab key ask us."""
    completer = shell.Completer
    if isinstance(completer, IPCompleter) and match not in completer.custom_matchers:
        completer.custom_matchers.append(match)


def uninstall(shell: InteractiveShell) -> None:
    """Let the shell's Tab key ask us no more."""
    completer = shell.Completer
    if isinstance(completer, IPCompleter) and match in completer.custom_matchers:
        completer.custom_matchers.remove(match)
