"""``python -m benchmarks``: measures and prints one table."""

from __future__ import annotations

import argparse
import platform
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .ensure import ensure
from .first_answer import first_answer
from .listing import against_jupyterlab_git, listing
from .main_job import main_job
from .measure import Row, as_json, table
from .memory import one_process
from .page_start import page_start
from .pages import heap, open_session, streams
from .scene import Scene, scene
from .start import start
from .streaming import event_loop, events

Case = Callable[[Scene, int], list[Row]]

CASES: dict[str, tuple[Case, int]] = {
    "memory": (one_process, 1),
    "main-job-tiny": (partial(main_job, kind="tiny"), 15),
    "main-job-files": (partial(main_job, kind="files"), 7),
    "main-job-notebooks": (partial(main_job, kind="notebooks"), 7),
    "first-answer-tiny": (partial(first_answer, kind="tiny"), 7),
    "first-answer-files": (partial(first_answer, kind="files"), 5),
    "ensure": (ensure, 15),
    "list": (listing, 5),
    "events": (events, 1),
    "event-loop": (event_loop, 6),
    "start": (start, 7),
    "browser-start": (page_start, 11),
    "browser-session": (open_session, 5),
    "browser-stream": (streams, 3),
    "browser-heap": (heap, 10),
    "jupyterlab-git": (against_jupyterlab_git, 3),
}
"""By name: what measures it, and how many repetitions it takes when nobody says otherwise.

A repetition of ``browser-heap`` is a minute.
"""


ONLY_WHEN_NAMED = {"jupyterlab-git"}
"""Installs something."""


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures the promises about speed and memory; exits 1 if one fails.",
    )
    parser.add_argument(
        "case", nargs="*", help=f"cases to measure, or the beginning of their names: {', '.join(CASES)}"
    )
    parser.add_argument("--repeat", type=int, help="repetitions, instead of each case's own number")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--where", type=Path, help="folder for the measured repositories (default: the temporary one)")
    arguments = parser.parse_args()
    words = tuple(arguments.case)
    chosen = {
        name: case for name, case in CASES.items() if (name.startswith(words) if words else name not in ONLY_WHEN_NAMED)
    }
    if not chosen:
        parser.error(f"no such case; there are {', '.join(CASES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what is running is ended on the way out
    rows: list[Row] = []
    failed = False
    for name, (case, repeat) in chosen.items():
        began = time.monotonic()
        say(f"— {name}")
        try:
            with scene(arguments.where, say) as stage:
                found = case(stage, arguments.repeat or repeat)
        except Exception as error:  # one case that breaks must not cost the figures of the others
            say(f"{name} failed: {type(error).__name__}: {error}")
            failed = True
        else:
            rows += found
            print(table(found), file=sys.stderr, flush=True)
        say(f"{name} took {time.monotonic() - began:.0f} s")
    if arguments.json:
        print(as_json(rows))
    else:
        print(f"{platform.system()} {platform.machine()}, Python {platform.python_version()}\n\n{table(rows)}")
    return int(failed or any(row.passed is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
