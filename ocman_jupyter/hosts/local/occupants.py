"""Kernels and other processes whose working directory lies in a worktree."""

from __future__ import annotations

import os

from ...git.paths import is_within
from ..host import LossItem, LossReason


def occupants(path: str) -> list[LossReason]:
    """Reasons ``kernel`` and ``process`` for the processes of this user that work inside ``path`` (a real path)."""
    import psutil

    kernels, others = [], []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or not is_within(process.cwd(), path):
                continue
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
