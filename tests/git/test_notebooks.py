"""Cells of two notebooks: which is which, and what of it changed."""

from __future__ import annotations

import json
import random
import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

from ocman_jupyter.git import notebooks


def cell(source, identity=None, kind="code", outputs=(), metadata=None, **more):
    told = {"cell_type": kind, "source": source, "metadata": metadata or {}, "outputs": list(outputs), **more}
    return told if identity is None else {**told, "id": identity}


def content(*cells, **more):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **more}).encode()


def changes(old, new, room=100_000):
    found = notebooks.compare(old, new, room)
    assert found is not None
    return [(one.kind, one.index) for one in found[0]]


@pytest.fixture(autouse=True)
def no_nbdime(monkeypatch):
    monkeypatch.setitem(sys.modules, "nbdime", None)


def test_equal_notebooks_have_no_changes():
    one = content(cell("a", "1"), cell("b", "2"))
    assert notebooks.compare(one, one, 1000) == ([], 0)
    assert notebooks.compare(None, content(), 1000) == ([], 0)


def test_cells_are_the_same_by_their_id():
    old = content(cell("a", "1"), cell("b", "2"), cell("c", "3"))
    new = content(cell("all of it is new", "1"), cell("c", "3"), cell("x", "9"))
    assert changes(old, new) == [("modified", 0), ("deleted", 1), ("added", 2)]
    ((one, *_), size) = notebooks.compare(old, new, 1000)
    assert one.source_patch == "@@ -1 +1 @@\n-a\n+all of it is new\n"
    assert size > len(one.source_patch)


def test_a_cell_that_moved_goes_and_comes():
    old = content(cell("a", "1"), cell("b", "2"), cell("c", "3"))
    new = content(cell("c", "3"), cell("a", "1"), cell("b", "2"))
    assert sorted(changes(old, new)) == [("added", 0), ("deleted", 2)]


def test_cells_without_ids_are_the_same_by_their_source_or_much_of_it():
    body = "import pandas\nframe = pandas.read_csv('x')\nframe.head()\n"
    old = content(cell("# Title", kind="markdown"), cell(body), cell("print(1)"))
    new = content(cell("# Title", kind="markdown"), cell("new = 1"), cell(body + "frame.plot()\n"), cell("print(1)"))
    assert changes(old, new) == [("added", 1), ("modified", 2)]


def test_the_same_id_twice_is_no_id():
    old = content(cell("a = 1", "1"), cell("something else", "1"))
    new = content(cell("a = 1", "1"), cell("something else", "1"), cell("third", "1"))
    assert changes(old, new) == [("added", 2)]


def test_cells_that_lost_their_ids():
    old = content(cell("a", "1"), cell("b", "2"), cell("c", "3"))
    new = content(cell("a"), cell("b"), cell("c", "3"))
    assert changes(old, new) == []


def test_outputs_and_metadata_apart_from_counts():
    count = {"output_type": "execute_result", "data": {"text/plain": "1"}, "metadata": {}}
    old = content(cell("a", "1", outputs=[{**count, "execution_count": 1}], execution_count=1), cell("b", "2"))
    same = content(cell("a", "1", outputs=[{**count, "execution_count": 7}], execution_count=7), cell("b", "2"))
    assert changes(old, same) == []
    other = {**count, "data": {"text/plain": "2"}}
    new = content(cell("a", "1", outputs=[other]), cell("b", "2", metadata={"tags": ["x"]}))
    (first, second), _ = notebooks.compare(old, new, 1000)
    assert (first.source_patch, first.outputs_changed, first.metadata_changed) == (None, True, False)
    assert (second.source_patch, second.outputs_changed, second.metadata_changed) == (None, False, True)


def test_another_type_counts_as_metadata():
    ((one,), _) = notebooks.compare(content(cell("a", "1")), content(cell("a", "1", kind="raw")), 1000)
    assert (one.kind, one.cell_type, one.metadata_changed) == ("modified", "raw", True)


def test_source_as_lines_or_as_text_is_the_same():
    assert changes(content(cell(["a\n", "b"], "1")), content(cell("a\nb", "1"))) == []


def test_not_a_number_is_equal_to_itself():
    one = content(cell("a", "1", outputs=[{"output_type": "x", "data": float("nan")}]))
    assert changes(one, one) == []


@pytest.mark.parametrize(
    "broken",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b"{}", b'{"nbformat": 4}', b'{"nbformat": 3, "worksheets": []}',
        b'{"nbformat": 4, "cells": 1}', b'{"nbformat": 4, "cells": [1]}', b'{"nbformat": 4, "cells": [{}]}',
        b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": 1}]}',
        b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}',
        b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "", "outputs": [1]}]}',
        b"[" * 100_000, b'{"nbformat": 4, "cells": [' + b'{"a":' * 50_000,
        b'{"nbformat": ' + b"9" * 5000 + b"}",
        b'{"nbformat": 4, "cells": []}' + b" " * 5_000_000,
        b'<<<<<<< HEAD\n{"nbformat": 4, "cells": []}\n',
    ],
)  # fmt: skip
def test_what_is_no_notebook_is_not_compared(broken):
    assert notebooks.compare(broken, content(), 1000) is None
    assert notebooks.compare(content(), broken, 1000) is None


def test_half_a_character_can_be_sent():
    ((one,), _) = notebooks.compare(None, content(cell("\ud800 x", "1")), 1000)
    one.model_dump_json()


