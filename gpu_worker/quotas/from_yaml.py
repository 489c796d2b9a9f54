"""YAML as a tree with lines. Only nodes are read and nothing is constructed, so that no tag does anything."""

import re
from decimal import Decimal

import yaml

from gpu_worker.quotas.tree import (
    DEPTH,
    NotReadable,
    TreeEntry,
    TreeLeaf,
    TreeNode,
    TreeTable,
    UnsupportedValue,
    show_text,
)

_STANDARD = "tag:yaml.org,2002:"
_YES, _NO = ("yes", "true", "on"), ("no", "false", "off")
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_PART = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,9})?")
_BEYOND = re.compile(r"[-+]?\.(?:inf|nan)", re.IGNORECASE)


def parse(text: str) -> TreeTable:
    """Read a YAML text with one document as a tree. A text without any is an empty table.

    Raises
    ------
    NotReadable
        With the line where the parser stopped.
    """
    try:
        # Not the parser in C: it is deeper in calls than the stack where lists are nested in lists.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _not_yaml(
            mark.line + 1 if mark else None, error.problem or error.context or "it ends too early"
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise NotReadable(
            line, f"The character U+{ord(text[error.position]):04X} may not be in YAML. Take it out."
        ) from None
    except (ValueError, OverflowError):  # the parser's own, of \U and %YAML with numbers too large
        raise _not_yaml(None, "a number in an escape or a directive is too large") from None
    except RecursionError:
        raise NotReadable(
            None, "Lists or mappings are nested too deep. A quota file has mappings in mappings only."
        ) from None
    if root is None or _is_nothing(root):
        return TreeTable()
    node = _NodeReader().read(root, 0)
    if not isinstance(node, TreeTable):
        raise NotReadable(
            root.start_mark.line + 1, "This is not a mapping. Begin with `projects:` or `qos:`, and names below it."
        )
    return node


def _not_yaml(line: int | None, problem: str) -> NotReadable:
    return NotReadable(
        line,
        f"This is not YAML: {problem}. Correct it here or in the line before; "
        "mind the colon after each name, and the spaces at the beginning of the line.",
    )


class _NodeReader:
    """Reads nodes of PyYAML; one that aliases name many times is read once for each depth."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, int], TreeNode] = {}

    def read(self, node: yaml.Node, depth: int) -> TreeNode:
        """Read a node with those inside it; `depth` is in how many mappings it is."""
        at = (id(node), depth)
        if at not in self._read:
            self._read[at] = self._read_fresh(node, depth)
        return self._read[at]

    def _read_fresh(self, node: yaml.Node, depth: int) -> TreeNode:
        if not node.tag.startswith(_STANDARD):
            return UnsupportedValue(f"a value with the tag {show_text(node.tag)}")
        tag = node.tag.removeprefix(_STANDARD)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(tag, node.value)
        if tag == "map":
            if depth == DEPTH:
                return UnsupportedValue("a mapping")
            return TreeTable(tuple(self._read_entry(key, value, depth) for key, value in node.value))
        if tag == "seq":
            texts = tuple(one.value for one in node.value if one.tag == _STANDARD + "str")
            return TreeLeaf(texts) if len(texts) == len(node.value) else UnsupportedValue("a list")
        return UnsupportedValue(f"a value with the tag {show_text('!!' + tag)}")

    def _read_entry(self, key: yaml.Node, value: yaml.Node, depth: int) -> TreeEntry:
        line = key.start_mark.line + 1
        if key.tag == _STANDARD + "merge":
            raise NotReadable(line, 'A quota file has no merge keys ("<<"). Write the settings out.')
        if not isinstance(key, yaml.ScalarNode) or not key.tag.startswith(_STANDARD):
            raise NotReadable(line, "This key is not a name. Write text before the colon.")
        return TreeEntry(key.value, line, self.read(value, depth + 1))


def _is_nothing(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and bool(node.tag == _STANDARD + "null")


def _scalar(tag: str, text: str) -> TreeNode:
    """Read one value; numbers only as people write them, since YAML has others that nobody means."""
    match tag:
        case "str":
            return TreeLeaf(text)
        case "null":
            return TreeLeaf(None)
        case "bool" if text.lower() in _YES + _NO:
            return TreeLeaf(text.lower() in _YES)
        case "int" if _WHOLE.fullmatch(text):
            return TreeLeaf(Decimal(text))
        case "float" if _PART.fullmatch(text):
            return TreeLeaf(Decimal(text))
        case "float" if _BEYOND.fullmatch(text):
            return TreeLeaf(Decimal(text.replace(".", "")))
        case "int" | "float":  # 010 is eight in YAML, and 1:30 is ninety: nobody means that
            return UnsupportedValue(f"{show_text(text)}, which YAML takes for another number")
        case "timestamp":
            return UnsupportedValue("a date or a time of day")
    return UnsupportedValue(f"a value with the tag {show_text('!!' + tag)}")
