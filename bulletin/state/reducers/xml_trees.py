"""Trees of lxml: lists of their nodes and of what each has. They are in C, and a name may lead to any node of one."""

import importlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, Unpicklable

from .containers import make_unfilled


class NodeContent(NamedTuple):
    """What a node has: its name (of an instruction, the target), attributes, texts, and its parent's place in the list.

    Beside the root, comments and instructions of the document have no parent: above it -1, below it -2.
    """

    tag: str
    attributes: dict[str, str]
    text: str | None
    is_cdata: bool
    tail: str | None
    parent: int


class Document(NamedTuple):
    """What there is to a document besides its nodes."""

    encoding: str | None
    doctype: str
    url: str | None


_ABOVE, _BELOW = -1, -2
_MARKUP, _MARKUP_WITH_CLASSES, _XML = "html", "lxml.html", "xml"


def is_node(kind: type) -> bool:
    """Tell whether a type is an element, a comment or an instruction, as lxml's parsers make them."""
    etree: Any = sys.modules.get("lxml.etree")
    if not hasattr(etree, "_Element") or not issubclass(kind, etree._Element):
        return False
    return kind.__module__ == "lxml.etree" or kind.__module__ == "lxml.html"


def is_tree(kind: type) -> bool:
    """Tell whether a type is a whole document of lxml."""
    etree: Any = sys.modules.get("lxml.etree")
    return hasattr(etree, "_ElementTree") and kind is etree._ElementTree


def reduce_tree(_: Encoding, tree: Any) -> Reduced:
    """Reduce a document to its root."""
    return make_unfilled, (RECEIVER, type(tree)), (RECEIVER, tree.getroot()), None, None, set_root


def set_root(tree: Any, state: tuple[LoadTransaction, Any]) -> None:
    """Give a document its root, undoably."""
    transaction, root = state
    before = tree.getroot()
    if root is not None and root is not before:
        if before is not None:
            transaction.undoable(tree._setroot, before)
        tree._setroot(root)


def reduce_node(_: Encoding, node: Any) -> Reduced:
    """Reduce the root of a tree to all that is in the tree, and any other node to its root. Raises Unpicklable."""
    root = _root_of(node)
    nodes = _nodes_in(root)
    language = _language_of(root)
    above = node.getparent()
    inherited = {} if above is None else above.nsmap
    spaces = {name: uri for name, uri in node.nsmap.items() if inherited.get(name) != uri}
    document = _document_of(root) if node is root else None
    args = (RECEIVER, type(node), _name_of(node), spaces, language, document)
    state = (RECEIVER, root) if node is not root else (RECEIVER, nodes, _contents(root, nodes))
    return make_node, args, state, None, None, fill_tree


def _root_of(node: Any) -> Any:
    while (above := node.getparent()) is not None:
        node = above
    if not isinstance(node.tag, str):  # a comment beside the root
        for sibling in (*node.itersiblings(), *node.itersiblings(preceding=True)):
            if isinstance(sibling.tag, str):
                return sibling
    return node


def _nodes_in(root: Any) -> list[Any]:
    """List the nodes of a tree: the root, all below it, then what stands beside it, from near to far."""
    return [*root.iter(), *root.itersiblings(preceding=True), *root.itersiblings()]


def _language_of(root: Any) -> str:
    etree = sys.modules["lxml.etree"]
    if type(root).__module__ == "lxml.html":
        return _MARKUP_WITH_CLASSES
    return _MARKUP if isinstance(root.getroottree().parser, etree.HTMLParser) else _XML


def _name_of(node: Any) -> str | None:
    """Return the name of an element, the target of an instruction, or None for a comment."""
    etree = sys.modules["lxml.etree"]
    if isinstance(node.tag, str):
        return node.tag
    if node.tag is etree.Comment:
        return None
    if node.tag is etree.ProcessingInstruction:
        return str(node.target)
    raise Unpicklable("it has references to entities in it, which only its own document knows")


def _document_of(root: Any) -> Document:
    known = root.getroottree().docinfo
    return Document(known.encoding, known.doctype, known.URL)


def _contents(root: Any, nodes: Sequence[Any]) -> list[NodeContent]:
    etree = sys.modules["lxml.etree"]
    places = {id(node): place for place, node in enumerate(nodes)}
    above = {id(node) for node in root.itersiblings(preceding=True)}
    has_cdata = b"<![CDATA[" in etree.tostring(root)
    contents = []
    for node in nodes:
        parent = node.getparent()
        place = places[id(parent)] if parent is not None else _ABOVE if id(node) in above else _BELOW
        is_cdata = has_cdata and _is_cdata(node)
        contents.append(NodeContent(_name_of(node) or "", dict(node.attrib), node.text, is_cdata, node.tail, place))
    return contents


def _is_cdata(node: Any) -> bool:
    """Tell whether the text of a node is a CDATA section. Raises Unpicklable where it is only in part."""
    if not isinstance(node.tag, str):
        return False
    text = sys.modules["lxml.etree"].tostring(node, with_tail=False).partition(b">")[2]
    if not len(node):
        inner = text.rpartition(b"</")[0]
        if inner.startswith(b"<![CDATA[") and inner.count(b"<![CDATA[") == 1 and inner.endswith(b"]]>"):
            return True
        if b"<![CDATA[" not in inner:
            return False
    elif not (node.text and text.partition(b"<![CDATA[")[0].count(b"<") == 0 and b"<![CDATA[" in text):
        return False
    raise Unpicklable("it has sections of CDATA beside other text, which are one text outside of lxml")


