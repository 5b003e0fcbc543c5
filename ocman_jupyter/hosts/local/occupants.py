"""Kernels and other processes whose working directory lies in a worktree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...git.paths import is_within
from ..host import LossItem, LossReason

if TYPE_CHECKING:
    import psutil

_MOMENT = 0.3
"""Seconds that a process has to go."""


def occupants(path: str) -> list[LossReason]:
    """Reasons ``kernel`` and ``process`` for the processes of this user that work inside ``path`` (a real path).

    One that is gone a moment later, such as a git of ours that looks at the files, does not work there.
    """
    import psutil

    inside = [process for process in psutil.process_iter() if _is_inside(process, path)]
    if inside:
        _, inside = psutil.wait_procs(inside, timeout=_MOMENT)
    kernels, others = [], []
    for process in inside:
        try:
            argv = process.cmdline()
        except (psutil.Error, OSError):
            continue  # somebody else's, or already gone
        kernel = any("ipykernel" in word or word.endswith("kernel.json") for word in argv)
        name = os.path.basename(argv[0]) if argv else "?"
        (kernels if kernel else others).append(LossItem(path=f"{name} (pid {process.pid})"))
    reasons = []
    for code, items, what in (("kernel", kernels, "kernel"), ("process", others, "other process")):
        if items:
            plural = "" if len(items) == 1 else ("es" if what.endswith("s") else "s")
            verb = "works" if len(items) == 1 else "work"
            reasons.append(LossReason(code=code, message=f"{len(items)} {what}{plural} {verb} in it.", items=items))
    return reasons


def _is_inside(process: psutil.Process, path: str) -> bool:
    import psutil

    try:
        return process.pid != os.getpid() and is_within(process.cwd(), path)
    except (psutil.Error, OSError):
        return False  # somebody else's, or already gone
