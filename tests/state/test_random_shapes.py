"""Random graphs of shared values come back in the same shape."""

import pytest

from .notebook import Notebook

GROW = """
import random as _r
_d = _r.Random({seed})
_all = [[] if _d.random() < 0.5 else {{}} for _ in range(12)]
for _v in _all:
    for _ in range(_d.randrange(4)):
        _w = _d.choice([*_all, _d.randrange(5), 'text', (_d.choice(_all), 1)])
        if isinstance(_v, list): _v.append(_w)
        else: _v[_d.randrange(5)] = _w
a, b, c, d, e = _all[:5]
"""
CHANGE = """
a, b, c, d, e
import random as _r
_d = _r.Random({seed})
_found, _queue = [], [a, b, c, d, e]
while _queue:
    _v = _queue.pop(0)
    if any(_v is _w for _w in _found): continue
    _found.append(_v)
    _queue += [_w for _w in (_v.values() if isinstance(_v, dict) else _v) if isinstance(_w, (list, dict, tuple))]
_boxes = [_v for _v in _found if not isinstance(_v, tuple)]
for _ in range(_d.randrange(4)):
    _v, _w = _d.choice(_boxes), _d.choice(_found)
    if isinstance(_v, list): _v.append(_w)
    elif _v and _d.random() < 0.5: _v.popitem()
    else: _v['new'] = _w
if _d.random() < 0.3: e = [a, _d.choice(_found)]
"""


def shape(values: list[object]) -> list[object]:
    """Values with a number for each container: equal for two graphs only if they share in the same places."""
    numbers: dict[int, int] = {}
    found: list[object] = []
    queue = list(values)
    while queue:
        value = queue.pop(0)
        if not isinstance(value, list | dict | tuple):
            found.append(value)
            continue
        is_new = id(value) not in numbers
        found.append((type(value).__name__, numbers.setdefault(id(value), len(numbers))))
        if is_new:
            found.append(list(value) if isinstance(value, dict) else len(value))
            queue += value.values() if isinstance(value, dict) else value
    return found


@pytest.mark.parametrize("seed", range(25))
def test_a_random_graph_of_shared_values_comes_back_in_the_same_shape(seed: int, notebook: Notebook) -> None:
    notebook.local(GROW.format(seed=seed))
    plain = Notebook(notebook.executor)
    plain.local(GROW.format(seed=seed))
    for turn in range(3):
        cell = CHANGE.format(seed=1000 * seed + turn)
        plain.local(cell)
        assert notebook.gpu(cell).extra.get("error") is None
        assert shape([notebook[name] for name in "abcde"]) == shape([plain[name] for name in "abcde"])