def make_node(
    transaction: LoadTransaction,
    kind: Any,
    name: str | None,
    spaces: dict[str | None, str],
    language: str,
    document: Document | None,
) -> Any:
    """Return the existing node if it is of that class and has these name spaces; else a new one, without a place.

    Of a root, `document` says what there is to its document.
    """
    old = transaction.take_existing()
    if type(old) is kind and _has_spaces(old, spaces) and (isinstance(old.tag, str) or _name_of(old) == name):
        return old
    made = _new_node(kind, name, spaces, language, document)
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def _has_spaces(node: Any, spaces: dict[str | None, str]) -> bool:
    above = node.getparent()
    inherited = {} if above is None else above.nsmap
    return {name: uri for name, uri in node.nsmap.items() if inherited.get(name) != uri} == spaces


def _new_node(
    kind: Any, name: str | None, spaces: dict[str | None, str], language: str, document: Document | None
) -> Any:
    etree: Any = importlib.import_module("lxml.etree")
    if issubclass(kind, etree._Comment):
        return etree.Comment("")
    if issubclass(kind, etree._ProcessingInstruction):
        return etree.ProcessingInstruction(name)
    if language == _MARKUP_WITH_CLASSES:
        parser: Any = importlib.import_module("lxml.html").html_parser
    else:
        parser = etree.HTMLParser() if language == _MARKUP else etree.XMLParser(resolve_entities=False)
    if document is None or not document.doctype:
        made = parser.makeelement(name, nsmap=spaces)
    else:
        # Only a parser gives a document its type. What is in the text is the name alone, of the type that is given.
        short = name if name is not None and name.isalnum() else "html" if language != _XML else "root"
        made = etree.fromstring(f"{document.doctype}<{short}></{short}>", parser)
        made.tag = name
    if document is not None and document.url is not None:
        made.getroottree().docinfo.URL = document.url
    return made


def fill_tree(_: Any, state: tuple[Any, ...]) -> None:
    """Give all nodes of a tree what they have and their places, undoably; with no list its root has done so."""
    transaction, nodes, *rest = state
    if not rest:
        return
    contents: list[NodeContent] = rest[0]
    for root in {id(root): root for root in map(_root_of, nodes)}.values():
        before = _nodes_in(root)
        transaction.undoable(_arrange, before, _contents_now(root, before))
    _arrange(nodes, contents)


def _contents_now(root: Any, nodes: Sequence[Any]) -> list[NodeContent]:
    """Return what the nodes of this side's tree have, to put it back; a section of CDATA comes back as text."""
    places = {id(node): place for place, node in enumerate(nodes)}
    above = {id(node) for node in root.itersiblings(preceding=True)}
    return [
        NodeContent(
            _name_of(node) or "",
            dict(node.attrib),
            node.text,
            False,
            node.tail,
            places.get(id(node.getparent()), _ABOVE if id(node) in above else _BELOW),
        )
        for node in nodes
    ]


def _arrange(nodes: Sequence[Any], contents: Sequence[NodeContent]) -> None:
    """Bring nodes into their places, from the root down; give them names, attributes and texts where they differ."""
    etree = sys.modules["lxml.etree"]
    children: list[list[Any]] = [[] for _ in nodes]
    for node, content in zip(nodes, contents, strict=True):
        if content.parent >= 0:
            children[content.parent].append(node)
        above = node.getparent()
        if above is not None and (content.parent < 0 or above is not nodes[content.parent]):
            above.remove(node)
    for node, content, below in zip(nodes, contents, children, strict=True):
        if not _are_same(list(node), below):
            node[:] = below
        if isinstance(node.tag, str) and node.tag != content.tag:
            node.tag = content.tag
        if isinstance(node.tag, str) and dict(node.attrib) != content.attributes:
            node.attrib.clear()
            node.attrib.update(content.attributes)
        if node.text != content.text and not (node.text is None and content.text == ""):
            node.text = etree.CDATA(content.text) if content.is_cdata else content.text
    _put_beside(nodes[0], nodes, contents)
    for node, content in zip(nodes, contents, strict=True):
        if node.tail != content.tail:
            node.tail = content.tail


def _are_same(here: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return len(here) == len(wanted) and all(one is other for one, other in zip(here, wanted, strict=True))


def _put_beside(root: Any, nodes: Sequence[Any], contents: Sequence[NodeContent]) -> None:
    """Put comments and instructions of the document before and behind its root, from near to far."""
    pairs: Iterable[tuple[Any, NodeContent]] = list(zip(nodes, contents, strict=True))[1:]
    above = [node for node, content in pairs if content.parent == _ABOVE]
    below = [node for node, content in pairs if content.parent == _BELOW]
    elsewhere = sys.modules["lxml.etree"].Element("elsewhere")  # the only way to take out what is beside a root
    for node in (*root.itersiblings(preceding=True), *root.itersiblings()):
        if not any(node is one for one in (*above, *below)):
            elsewhere.append(node)
    if not _are_same(list(root.itersiblings(preceding=True)), above):
        for node in reversed(above):
            root.addprevious(node)
    if not _are_same(list(root.itersiblings()), below):
        for node in reversed(below):
            root.addnext(node)