def test_patches_take_only_the_room_there_is():
    old = content(*(cell("", f"{n}") for n in range(10)))
    new = content(*(cell(f"{'x' * 90}", f"{n}") for n in range(10)))
    found, size = notebooks.compare(old, new, 300)
    assert len(found) == 10
    assert [one.source_patch is not None for one in found] == [True] * 2 + [False] * 8
    assert size <= 300


def test_large_notebooks_are_compared_in_time():
    rows = [f"value_{n} = compute({n})\n" * 5 for n in range(1500)]
    mixed = rows[:]
    random.Random(1).shuffle(mixed)
    began = time.monotonic()
    notebooks.compare(content(*map(cell, rows)), content(*map(cell, mixed)), 200_000)
    notebooks.compare(content(*(cell("") for _ in rows)), content(*(cell("x") for _ in rows)), 200_000)
    empty = [cell("" if number % 2 else rows[number]) for number in range(1500)]
    other = [cell("" if number % 2 else f"{number}") for number in range(1500)]
    notebooks.compare(content(*empty), content(*other), 200_000)
    for many in (10_000, 2 * notebooks._LINES - 2):
        lines = "".join(f"{number % 100}\n" for number in range(many // 2))
        notebooks.compare(content(cell(lines)), content(cell(lines[::-1])), 200_000)
    assert time.monotonic() - began < 20


def test_every_cell_is_told_once_whatever_happened():
    rolls = random.Random(7)
    for _ in range(200):
        old = [cell(rolls.choice("abc") * rolls.randint(0, 3), rolls.choice([None, *"12345"])) for _ in range(6)]
        new = [rolls.choice([*old, cell(rolls.choice("xyz"))]) for _ in range(rolls.randint(0, 7))]
        before, after = notebooks.read(content(*old)), notebooks.read(content(*new))
        pairs = notebooks.align(before, after)
        assert pairs == sorted(pairs)
        assert all(a < c and b < d for (a, b), (c, d) in zip(pairs, pairs[1:], strict=False))
        told = changes(content(*old), content(*new))
        assert sum(kind == "deleted" for kind, _ in told) == len(old) - len(pairs)
        assert sum(kind == "added" for kind, _ in told) == len(new) - len(pairs)


# --- nbdime --------------------------------------------------------------------------------------


@pytest.fixture
def nbdime(monkeypatch):
    """Stands in for the library, which may be missing."""
    module = ModuleType("nbdime")
    monkeypatch.setitem(sys.modules, "nbdime", module)
    return module


def test_nbdime_says_which_cell_is_which(nbdime):
    edits = [
        {"op": "addrange", "key": 0, "valuelist": [{}]},
        {"op": "removerange", "key": 0, "length": 1},
        {"op": "patch", "key": 1, "diff": []},
    ]
    asked = []

    def diff_notebooks(old, new):
        asked.append([[one["source"] for one in side["cells"]] for side in (old, new)])
        return [{"op": "patch", "key": "cells", "diff": edits}]

    nbdime.diff_notebooks = diff_notebooks
    old = content(cell("same", "1"), cell("b", "2"), cell("c", "3"), cell("d"), cell("e", "5"))
    new = content(cell("edited", "1"), cell("n", "0"), cell("different", "9"), cell("d"), cell("e", "5"))
    assert changes(old, new) == [("modified", 0), ("deleted", 1), ("added", 1), ("modified", 2)]
    assert asked == [[["b", "c"], ["n", "different"]]], "only what ids and sources do not tell"


@pytest.mark.parametrize(
    "said",
    [
        [{"op": "patch", "key": "cells", "diff": [{"op": "replace", "key": 0, "value": {}}]}],
        [{"op": "patch", "key": "cells", "diff": [{"op": "addrange", "key": 0, "valuelist": [{}, {}, {}]}]}],
        [{}],
        None,
    ],
)
def test_what_nbdime_says_wrong_is_not_believed(nbdime, said):
    nbdime.diff_notebooks = lambda old, new: said
    old, new = content(cell("a = 1\nb = 2\n"), cell("x")), content(cell("a = 1\nb = 2\nc = 3\n"))
    assert changes(old, new) == [("modified", 0), ("deleted", 1)]


def test_nbdime_is_not_asked_about_large_notebooks(nbdime):
    def fail(old, new):
        raise AssertionError

    nbdime.diff_notebooks = fail
    old = content(*(cell(f"{n} " + "x" * 300) for n in range(12)))
    new = content(*(cell(f"{n} " + "y" * 300) for n in range(12)))
    assert len(changes(old, new)) == 24


def test_the_real_nbdime(monkeypatch):
    monkeypatch.delitem(sys.modules, "nbdime")
    pytest.importorskip("nbdime")
    body = "import pandas\nframe = pandas.read_csv('x')\nframe.head()\n"
    old = content(cell("# Title", "1", kind="markdown"), cell(body, "2"), cell("print(1)", "3"))
    new = content(cell("# Title", "1", kind="markdown"), cell("n", "8"), cell(body + "frame.plot()\n", "2"))
    asked = SimpleNamespace(pairs=None)
    real = notebooks._pairs

    def seen(*args):
        asked.pairs = real(*args)
        return asked.pairs

    monkeypatch.setattr(notebooks, "_pairs", seen)
    assert changes(old, new) == [("added", 1), ("modified", 2), ("deleted", 2)]
    assert asked.pairs is None, "the ids told it"
    bare = [json.dumps({**json.loads(one), "cells": [
        {name: value for name, value in told.items() if name != "id"} for told in json.loads(one)["cells"]
    ]}).encode() for one in (old, new)]  # fmt: skip
    assert changes(*bare) == [("added", 1), ("modified", 2), ("deleted", 2)]
    assert asked.pairs == [(0, 1)]
