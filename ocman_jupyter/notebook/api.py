"""The Python API: each verb as a function, and as a coroutine function with an ``a`` before its name.

The functions wait (Ctrl-C ends the wait, never the work of the server) and may be called where a loop runs
already, as in a notebook.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
from collections.abc import Callable
from typing import Any

from . import views
from .client import Client, InProcessClient
from .live import call, say_to_stdout
from .verbs import Verbs
from .worker import WORKER, Reports, join


class Desk:
    """The verbs of this process: connected at first use, and anew after a fork or `local`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._verbs: Verbs | None = None
        self._pid = 0
        self._local = False

    def verbs(self) -> Verbs:
        """The verbs over this process's server, else over the host in process.  Launches nothing."""
        with self._lock:
            if self._verbs is None or self._pid != os.getpid():
                self._verbs, self._pid = Verbs(_connect(self._local)), os.getpid()
            return self._verbs

    def peek(self) -> Verbs | None:
        """The verbs if they are connected already."""
        return self._verbs if self._pid == os.getpid() else None

    def use(self, verbs: Verbs | None, local: bool = False) -> None:
        """Work over ``verbs`` from now on; ``None`` = find out anew, with ``local`` always in process."""
        with self._lock:
            before, self._verbs, self._pid, self._local = self.peek(), verbs, os.getpid(), local
        if before is not None and before is not verbs:
            _close(before)


DESK = Desk()
WATCH_ENDED = "Stopped watching; the session goes on."


def _connect(local: bool) -> Client:
    from . import connection

    server = None if local else connection.find()
    if server is not None:
        from .rest import RestClient

        return RestClient(server)
    client = in_process()
    WORKER.submit(client.start())
    return client


def in_process() -> InProcessClient:
    """A client of the host in this process, with the user's settings."""
    from ..hosts.local import local_host
    from ..settings import OcmanSettings

    return InProcessClient(local_host(OcmanSettings.load()))


def _close(verbs: Verbs) -> None:
    async def close() -> None:
        await verbs.feed.close()
        await verbs.client.close()

    running = WORKER.submit(close())
    try:
        running.outcome.result(timeout=3)
    except Exception:  # a client that cannot be closed is left behind, nothing depends on it
        running.cancel()


@atexit.register
def _close_at_exit() -> None:
    verbs = DESK.peek()
    if verbs is not None:
        _close(verbs)


def local(on: bool = True) -> views.Answer:
    """Work in this process from now on, without the Jupyter server; ``local(False)`` goes back.

    Two owners are safe (lock, registry and store are shared), but a JupyterLab panel does not see this one's
    progress.
    """
    DESK.use(None, local=on)
    return views.Answer({"works": DESK.verbs().client.where})


async def alocal(on: bool = True) -> views.Answer:
    """:func:`local`, awaited."""
    return await asyncio.to_thread(local, on)


# --- verbs: the twins of one verb differ in how they wait and in nothing else -------------------


def _twins(
    name: str, keep: bool = False, progress: bool = False
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The waiting function and the coroutine function of ``Verbs.<name>``.

    ``keep``: a caller that gives up leaves the work running.  ``progress``: the verb reports its progress.
    """
    verb = getattr(Verbs, name)
    signature = inspect.signature(verb)
    shown = [p for p in signature.parameters.values() if p.name not in ("self", "progress", "say")]

    def waiting(*args: Any, _verbs: Verbs | None = None, **options: Any) -> Any:
        verbs = _verbs or DESK.verbs()
        label = str(args[0]) if args and args[0] else name.replace("_", " ")

        def work(reports: Reports) -> Any:
            more = {"progress": reports.progress} if progress else {}
            return verb(verbs, *args, **options, **more)

        return call(work, label, keep=keep)

    async def awaited(*args: Any, **options: Any) -> Any:
        return await join(verb(DESK.verbs(), *args, **options), keep=keep)

    for function, prefix in ((waiting, ""), (awaited, "a")):
        function.__name__ = function.__qualname__ = prefix + name
        function.__doc__ = verb.__doc__
        function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    return waiting, awaited


worktree, aworktree = _twins("worktree", keep=True, progress=True)
worktrees, aworktrees = _twins("worktrees")
diff, adiff = _twins("diff")
remove, aremove = _twins("remove", keep=True)
ensure, aensure = _twins("ensure", keep=True, progress=True)
stop, astop = _twins("stop", keep=True)
sessions, asessions = _twins("sessions")
session, asession = _twins("session", keep=True, progress=True)
get_session, aget_session = _twins("get_session")
abort, aabort = _twins("abort", keep=True)
asks, aasks = _twins("asks")
reply, areply = _twins("reply", keep=True)
doctor, adoctor = _twins("doctor")


def prompt(
    session: str | None, text: str, *, wait: bool = False, _verbs: Verbs | None = None, **options: Any
) -> views.Sent | views.Turned:
    """Send work to a session (``None``: the one that was made last); with ``wait`` return the answer.

    Options: ``agent``, ``model``, ``directory``.  Raises ``OpenCodeError`` when the turn that was waited for
    failed.
    """
    verbs = _verbs or DESK.verbs()

    def work(reports: Reports) -> Any:
        say = last_line(reports) if wait else None
        return verbs.prompt(session, text, wait=wait, say=say, **options)

    return call(work, session or "prompt", keep=not wait, interrupted=WATCH_ENDED if wait else None)


async def aprompt(
    session: str | None, text: str, *, wait: bool = False, **options: Any
) -> views.Sent | views.Turned:
    """:func:`prompt`, awaited."""
    return await join(DESK.verbs().prompt(session, text, wait=wait, **options), keep=not wait)


def watch(
    session: str | None = None,
    *,
    quiet: bool = False,
    directory: str | None = None,
    _verbs: Verbs | None = None,
) -> views.Turned:
    """Print what happens in a session (``None``: the last one made) until it rests; return its answer.

    Ctrl-C stops watching, not the session.
    """
    verbs = _verbs or DESK.verbs()
    if quiet:
        return call(
            lambda reports: verbs.watch(session, directory=directory, say=last_line(reports), printed=False),
            session or "watch",
            interrupted=WATCH_ENDED,
        )
    return call(
        lambda reports: verbs.watch(session, directory=directory, say=reports.put),
        say=say_to_stdout,
        interrupted=WATCH_ENDED,
    )


async def awatch(
    session: str | None = None, *, quiet: bool = False, directory: str | None = None
) -> views.Turned:
    """:func:`watch`, awaited."""
    here = asyncio.get_running_loop()

    def say(text: str) -> None:
        if not quiet:
            here.call_soon_threadsafe(say_to_stdout, text)

    return await join(DESK.verbs().watch(session, directory=directory, say=say, printed=not quiet))


def last_line(reports: Reports) -> Callable[[str], None]:
    """Shows the newest line of a transcript as the progress; an ask stays until something follows it."""

    def say(text: str) -> None:
        line = text.strip()
        if line and not line.startswith(("%ocman reply", "ocman-jupyter reply")):
            reports.progress(line, None)

    return say
