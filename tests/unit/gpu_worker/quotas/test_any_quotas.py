"""Whatever anybody writes into a quota file: quotas, or a sentence with its line."""

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import example, given, strategies as st

from bulletin.errors import BadConfig
from gpu_worker.quotas import from_toml, parse_quotas
from gpu_worker.quotas.quota_settings import PROJECT_SETTINGS, QOS_SETTINGS
from gpu_worker.quotas.tree import DEPTH, TreeTable
from tests.unit.gpu_worker.quotas.quota_texts import HERE, QUICK

#: What is near to a quota file: its signs and words in any order.
_SIGNS = [
    *"[]{}=:,.#'\"\\\n\n\n\t -_&*!|>%@?~", "'''", '"""', "\r\n", "<<", "---", "projects", "qos", "a", "[projects.a]\n",
    "\nlimit = ", "\n  limit: ", "4", "0x1F", "1e9", "nan", ".inf",
    "true", "no", "'30 min'", "2026-01-01", "\x00", "\ufeff",
    "\\ud800", "\\U00110000", "!!python/name:os.system ", "&a ", "*a ", "é", "\u2028", "\x85", "[qos.batch]\n",
]  # fmt: skip


def only_bad_config(content: bytes, file: str) -> None:
    try:
        parse_quotas(content, file, 8000)
    except BadConfig as error:
        for line in str(error).split("\n"):
            assert line.startswith(file)
            assert line.isprintable()


@pytest.mark.parametrize("file", ["q.toml", "q.yaml"])
@given(content=st.binary(max_size=60))
@example(b'"\\UFFFFFFFF"')
@example(b"%YAML 1." + b"9" * 1900)
@QUICK
def test_any_bytes_are_quotas_or_a_sentence(file: str, content: bytes) -> None:
    only_bad_config(content, file)


@pytest.mark.parametrize("file", ["q.toml", "q.yaml"])
@given(signs=st.lists(st.sampled_from(_SIGNS), max_size=25))
@QUICK
def test_any_signs_are_quotas_or_a_sentence(file: str, signs: list[str]) -> None:
    only_bad_config("".join(signs).encode("utf-8"), file)


@pytest.mark.parametrize("name", ["quotas.toml", "quotas.yaml"])
@given(data=st.data())
@QUICK
def test_an_example_with_a_slip_is_quotas_or_a_sentence(name: str, data: st.DataObject) -> None:
    text = (HERE / "examples" / name).read_text()
    at = data.draw(st.integers(0, len(text)))
    gone = data.draw(st.integers(0, 5))
    only_bad_config((text[:at] + data.draw(st.sampled_from(_SIGNS)) + text[at + gone :]).encode(), name)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(st.text(max_size=4), inside, max_size=2),
    max_leaves=4,
)
_NEARLY = st.dictionaries(
    st.sampled_from([word.name for word in (*PROJECT_SETTINGS, *QOS_SETTINGS)]) | st.text(max_size=4),
    _VALUES,
    max_size=4,
)


@given(
    st.fixed_dictionaries(
        {}, optional={"projects": st.dictionaries(st.text(max_size=4), _NEARLY, max_size=3), "qos": _NEARLY | _VALUES}
    )
)
@QUICK
def test_any_values_are_quotas_or_a_sentence(values: dict[str, Any]) -> None:
    only_bad_config(yaml.safe_dump(values, allow_unicode=True).encode("utf-8", "replace"), "q.yaml")


#: Values that look like names, tables and comments to whoever does not read them as TOML does.
_TOML_VALUES = [
    "1", "1.5", "true", "2026-01-01", "'#'", '"\\"#["', '"""\n""\n[x]"""', "'''\n[x]\n'a''''", '"""\\"""="""', "[]",
    '[ 1, # ]\n "]",\n {x = "}"} ]', "[[\n],['''[''']]", "{}", "{ x = [\n{y = '}'}] }",
]  # fmt: skip


def write_toml(draw: Any, names: Iterator[str], header: list[str], level: int) -> list[str]:
    """Lines of a table with settings and tables in it, in any style; `names` come each once."""

    def key() -> str:
        name = next(names)
        return draw(st.sampled_from([name, f'"{name}"', f"'{name}'", f'"{name} =.#[\\"\\u00e9"', f"'{name}\"]'"]))

    def value(level: int) -> str:
        if level == 6 or draw(st.booleans()):
            return draw(st.sampled_from(_TOML_VALUES))
        pairs = [f"{key()} = {value(level + 1)}" for _ in range(draw(st.integers(0, 2)))]
        return "{" + " , ".join(pairs) + "}"

    lines = []
    for _ in range(draw(st.integers(0, 3))):
        dotted = " . ".join(key() for _ in range(draw(st.integers(1, 3))))
        lines.append(f"{dotted}\t= {value(level)}" + draw(st.sampled_from(["", " # [x]", "\n\n"])))
    for _ in range(draw(st.integers(0, 2)) if level < 3 else 0):
        inside = [*header, *(key() for _ in range(draw(st.integers(1, 2))))]
        lines.append(f" [ {' . '.join(inside)} ] # =")
        lines += write_toml(draw, names, inside, level + 1)
    return lines


@given(data=st.data())
@QUICK
def test_every_name_in_toml_has_its_line(data: st.DataObject) -> None:
    ending = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = "\n".join(write_toml(data.draw, (f"k{number:04}" for number in range(10_000)), [], 0))
    parsed = tomllib.loads(text)

    def compare(table: TreeTable, values: dict[str, Any], depth: int) -> None:
        assert [one.name for one in table.entries] == list(values)
        for one in table.entries:
            if one.name.startswith("k"):
                assert one.line == text[: text.index(one.name[:5])].count("\n") + 1
            if isinstance(one.node, TreeTable):
                compare(one.node, values[one.name], depth + 1)
            else:
                assert depth == DEPTH or not isinstance(values[one.name], dict)

    compare(from_toml.parse(text.replace("\n", ending)), parsed, 1)
