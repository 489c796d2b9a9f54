"""Trees of Beautiful Soup: lists of their nodes and of what leads from one to another.

As pickle has it, a tree is its text, parsed anew, so that nobody's tags are in it any more; and each of its strings
holds all of it, as deep as it is long.
"""

import sys
from collections.abc import Iterator
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.inplace import fill_dict
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

#: The attributes that lead from a node to others.
_LINKS = ("parent", "previous_element", "next_element", "previous_sibling", "next_sibling")
#: Attributes that travel by themselves: these, and what has parsed the tree.
_APART = frozenset({*_LINKS, "builder"})
#: Instead of a place: a link that leads nowhere, and one that the node does not have.
_NONE, _ABSENT = -1, -2


def is_node(kind: type) -> bool:
    """Tell whether a type is a tag, a string in a tree, or a tree."""
    module: Any = sys.modules.get("bs4.element")
    return hasattr(module, "PageElement") and issubclass(kind, module.PageElement)


def reduce_node(_: Encoding, node: Any) -> Reduced:
    """Reduce the root of a tree to all that is in the tree, and any other node to its root."""
    root = node
    while (above := vars(root).get("parent")) is not None:
        root = above
    text = str.__str__(node) if isinstance(node, str) else None
    state: tuple[Any, ...] = (root,)
    if root is node:
        nodes = list(_nodes_in(root))
        places = {id(one): place for place, one in enumerate(nodes)}
        links = [[_place_of(vars(one), link, places) for one in nodes] for link in _LINKS]
        names = dict.fromkeys(name for one in nodes for name in vars(one) if name not in _APART)
        state = (nodes, links, {name: [vars(one).get(name, ...) for one in nodes] for name in names}, _parser_of(root))
    return make_node, (RECEIVER, type(node), text), (RECEIVER, state), None, None, fill_tree


def _nodes_in(root: Any) -> Iterator[Any]:
    """List a node and all below it, in the order of the document."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(vars(node).get("contents", ()))


def _place_of(attributes: dict[str, Any], link: str, places: dict[int, int]) -> int:
    """Return where the node is in the list that a link leads to. Raises KeyError if it is not in the tree."""
    if link not in attributes:
        return _ABSENT
    node = attributes[link]
    return _NONE if node is None else places[id(node)]


def _parser_of(root: Any) -> Any:
    """Return what has parsed a tree, or its class where it cannot travel; None where there is none."""
    parser = vars(root).get("builder")
    return parser if parser is None or parser.picklable else type(parser)


def make_node(transaction: LoadTransaction, kind: Any, text: str | None) -> Any:
    """Return the existing node if it is of that class and has that text; else a new one, without a place."""
    old = transaction.take_existing()
    if type(old) is kind and (text is None or str.__str__(old) == text):
        return old
    made = kind.__new__(kind) if text is None else str.__new__(kind, text)
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def fill_tree(node: Any, state: tuple[LoadTransaction, tuple[Any, ...]]) -> None:
    """Give all nodes of a tree what they hold, undoably, if the node is the root of one; else its root has done so."""
    transaction, (nodes, *rest) = state
    if not rest:
        return
    links, columns, parser = rest
    for place, one in enumerate(nodes):
        attributes = vars(one)
        before = dict(attributes)
        transaction.undoable(fill_dict, attributes, before)
        attributes.clear()
        attributes.update((name, held[place]) for name, held in columns.items() if held[place] is not ...)
        for link, places in zip(_LINKS, links, strict=True):
            if places[place] != _ABSENT:
                attributes[link] = None if places[place] == _NONE else nodes[places[place]]
        if one is node and parser is not None:
            kept = before.get("builder")
            is_kept = isinstance(parser, type) and type(kept) is parser
            attributes["builder"] = kept if is_kept else parser() if isinstance(parser, type) else parser
            attributes["builder"].soup = one
