"""The end of a worktree, for people: what it would lose, what can be saved, and what was done."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from .answer import Answer
from .text import clean, size

if TYPE_CHECKING:
    from ..errors import OcmanError
    from .verbs import Verbs

Json = dict[str, Any]

RESCUABLE = ("ignored", "untracked", "uncommitted")
"""Reasons against a removal whose files can be copied out first."""


class Removal(Answer):
    """What removing a worktree would lose (``--dry-run``)."""

    def lines(self) -> list[str]:
        if self.data["safe"]:
            return ["Nothing would be lost."]
        return ["Removing it would lose:", *reasons(self.data["reasons"])]


class Removed(Answer):
    """A worktree was removed; ``asked`` is its branch when that was to be deleted too."""

    def __init__(self, data: Json, asked: str | None = None, verbs: Verbs | None = None) -> None:
        super().__init__(data, verbs)
        self.asked = asked

    def lines(self) -> list[str]:
        lines = [
            "Worktree removed"
            + (" with its branch." if self.data["branch_deleted"] else "; its branch is kept.")
        ]
        if self.asked and not self.data["branch_deleted"]:
            lines += [
                "  ocman did not make it with this worktree, or it has moved on; delete it with:",
                f"  git branch -d {shlex.quote(self.asked)}",
            ]
        lines += [
            f"  saved {r['path']} to {r['to']} ({size(r['bytes'])})" for r in self.data.get("rescued") or []
        ]
        return lines


def explain(error: OcmanError, rescued: bool) -> None:
    """Let a removal that was refused show each reason, and what can be done; ``rescued``: that was asked for."""
    found = error.details.get("reasons") or []
    codes = [reason["code"] for reason in found]
    saved = [code for code in codes if code in RESCUABLE and not rescued]
    keep = f"; copy what is {' or '.join(saved)} to a folder first: add --rescue DIR" if saved else ""
    error.hint = f"Lose all of it: add --accept {','.join(codes)}{keep}."
    error.lines = [clean(line) for line in reasons(found)]


def reasons(found: list[Json]) -> list[str]:
    """Lines for the reasons of a removal that would lose something."""
    lines = []
    for reason in found:
        total = f" ({size(reason['total_bytes'])})" if reason.get("total_bytes") else ""
        lines.append(f"  {reason['code']}: {reason['message']}{total}")
        items = reason.get("items") or []
        lines += [
            f"    {item['path']}" + (f"  {size(item['bytes'])}" if item.get("bytes") else "")
            for item in items[:10]
        ]
        if len(items) > 10:
            lines.append(f"    … and {len(items) - 10} more")
    return lines
