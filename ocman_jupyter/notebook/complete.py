"""Tab completion of ``%ocman``: verbs, options, branches, sessions, asks.

A completion never starts anything and never keeps the kernel: what is not there in time is completed next
time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import TimeoutError as NotInTime
from typing import Any

from . import choose
from .api import DESK
from .options import ALIASES, VERBS, grammar, with_context
from .worker import WORKER, Running

PATIENCE = 0.2
"""Seconds that a completion may wait for names."""
FRESH = 3.0
"""Seconds that names are used again without a new look."""

_CHOICES = {"reply": ["once", "always", "reject"]}
_REASONS = [
    "uncommitted",
    "untracked",
    "ignored",
    "unreachable_commits",
    "operation",
    "locked",
    "busy_session",
    "kernel",
    "process",
    "unverified",
]


class Names:
    """Names of branches, sessions and asks, looked up in the background."""

    def __init__(self) -> None:
        self._known: dict[str, list[str]] = {}
        self._at = 0.0
        self._running: Running[dict[str, list[str]]] | None = None

    def get(self, kind: str) -> list[str]:
        """The names of ``kind`` ("branch", "session", "ask") that are known after a short wait."""
        if time.monotonic() - self._at > FRESH:
            if self._running is None:
                self._running = WORKER.submit(self._look())
            try:
                self._known = self._running.outcome.result(timeout=PATIENCE)
                self._at = time.monotonic()
                self._running = None
            except NotInTime:
                pass
            except BaseException as error:
                self._running = None
                if isinstance(error, KeyboardInterrupt):
                    raise
        return self._known.get(kind, [])

    async def _look(self) -> dict[str, list[str]]:
        import asyncio

        verbs = DESK.peek() or await asyncio.to_thread(DESK.verbs)
        from .verbs import absolute

        listing, asks = await asyncio.gather(
            verbs.client.worktrees(absolute(None), False), verbs.client.asks(), return_exceptions=True
        )
        names: dict[str, list[str]] = {"branch": [], "session": [], "ask": []}
        if isinstance(listing, dict):
            worktrees = [w for w in listing.get("worktrees") or [] if not w["is_main"]]
            names["branch"] = [w.get("branch") or w["name"] for w in worktrees]
            with_session = [
                w.get("branch") for w in worktrees if w.get("branch") and len(w.get("sessions") or []) == 1
            ]
            names["session"] = with_session + [s["id"] for s in choose.all_sessions(listing)]
        if isinstance(asks, dict):
            names["ask"] = [ask["id"] for ask in asks["asks"]]
        return names


NAMES = Names()


def complete(line: str, symbol: str, variables: Sequence[str] = ()) -> list[str]:
    """What may stand where the cursor is.

    Parameters
    ----------
    line:
        The line up to the cursor, from ``%ocman`` on.
    symbol:
        The beginning of the word under the cursor.
    """
    words = line.split()
    before = words[1:] if not symbol else words[1:-1]
    if not before:
        return [verb for verb in [*VERBS, *ALIASES, "local", "help"] if verb.startswith(symbol)]
    if before == ["help"]:
        return [verb for verb in VERBS if verb.startswith(symbol)]
    verb = ALIASES.get(before[0], before[0])
    if verb not in VERBS:
        return []
    parser = grammar(verb, "%ocman")
    if verb in ("wt", "prompt", "session"):
        with_context(parser)
    if before[-1] == "--with":
        return [name for name in variables if name.startswith(symbol) and not name.startswith("_")]
    if before[-1] == "--accept":
        return [reason for reason in _REASONS if reason.startswith(symbol)]
    if symbol.startswith("-"):
        return sorted(
            option
            for option in parser._option_string_actions
            if option.startswith(symbol) and option.startswith("--")
        )
    if before[-1].startswith("-") and _takes_value(parser, before[-1]):
        return []
    place = len([word for word in before[1:] if not word.startswith("-")])
    kinds: dict[str, tuple[str, ...]] = {
        "wt": ("branch",),
        "diff": ("branch",),
        "rm": ("branch",),
        "prompt": ("session",),
        "watch": ("session",),
        "abort": ("session",),
        "reply": ("ask", "choice"),
    }
    wanted = kinds.get(verb, ())[place : place + 1]
    found: list[str] = []
    for kind in wanted:
        found = _CHOICES[verb] if kind == "choice" else NAMES.get(kind)
        if kind == "ask":
            found = found + _CHOICES["reply"]
    return [name for name in found if name.startswith(symbol)]


def _takes_value(parser: Any, option: str) -> bool:
    action = parser._option_string_actions.get(option)
    return action is not None and action.nargs != 0
