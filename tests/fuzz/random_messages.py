"""Random messages of a link, made from its types: valid ones, absurd ones, and frames that are none."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from bulletin.wire import frames

#: Numbers that somebody may have forgotten.
_INTEGERS = (0, 1, -1, 7, 255, 2**16, 2**31 - 1, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64 - 1)
_TEXTS = ("", "a", "\x00", "é" * 40, "../../x", "%s{0}", "x" * 255, "\x1b[2J", "l-1/../r", "1" * 5_000)


class RandomMessages:
    """The messages of one side of one link, by a seed."""

    def __init__(
        self,
        union: object,
        seed: int,
        known: Mapping[str, Sequence[Any]],
        *,
        rare: Sequence[str] = (),
        rarely: float = 0.0,
        junk: float = 0.15,
    ) -> None:
        """Take what fields of a name are often set to (`known`): ids that are somebody's, say.

        What ends a conversation is to come seldom: messages with the tags `rare` do so `rarely`, frames that are no
        message in the part `junk`.
        """
        self._rare, self._rarely, self._junk = set(rare), rarely, junk
        info = inspect.type_info(union)
        types = info.types if isinstance(info, inspect.UnionType) else (info,)
        self._structs = [one for one in types if isinstance(one, inspect.StructType)]
        self._dice, self.known = random.Random(seed), dict(known)

    def draw(self) -> list[bytes]:
        """Draw the frames of the next message; most are valid."""
        dice = self._dice
        kind = dice.randrange(3, 6) if dice.random() < self._junk else dice.choice((0, 1, 2, *range(6, 20)))
        struct = dice.choice(self._structs)
        while struct.tag in self._rare and dice.random() > self._rarely:
            struct = dice.choice(self._structs)
        body = msgspec.msgpack.encode(self._struct(struct, is_absurd=kind in (0, 1, 2)))
        parts = [frames.MARK, body]
        if kind == 3:  # truncated
            return [frames.MARK, body[: dice.randrange(len(body))]]
        if kind == 4:  # a bit turned
            changed = bytearray(body)
            changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
            return [frames.MARK, bytes(changed)]
        if kind == 5:
            return [dice.randbytes(dice.randrange(100)) for _ in range(1 + dice.randrange(5))]
        if kind in (6, 7):
            parts += [dice.randbytes(dice.randrange(200)) for _ in range(dice.randrange(6))]
        return parts

    def _struct(self, struct: inspect.StructType, *, is_absurd: bool) -> dict[str, Any]:
        made: dict[str, Any] = {} if struct.tag_field is None else {struct.tag_field: struct.tag}
        for field in struct.fields:
            if field.required or self._dice.random() < 0.6:
                made[field.encode_name] = self._value(field.type, field.name, is_absurd=is_absurd)
        return made

    def _value(self, of: inspect.Type, name: str, *, is_absurd: bool) -> Any:
        dice = self._dice
        known = self.known.get(name)
        if known and dice.random() < 0.7:
            return dice.choice(known)
        if is_absurd and dice.random() < 0.3:
            return dice.choice([*_INTEGERS, *_TEXTS, None, True, 1.5, [], {}, [[[]]]])
        match of:
            case inspect.UnionType(types=types):
                return self._value(dice.choice(types), name, is_absurd=is_absurd)
            case inspect.StructType():
                return self._struct(of, is_absurd=is_absurd)
            case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
                return [self._value(item, name, is_absurd=is_absurd) for _ in range(dice.randrange(4))]
            case inspect.DictType(key_type=key, value_type=value):
                return {self._value(key, "", is_absurd=False): self._value(value, "", is_absurd=is_absurd)}
            case inspect.LiteralType(values=values):
                return dice.choice(list(values))
            case inspect.EnumType(cls=enum):
                return dice.choice(list(enum)).value
            case inspect.IntType(ge=least, le=most):
                fitting = [
                    one for one in _INTEGERS if (least is None or one >= least) and (most is None or one <= most)
                ]
                return dice.choice(fitting)
            case inspect.StrType(max_length=most):
                return dice.choice([one for one in _TEXTS if most is None or len(one) <= most])
            case inspect.BoolType():
                return dice.random() < 0.5
            case inspect.FloatType():
                return dice.choice([0.0, -1.0, 1e308, float("nan")])
            case inspect.NoneType():
                return None
            case _:
                raise AssertionError(f"no values for {of}")
