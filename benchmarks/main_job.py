"""Main job: a worktree and a session through us, against doing it by hand and against OpenCode's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import httpx

from . import repositories
from .measure import Row, at_most_times, interleaved, median
from .scene import Ends, OpenCode, Scene, now, told

LIMITS = {"tiny": 1.25, "files": 0.85, "notebooks": 0.75}
"""Against the plain way, by repository."""
BEST_LIMIT = 1.15


class Ways:
    """The ways to get from nothing to a session in a new worktree; each gives milliseconds and cleans up."""

    def __init__(self, root: Path, opencode: OpenCode, ends: Ends, rest: httpx.Client) -> None:
        self.root, self.opencode, self.ends, self.rest = root, opencode, ends, rest
        self.folder = root.parent / "by-hand"
        self.workers = ("-c", f"checkout.workers={os.cpu_count()}")

    def by_hand(self, name: str, *config: str) -> tuple[Path, str]:
        """``git worktree add`` and ``POST /session``; the worktree and the session."""
        path = self.folder / name
        repositories.git(self.root, *config, "worktree", "add", "-q", "--no-track", "-b", name, str(path))
        return path, self.opencode.session(path)

    def through_us(self, name: str, **more: object) -> tuple[Path, str]:
        body = {"directory": str(self.root), "branch": name, "session": "new", **more}
        made = told(self.rest.post("api/ocman/worktrees", json=body))
        return Path(made["worktree_path"]), str(made["session_id"])

    def clean(self, path: Path, branch: str) -> None:
        self.opencode.dispose(path)
        repositories.remove_worktree(self.root, path, branch)

    def plain(self, number: int) -> float:
        return self._timed(f"plain-{number}", lambda name: self.by_hand(name))

    def best(self, number: int) -> float:
        return self._timed(f"best-{number}", lambda name: self.by_hand(name, *self.workers))

    def ours(self, number: int) -> float:
        return self._timed(f"ours-{number}", self.through_us)

    def _timed(self, name: str, make: Callable[[str], tuple[Path, str]]) -> float:
        began = now()
        path, _ = make(name)
        took = now() - began
        self.clean(path, name)
        return took

    def opencodes_own(self, number: int) -> float:
        """Until its ready event: before that the tree is not complete."""
        self.ends.forget("worktree", "")
        began = now()
        where = {"directory": str(self.root)}
        answer = self.opencode.client.post("/experimental/worktree", params=where, json={"name": f"own-{number}"})
        took = self.ends.wait("worktree", "") - began
        body = {"directory": told(answer)["directory"]}
        self.opencode.client.request("DELETE", "/experimental/worktree", params=where, json=body)
        return took


def main_job(scene: Scene, repeat: int, kind: str) -> list[Row]:
    """Interleaved with the plain way, the best way by hand, and OpenCode's own worktrees."""
    root = scene.repository(kind)
    server = scene.server()
    opencode = scene.instance(server, root)
    ends = Ends(opencode)
    with server.client() as rest:
        ways = Ways(root, opencode, ends, rest)
        ways.ours(10_000)  # warm: the first of everything is nobody's measurement
        ways.plain(10_000)
        sides = {
            "ours": ways.ours,
            "plain": ways.plain,
            "best": ways.best,
            "own": ways.opencodes_own,
        }
        scene.say(f"{repeat} rounds on {kind} …")
        figures = interleaved(repeat, sides, lambda: scene.settle(opencode.pid, server.process.pid))
    ends.close()
    ours, plain, best, own = (median(figures[name]) for name in ("ours", "plain", "best", "own"))
    what = f"worktree + session, {repositories.KINDS[kind][0]}"
    return [
        at_most_times("main job", what, ours, "ms", "plain way", plain, LIMITS[kind], repeat),
        at_most_times("main job", what, ours, "ms", "best way by hand", best, BEST_LIMIT, repeat),
        at_most_times("main job", what, ours, "ms", "OpenCode's own worktree", own, 1.0, repeat),
    ]
