"""Medians of interleaved measurements, the rows they make, and the table of the rows."""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

Side = Callable[[int], float]
"""Measures once; gets the number of the repetition, gives the figure (mostly milliseconds)."""


@dataclass(frozen=True)
class Row:
    """One promise: what was measured, against what, and whether it holds."""

    case: str
    what: str
    ours: float
    unit: str
    against: str = ""
    theirs: float | None = None
    target: str = ""
    """As README says it: ``≤ 1.25 ×``, ``≤ 50 ms``, ``= 1``.  Empty: only told."""
    passed: bool | None = None
    runs: int = 1

    @property
    def ratio(self) -> float | None:
        return self.ours / self.theirs if self.theirs else None


def at_most_times(
    case: str, what: str, ours: float, unit: str, against: str, theirs: float, limit: float, runs: int = 1
) -> Row:
    """A row that holds when ours is at most ``limit`` times theirs."""
    return Row(case, what, ours, unit, against, theirs, f"≤ {limit:g} ×", ours <= limit * theirs, runs)


def at_most(case: str, what: str, ours: float, unit: str, limit: float, runs: int = 1) -> Row:
    """A row that holds when ours is at most ``limit``."""
    return Row(case, what, ours, unit, target=f"≤ {limit:g} {unit}", passed=ours <= limit, runs=runs)


def interleaved(
    repeat: int, sides: Mapping[str, Side], between: Callable[[], None] = lambda: None
) -> dict[str, list[float]]:
    """Each side once per repetition, in an order that rotates; ``between`` runs before each, unmeasured."""
    names = list(sides)
    figures: dict[str, list[float]] = {name: [] for name in names}
    for number in range(repeat):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            between()
            figures[name].append(sides[name](number))
    return figures


def median(figures: Sequence[float]) -> float:
    return statistics.median(figures)


def percentile(figures: Sequence[float], share: float) -> float:
    """The figure that ``share`` (0–1) of all figures do not exceed."""
    ordered = sorted(figures)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def flush_disk() -> None:
    """What one side wrote must not be paid for by the next."""
    os.sync()


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def table(rows: Sequence[Row]) -> str:
    """The rows as markdown."""
    lines = [
        "| case | what | ocman | against | its figure | ratio | target | holds | runs |",
        "| --- | --- | ---: | --- | ---: | ---: | --- | --- | ---: |",
    ]
    for row in rows:
        holds = {True: "yes", False: "**no**", None: ""}[row.passed]
        theirs = f"{_number(row.theirs)} {row.unit}" if row.theirs is not None else ""
        ratio = f"{row.ratio:.2f} ×" if row.ratio is not None else ""
        cells = [
            row.case,
            row.what,
            f"{_number(row.ours)} {row.unit}",
            row.against,
            theirs,
            ratio,
            row.target,
            holds,
            str(row.runs),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def as_json(rows: Sequence[Row]) -> str:
    return json.dumps([{**asdict(row), "ratio": row.ratio} for row in rows], indent=1, ensure_ascii=False)
