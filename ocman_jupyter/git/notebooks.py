"""Notebooks compared cell by cell: which came, which went, which are not the same any more."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ocman_jupyter.git.records import CellChange

LARGEST = 5_000_000
"""Bytes of a notebook that is looked into: reading JSON takes some twenty times its size in memory."""
_CELLS = 2000
"""Aligning takes the square of it."""
_ALIKE = 0.5
"""Share of the text that an edited cell without an id still has in common with what it was."""
_SHORT = 300
"""Characters of a cell that is also compared by characters: it may be one line that was edited."""
_COMPARED = 400
"""Pairs of cells between two aligned ones that are compared by their text."""
_OFTEN = 20
"""Cells of the same source (empty ones) above which a source does not say which cell it is."""
_LINES = 5000
"""Lines of a cell of which a patch is made; lines that come again and again make that slow."""
_NBDIME_WORK = 1_000_000
"""nbdime compares each character of one text with each of another: this many pairs take it half a second."""

Kind = Literal["added", "deleted", "modified"]

Pairs = list[tuple[int, int]]
"""Cells of the old notebook and what they became, both in order."""


@dataclass(frozen=True)
class Cell:
    """What is compared of a cell."""

    kind: str
    source: str
    id: str | None
    outputs: Any
    rest: Any
    """Its metadata and attachments."""


_NOTHING = Cell("", "", None, [], ({}, {}))


def compare(old: bytes | None, new: bytes | None, room: int) -> tuple[list[CellChange], int] | None:
    """The cells that differ, and the bytes of their patches; ``None`` when one side is no notebook of format 4.

    Parameters
    ----------
    old, new:
        Content; ``None`` = there is no such file.
    room:
        Bytes of patches; cells beyond it are named only.
    """
    before, after = read(old), read(new)
    if before is None or after is None:
        return None
    changes = list(_changes(before, after, align(before, after), _Room(room)))
    return changes, sum(len(one.source_patch.encode()) for one in changes if one.source_patch)


def read(content: bytes | None) -> list[Cell] | None:
    """The cells of a notebook; ``None`` when it is none that we know, or too large."""
    if content is None:
        return []
    if len(content) > LARGEST:
        return None
    try:
        told = json.loads(content, parse_constant=str)  # not a number is equal to itself here
        if told["nbformat"] != 4 or len(told["cells"]) > _CELLS:
            return None
        return [_cell(one) for one in told["cells"]]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _cell(told: dict[str, Any]) -> Cell:
    source = told["source"]
    text = source if isinstance(source, str) else "".join(source)
    outputs = [
        {name: value for name, value in one.items() if name != "execution_count"}
        for one in told.get("outputs", ())
    ]
    identity = told.get("id")
    rest = (told.get("metadata") or {}, told.get("attachments") or {})
    # Half of a surrogate pair is valid JSON, and can be sent nowhere.
    clean = text.encode("utf-8", "replace").decode()
    kind = str(told["cell_type"]).encode("utf-8", "replace").decode()
    return Cell(kind, clean, identity if isinstance(identity, str) else None, outputs, rest)


# --- which cell is which -------------------------------------------------------------------------


def align(before: Sequence[Cell], after: Sequence[Cell]) -> Pairs:
    """By id; between those by the same source; between those by a source that is much alike.

    The last as nbdime does it, where it is installed: it tells edited cells better apart.
    """
    work = _NBDIME_WORK
    sources = _sources(before), _sources(after)
    by_id = _same(_unique_ids(before), _unique_ids(after), 0, len(before), 0, len(after))
    pairs: Pairs = []
    for i, j, to_i, to_j in _gaps(by_id, len(before), len(after)):
        by_source = _same(*sources, i, to_i, j, to_j)
        for gap in _gaps([(x - i, y - j) for x, y in by_source], to_i - i, to_j - j):
            x, y = i + gap[0], j + gap[1]
            old, new = before[x : i + gap[2]], after[y : j + gap[3]]
            wanted = sum(len(one.source) for one in old) * sum(len(one.source) for one in new)
            work -= wanted
            found = _ask_nbdime(old, new) if work >= 0 else None
            pairs += [(x + a, y + b) for a, b in (_alike(old, new) if found is None else found)]
        pairs += by_source
    return sorted(pairs + by_id)


def _unique_ids(cells: Sequence[Cell]) -> list[object]:
    """Ids; where there is none, or the same one again, something that equals nothing else."""
    count = Counter(cell.id for cell in cells)
    return [cell.id if cell.id is not None and count[cell.id] == 1 else object() for cell in cells]


def _sources(cells: Sequence[Cell]) -> list[object]:
    """Type and source; of those that come too often, something that equals nothing else."""
    told = [(cell.kind, cell.source) for cell in cells]
    count = Counter(told)
    return [one if count[one] <= _OFTEN else object() for one in told]


def _same(old: Sequence[object], new: Sequence[object], i: int, to_i: int, j: int, to_j: int) -> Pairs:
    matcher = difflib.SequenceMatcher(None, old[i:to_i], new[j:to_j], autojunk=False)
    return [
        (i + block.a + more, j + block.b + more)
        for block in matcher.get_matching_blocks()
        for more in range(block.size)
    ]


def _gaps(pairs: Pairs, old: int, new: int) -> Iterator[tuple[int, int, int, int]]:
    """What lies between pairs: ``i, j`` up to ``i, j``."""
    i = j = 0
    for x, y in [*pairs, (old, new)]:
        if x > i and y > j:
            yield i, j, x, y
        i, j = x + 1, y + 1


def _alike(old: Sequence[Cell], new: Sequence[Cell]) -> Pairs:
    """Each cell with the first one after the last pair that is much like it."""
    pairs: Pairs = []
    left, begin = _COMPARED, 0
    for x, one in enumerate(old):
        for y in range(begin, len(new)):
            if not left:
                return pairs
            left -= 1
            if one.kind == new[y].kind and _are_alike(one.source, new[y].source):
                pairs.append((x, y))
                begin = y + 1
                break
    return pairs


def _are_alike(one: str, other: str) -> bool:
    if one == other:
        return True
    lines = one.splitlines(), other.splitlines()
    matcher = difflib.SequenceMatcher(None, *lines)
    if matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE:
        return max(map(len, lines)) > _LINES or matcher.ratio() >= _ALIKE
    if max(len(one), len(other)) > _SHORT:
        return False
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return matcher.quick_ratio() >= _ALIKE and matcher.ratio() > _ALIKE


def _ask_nbdime(old: Sequence[Cell], new: Sequence[Cell]) -> Pairs | None:
    """``None`` where it is not installed."""
    try:
        import nbdime

        operations = nbdime.diff_notebooks(_plain(old), _plain(new))
        edits = next((one["diff"] for one in operations if one["key"] == "cells"), [])
        return _pairs(edits, len(old), len(new))
    except Exception:  # whatever another version of it does: ours does without
        return None


def _plain(cells: Sequence[Cell]) -> dict[str, Any]:
    """A notebook of what cells are aligned by."""
    told = [
        {
            "cell_type": cell.kind,
            "source": cell.source,
            "metadata": {},
            **({"outputs": [], "execution_count": None} if cell.kind == "code" else {}),
        }
        for cell in cells
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": told}


def _pairs(edits: Sequence[Any], old: int, new: int) -> Pairs:
    """What a diff of nbdime's leaves together."""
    pairs: Pairs = []
    i = j = 0
    for edit in edits:
        while i < edit["key"]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        if edit["op"] == "addrange":
            j += len(edit["valuelist"])
        elif edit["op"] == "removerange":
            i += edit["length"]
        elif edit["op"] != "patch":
            raise ValueError(edit["op"])
    while i < old:
        pairs.append((i, j))
        i, j = i + 1, j + 1
    if j != new:
        raise ValueError("the cells do not add up")
    return pairs


