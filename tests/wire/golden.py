"""Golden frames: `python -m tests.wire.golden` adds those that new kinds of messages lack."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from bulletin.wire import console, frames, messages as wire, page_requests

FILE = Path(__file__).with_name("golden.json")
UNIONS = {
    "FromKernel": wire.FromKernel,
    "ToKernel": wire.ToKernel,
    "FromConsole": console.FromConsole,
    "ToConsole": console.ToConsole,
    "FromPage": page_requests.FromPage,
    "ToPage": page_requests.ToPage,
    "FromAgent": wire.FromAgent,
    "ToAgent": wire.ToAgent,
    "KernelToAgent": wire.KernelToAgent,
    "AgentToKernel": wire.AgentToKernel,
    "ToExecutor": wire.ToExecutor,
    "FromExecutor": wire.FromExecutor,
    "ToZygote": wire.ToZygote,
    "FromZygote": wire.FromZygote,
    "ToRoot": wire.ToRoot,
    "FromRoot": wire.FromRoot,
    "ToFolder": wire.ToFolder,
    "FromFolder": wire.FromFolder,
}
#: The encoding of each type that has one value in all frames.
_PLAIN: dict[type[inspect.Type], object] = {
    inspect.IntType: 7,
    inspect.FloatType: 0.5,
    inspect.BoolType: True,
    inspect.NoneType: None,
    inspect.BytesType: b"bytes",
}


def kinds(link: str) -> dict[str, type[wire.Message]]:
    """The messages of a link by their tags."""
    union = UNIONS[link]
    return {str(kind.__struct_config__.tag): kind for kind in getattr(union, "__args__", (union,))}


def make_up(name: str, kind: inspect.Type) -> Any:
    """Make a value that a field of this name and type may have, as plain data."""
    match kind:
        case inspect.StrType():
            return f"{name}-1"
        case inspect.EnumType():
            return next(iter(kind.cls)).value
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.UnionType():
            return make_up(name, next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
        case inspect.VarTupleType() | inspect.ListType():
            return [make_up(name, kind.item_type)]
        case inspect.TupleType():
            return [make_up(name, one) for one in kind.item_types]
        case inspect.DictType():
            return {"a": make_up(name, kind.value_type)}
        case inspect.StructType():
            tag = {kind.tag_field: kind.tag} if kind.tag_field else {}
            return {**tag, **{field.encode_name: make_up(field.name, field.type) for field in kind.fields}}
        case inspect.Metadata():
            return make_up(name, kind.type)
        case _:
            return _PLAIN[type(kind)]


def make_frame(kind: type[wire.Message]) -> dict[str, object]:
    """Make the golden frame of a kind of message, every field of it said."""
    message = msgspec.convert(
        {"kind": kind.__struct_config__.tag, **make_up("", inspect.type_info(kind))}, kind, builtin_types=(bytes,)
    )
    mark, frame = frames.pack(message)
    fields = json.loads(msgspec.json.encode(message))
    del fields["kind"]
    return {
        "kind": kind.__struct_config__.tag,
        "mark": bytes(mark).hex(),
        "frame": bytes(frame).hex(),
        "fields": fields,
    }


def main() -> None:
    """Add a frame for each kind of message that has none; those that are there never change."""
    golden = json.loads(FILE.read_text())
    added = []
    for link in UNIONS:
        have = {one["kind"] for one in golden.setdefault(link, [])}
        for tag, kind in kinds(link).items():
            if tag not in have:
                golden[link].append(make_frame(kind))
                added.append(f"{link} {tag}")
    FILE.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")
    sys.stdout.write(f"added: {', '.join(added) or 'none is missing'}\n")


if __name__ == "__main__":
    main()
