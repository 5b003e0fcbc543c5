"""Ends an OpenCode of ours with all that it started, and confirms that it is gone."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable

from . import processes
from .environment import LAUNCH_ID
from .processes import Process

GRACE = 5.0
"""Seconds that a polite request may take: a busy one was seen to need more than 1.5."""
STEP = 0.05


def end(roots: Iterable[Process], launch_id: str = "", port: int = 0, grace: float = GRACE) -> bool:
    """SIGTERM, wait, SIGKILL; then the children and the group that are left; then look at the port.

    ``roots`` that are not the same processes any more are not touched.  True: nothing of it is left or
    listens.  Blocks for up to about twice ``grace``.
    """
    roots = [root for root in set(roots) if root.runs]
    groups = [root.pid for root in roots if processes.leads_group(root)]
    members = _families(roots)
    for root in roots:
        processes.send(root, signal.SIGTERM)
    deadline = time.monotonic() + grace
    left = roots
    while left and time.monotonic() < deadline:
        time.sleep(STEP)
        left = [root for root in roots if root.runs]
        if left:
            members |= _families(left)
    for root in left:
        processes.send(root, signal.SIGKILL)
    processes.wait_gone(left, grace)
    _sweep(members, groups)
    return not any(member.runs for member in members) and _port_is_free(port, launch_id)


def _families(roots: Iterable[Process]) -> set[Process]:
    return {member for root in roots for member in processes.family(root.pid)}


def _sweep(members: set[Process], groups: list[int]) -> None:
    """End what the roots left behind: tools of agents, and whatever is in their groups."""
    for number, seconds in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 2.0)):
        for group in groups:
            processes.send_group(group, number)
        left = [member for member in members if member.runs]
        for member in left:
            processes.send(member, number)
        if not processes.wait_gone(left, seconds):
            break


def _port_is_free(port: int, launch_id: str) -> bool:
    """Whether nothing of this launch listens there; somebody else may have taken the port since."""
    if not port or not processes.listens(port):
        return True
    holder = processes.holder(port)
    if holder is None:
        return True  # another user's
    if not launch_id or processes.variable(holder.pid, LAUNCH_ID) != launch_id:
        return True
    processes.send(holder, signal.SIGKILL)
    return not processes.wait_gone([holder], 2.0)
