"""What the operating system knows of a process: who it is, where it is, what it listens on, its children.

Everything here reads /proc or asks the kernel and may block for milliseconds: `mark` alone is meant for the
event loop, the rest for threads.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

if sys.platform == "linux":

    @functools.cache
    def _boot() -> str:
        try:
            with open("/proc/sys/kernel/random/boot_id") as file:
                return file.read().strip()[:8]
        except OSError:
            return ""

    def mark(pid: int) -> str | None:
        """Which process a pid is: a word that no other process of this pid ever has.

        ``None``: there is none, or only a zombie.  The kernel's start ticks are used because the wall clock,
        and with it a start *time*, can be set.
        """
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return None
        if not fields or fields[0] in (b"Z", b"X"):
            return None
        return f"{_boot()}:{int(fields[19])}"

else:

    def mark(pid: int) -> str | None:
        """Which process a pid is: a word that no other process of this pid ever has (``None``: none)."""
        import psutil

        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            return repr(process.create_time())
        except psutil.Error:
            return None


class Process(NamedTuple):
    """A process that cannot be confused with a later one of the same pid."""

    pid: int
    mark: str

    @property
    def runs(self) -> bool:
        return mark(self.pid) == self.mark


class Listener(NamedTuple):
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"


def current(pid: int) -> Process | None:
    """The process that has this pid now."""
    word = mark(pid)
    return Process(pid, word) if word else None


def started_at(pid: int) -> float | None:
    """Seconds since 1970 at which it started."""
    import psutil

    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def directory(pid: int) -> str | None:
    """Its working directory, a real path; ``None`` when that cannot be seen or was deleted."""
    import psutil

    try:
        return psutil.Process(pid).cwd() or None
    except (psutil.Error, OSError):
        return None


def variable(pid: int, name: str) -> str | None:
    """One variable of the environment that it was started with."""
    import psutil

    try:
        return psutil.Process(pid).environ().get(name)
    except (psutil.Error, OSError):
        return None


def listeners(pid: int) -> list[Listener]:
    """Where it listens so that a program on this machine reaches it."""
    import psutil

    found = []
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except (psutil.Error, OSError):
        return []
    for connection in connections:
        if connection.status != psutil.CONN_LISTEN or not connection.laddr:
            continue
        host, port = connection.laddr[0], connection.laddr[1]
        if host in ("0.0.0.0", "::", "*"):
            host = "127.0.0.1"
        if host.startswith("127.") or host == "::1":
            found.append(Listener(host, port))
    return sorted(set(found), key=lambda listener: listener.port)


def family(pid: int) -> list[Process]:
    """A process and all its descendants, itself first."""
    import psutil

    try:
        pids = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.Error:
        pids = [pid]
    return [process for process in map(current, pids) if process]


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Whether something listens there."""
    import socket

    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except TimeoutError:
        return True  # a full queue is a listener's
    except OSError:
        return False


def holder(port: int) -> Process | None:
    """The process of this user that listens on a port, as far as that can be seen."""
    import psutil

    for process in psutil.process_iter():
        try:
            if process.uids().real == os.getuid() and any(one.port == port for one in listeners(process.pid)):
                return current(process.pid)
        except (psutil.Error, OSError):
            continue
    return None


def send(process: Process, number: signal.Signals) -> None:
    """Signal a process if it is still that process."""
    if process.runs:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def leads_group(process: Process) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        return os.getpgid(process.pid) == process.pid and process.pid != os.getpgrp()
    return False


def send_group(leader: int, number: signal.Signals) -> None:
    """Signal what is left of a group whose leader was ours; its number is not reused while it has members."""
    if leader > 1:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)


def wait_gone(processes: Iterable[Process], seconds: float, step: float = 0.02) -> list[Process]:
    """Wait until all have ended; those that have not within the time."""
    deadline = time.monotonic() + seconds
    left = [process for process in processes if process.runs]
    while left and time.monotonic() < deadline:
        time.sleep(step)
        left = [process for process in left if process.runs]
    return left