# --- what is different ---------------------------------------------------------------------------


class _Room:
    """How much may still be told."""

    def __init__(self, size: int) -> None:
        self._left = size

    def patch(self, old: str, new: str) -> str | None:
        if old == new or len(old) + len(new) > self._left:
            return None
        before, after = _lines(old), _lines(new)
        if max(len(before), len(after)) > _LINES:
            return None
        patch = "".join(difflib.unified_diff(before, after)).removeprefix("--- \n+++ \n")
        size = len(patch.encode())
        if size > self._left:
            return None
        self._left -= size
        return patch


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")] if text else []


def _changes(before: Sequence[Cell], after: Sequence[Cell], pairs: Pairs, room: _Room) -> Iterator[CellChange]:
    """In the order of the new notebook; what went stands where it was."""
    i = j = 0
    for x, y in [*pairs, (len(before), len(after))]:
        for gone in range(i, x):
            yield _change("deleted", before[gone].kind, gone, before[gone], _NOTHING, room)
        for came in range(j, y):
            yield _change("added", after[came].kind, came, _NOTHING, after[came], room)
        if x < len(before) and y < len(after):
            old, new = before[x], after[y]
            if (old.kind, old.source, old.outputs, old.rest) != (new.kind, new.source, new.outputs, new.rest):
                yield _change("modified", new.kind, y, old, new, room)
        i, j = x + 1, y + 1


def _change(kind: Kind, cell_type: str, index: int, old: Cell, new: Cell, room: _Room) -> CellChange:
    return CellChange(
        kind=kind,
        cell_type=cell_type,
        index=index,
        source_patch=room.patch(old.source, new.source),
        outputs_changed=old.outputs != new.outputs,
        metadata_changed=old.rest != new.rest or (kind == "modified" and old.kind != new.kind),
    )
