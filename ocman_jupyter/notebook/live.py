"""What is seen while a call waits: one line that is updated in place, in a notebook or on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from .text import clean, escape, one_line
from .worker import Reports, wait

T = TypeVar("T")

SHOW_AFTER = 0.5
"""Seconds: what is quicker shows no line."""

KEPT = "Stopped waiting; the work goes on. Run this again to see what became of it."


class Line(Protocol):
    """One line, updated in place."""

    def update(self, text: str) -> None: ...
    def finish(self, text: str) -> None: ...


class NotebookLine:
    """A display of the running cell."""

    def __init__(self) -> None:
        self._handle: Any = None

    def update(self, text: str) -> None:
        from IPython.display import display

        data = {"text/plain": text, "text/html": f"<span>{escape(text)}</span>"}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)

    def finish(self, text: str) -> None:
        if self._handle is not None:
            self.update(text)


class TerminalLine:
    """The last line of a terminal's stderr."""

    def __init__(self) -> None:
        self._width = 0

    def update(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def finish(self, text: str) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


class NoLine:
    """Nobody looks: a script, a pipe."""

    def update(self, text: str) -> None: ...

    def finish(self, text: str) -> None: ...


def line_here() -> Line:
    """The kind of line for where this runs."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and getattr(shell, "kernel", None) is not None:
        return NotebookLine()
    return TerminalLine() if sys.stderr is not None and sys.stderr.isatty() else NoLine()


class Progress:
    """Draws the progress of one call: what it does, how long it has been at it."""

    def __init__(self, label: str, line: Line | None = None) -> None:
        self._label = one_line(label, 60)
        self._line = line or line_here()
        self._message = "starting"
        self._begun = time.monotonic()
        self._shown = False

    def show(self, report: tuple[str, float | None]) -> None:
        """A ``(message, fraction)``."""
        message, fraction = report
        self._message = one_line(message, 80) + (f" {fraction:.0%}" if fraction is not None else "")
        self.tick(time.monotonic() - self._begun)

    def tick(self, seconds: float) -> None:
        if seconds >= SHOW_AFTER:
            self._shown = True
            self._line.update(f"{self._label}: {self._message} ({seconds:.0f} s)")

    def clear(self) -> None:
        """Make room for other output."""
        if isinstance(self._line, TerminalLine):
            self._line.finish("")

    def finish(self, word: str) -> None:
        if self._shown:
            self._line.finish(f"{self._label}: {word} ({time.monotonic() - self._begun:.1f} s)")


def call(
    work: Callable[[Reports], Coroutine[Any, Any, T]],
    label: str | None = None,
    *,
    say: Callable[[str], None] | None = None,
    keep: bool = False,
    interrupted: str | None = None,
    line: Line | None = None,
) -> T:
    """Wait for ``work``, which may put progress and pieces of text into the reports.

    Parameters
    ----------
    label:
        Progress is shown under it; without one it is not shown.
    say:
        Given the pieces of text.
    keep:
        Ctrl-C leaves the work running.
    """
    reports = Reports()
    sentence = interrupted or (KEPT if keep else "Interrupted.")
    progress = Progress(label or "", line if label else NoLine())

    def show(report: Any) -> None:
        if not isinstance(report, str):
            progress.show(report)
        elif say is not None:
            progress.clear()
            say(report)

    word = "failed"
    try:
        result = wait(
            work(reports), reports=reports, show=show, tick=progress.tick, keep=keep, interrupted=sentence
        )
        word = "done"
        return result
    except KeyboardInterrupt:
        word = "stopped waiting"
        raise
    finally:
        progress.finish(word)


def say_to_stdout(text: str) -> None:
    """Print a piece of a transcript."""
    sys.stdout.write(clean(text))
    sys.stdout.flush()
