"""First answer in a new worktree: with the prompt at once, and with a prompt that is typed meanwhile."""

from __future__ import annotations

import time

from . import repositories
from .main_job import Ways
from .measure import Row, at_most_times, interleaved, median
from .scene import Ends, Scene, now, told

AT_ONCE_LIMIT = 1.05
TYPED_LIMITS = {"tiny": 0.75, "files": 0.5}
TYPING = 3.0
"""Seconds between the worktree and the prompt."""


def first_answer(scene: Scene, repeat: int, kind: str) -> list[Row]:
    """Until OpenCode says that the turn is over, which is the same event for both ways."""
    root = scene.repository(kind)
    server = scene.server()
    opencode = scene.instance(server, root)
    ends = Ends(opencode)
    with server.client() as rest:
        ways = Ways(root, opencode, ends, rest)

        def ours_at_once(number: int) -> float:
            name = f"once-ours-{number}"
            began = now()
            path, session = ways.through_us(name, prompt=f"SAY hello {number}")
            took = ends.wait("idle", session) - began
            ways.clean(path, name)
            return took

        def plain_at_once(number: int) -> float:
            name = f"once-plain-{number}"
            began = now()
            path, session = ways.by_hand(name)
            opencode.prompt(session, f"SAY hello {number}")
            took = ends.wait("idle", session) - began
            ways.clean(path, name)
            return took

        def ours_typed(number: int) -> float:
            name = f"typed-ours-{number}"
            path, session = ways.through_us(name)
            time.sleep(TYPING)
            began = now()
            told(rest.post(f"api/ocman/sessions/{session}/prompt", json={"text": f"SAY hello {number}"}))
            took = ends.wait("idle", session) - began
            ways.clean(path, name)
            return took

        def plain_typed(number: int) -> float:
            name = f"typed-plain-{number}"
            path, session = ways.by_hand(name)
            time.sleep(TYPING)
            began = now()
            opencode.prompt(session, f"SAY hello {number}")
            took = ends.wait("idle", session) - began
            ways.clean(path, name)
            return took

        ours_at_once(10_000)
        sides = {
            "ours at once": ours_at_once,
            "plain at once": plain_at_once,
            "ours typed": ours_typed,
            "plain typed": plain_typed,
        }
        scene.say(f"{repeat} rounds on {kind} …")
        figures = interleaved(repeat, sides, lambda: scene.settle(opencode.pid, server.process.pid))
    ends.close()
    middle = {name: median(values) for name, values in figures.items()}
    size = repositories.KINDS[kind][0]
    return [
        at_most_times(
            "first answer",
            f"prompt with the create, {size}",
            middle["ours at once"],
            "ms",
            "plain way",
            middle["plain at once"],
            AT_ONCE_LIMIT,
            repeat,
        ),
        at_most_times(
            "first answer",
            f"prompt {TYPING:g} s later, {size}",
            middle["ours typed"],
            "ms",
            "plain way",
            middle["plain typed"],
            TYPED_LIMITS[kind],
            repeat,
        ),
    ]
