"""The one background event loop of this process, and waiting on it from cells, scripts and other loops.

A kernel's own loop is busy while a cell runs, so all our asynchronous work runs on a thread of its own.  The
waiting thread stays interruptible and does all the drawing, so output never comes from a foreign thread.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, InvalidStateError
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Interrupted(KeyboardInterrupt):
    """The wait was interrupted by the user; shown as one line."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class Running(Generic[T]):
    """Work of the background loop, once :meth:`start` was called."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> None:
        self._loop = loop
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self.outcome: Future[T] = Future()
        """Done when the work has really ended, also after a cancel."""

    def start(self) -> None:
        """Begin, unless it has begun."""
        self._loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._work)
            self._task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[T]) -> None:
        try:
            if task.cancelled():
                self.outcome.cancel()
                self.outcome.set_running_or_notify_cancel()
            elif (error := task.exception()) is not None:
                self.outcome.set_exception(error)
            else:
                self.outcome.set_result(task.result())
        except InvalidStateError:
            pass  # nobody waits any more

    def cancel(self) -> None:
        """Ask the work to stop and undo; :attr:`outcome` is done when it has."""
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:
            self._work.close()
            self.outcome.cancel()


class Worker:
    """An event loop on a daemon thread, started at first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def inside(self) -> bool:
        """This is the loop's own thread, which must not wait for the loop."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def submit(self, work: Coroutine[Any, Any, T]) -> Running[T]:
        """Start ``work``."""
        running = self.prepare(work)
        running.start()
        return running

    def prepare(self, work: Coroutine[Any, Any, T]) -> Running[T]:
        """``work``, to be started.  A forked child, where the parent's thread does not run, gets its own loop."""
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="ocman-notebook", daemon=True).start()
                self._loop, self._pid = loop, os.getpid()
            return Running(self._loop, work)


WORKER = Worker()


class Reports:
    """What running work tells its waiter: put on the loop's thread, taken in the waiting one."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Any] = queue.Queue()

    def put(self, item: Any) -> None:
        """Never blocks."""
        self._queue.put(item)

    def progress(self, message: str, fraction: float | None = None) -> None:
        """A ``hosts.host.Progress``."""
        self.put((message, fraction))

    def take(self, timeout: float) -> list[Any]:
        """All that is there; waits at most ``timeout`` seconds for the first."""
        items: list[Any] = []
        try:
            items.append(self._queue.get(timeout=timeout))
            while True:
                items.append(self._queue.get_nowait())
        except queue.Empty:
            return items


def wait(
    work: Coroutine[Any, Any, T],
    *,
    reports: Reports | None = None,
    show: Callable[[Any], None] = lambda item: None,
    tick: Callable[[float], None] = lambda seconds: None,
    keep: bool = False,
    interrupted: str = "Interrupted.",
    grace: float = 3.0,
) -> T:
    """Run ``work`` on the background loop and wait for it in this thread.

    Parameters
    ----------
    reports, show:
        Each item that the work puts into ``reports`` is given to ``show``, in this thread.
    tick:
        Called about four times a second with the seconds since the start.
    keep:
        On Ctrl-C leave the work running instead of cancelling it.
    interrupted:
        The sentence of the :class:`Interrupted` that Ctrl-C becomes.
    grace:
        Seconds that a cancelled work may take to undo what it did.
    """
    reports = reports or Reports()
    done = object()
    running: Running[T] | None = None
    begun = time.monotonic()
    try:
        # In two steps: Ctrl-C may come while the start is under way, and what has begun must be in hand then.
        running = WORKER.prepare(work)
        running.start()
        running.outcome.add_done_callback(lambda outcome: reports.put(done))
        ended = False
        while not ended:
            for item in reports.take(0.25):
                if item is done:
                    ended = True
                else:
                    show(item)
            if not ended:
                tick(time.monotonic() - begun)
        return running.outcome.result()
    except KeyboardInterrupt:
        if running is None:
            work.close()
        elif keep:
            running.start()
        else:
            running.cancel()
            deadline = time.monotonic() + grace
            while not running.outcome.done() and time.monotonic() < deadline:
                time.sleep(0.01)
        raise Interrupted(interrupted) from None


async def join(work: Coroutine[Any, Any, T], *, keep: bool = False) -> T:
    """Run ``work`` on the background loop and await it from any other loop.

    A cancelled caller cancels the work, unless ``keep``.
    """
    running = WORKER.submit(work)
    try:
        return await asyncio.shield(asyncio.wrap_future(running.outcome))
    except asyncio.CancelledError:
        if not keep:
            running.cancel()
        raise
