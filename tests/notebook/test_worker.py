"""Waiting for the background loop: interruptible, from threads, loops and forked processes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from ocman_jupyter.notebook.worker import WORKER, Interrupted, Reports, join, wait


def interrupt_when(ready: threading.Event) -> None:
    """SIGINT to ourselves, as a kernel gets it, once ``ready`` is set."""

    def send() -> None:
        assert ready.wait(5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send, daemon=True).start()


def test_result_and_error_come_back() -> None:
    async def good() -> int:
        return 3

    async def bad() -> int:
        raise ValueError("no")

    assert wait(good()) == 3
    with pytest.raises(ValueError, match="no"):
        wait(bad())


def test_reports_are_shown_in_the_waiting_thread_and_all_before_the_end() -> None:
    reports, shown = Reports(), []

    async def work() -> None:
        for number in range(100):
            reports.put((number, threading.current_thread().name))

    wait(work(), reports=reports, show=lambda item: shown.append((*item, threading.current_thread())))
    assert [number for number, _, _ in shown] == list(range(100))
    assert {thread for _, _, thread in shown} == {threading.current_thread()}
    assert {name for _, name, _ in shown} == {"ocman-notebook"}


def test_interrupt_cancels_and_waits_until_it_is_undone() -> None:
    started, undone = threading.Event(), []

    async def work() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            undone.append(True)

    interrupt_when(started)
    begun = time.monotonic()
    with pytest.raises(Interrupted, match="Stopped"):
        wait(work(), interrupted="Stopped.")
    assert undone and time.monotonic() - begun < 5


def test_interrupt_leaves_kept_work_running() -> None:
    started, go, finished = threading.Event(), threading.Event(), threading.Event()

    async def work() -> None:
        started.set()
        await asyncio.to_thread(go.wait, 5)
        finished.set()

    interrupt_when(started)
    with pytest.raises(Interrupted):
        wait(work(), keep=True)
    assert not finished.is_set()
    go.set()
    assert finished.wait(5)


def test_an_interrupt_is_shown_as_one_line() -> None:
    assert Interrupted("Stopped.")._render_traceback_() == ["Stopped."]


async def test_join_from_a_running_loop_does_not_block_it() -> None:
    async def slow() -> str:
        await asyncio.sleep(0.2)
        return threading.current_thread().name

    task = asyncio.ensure_future(join(slow()))
    ticks = 0
    while not task.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert await task == "ocman-notebook" and ticks > 5


async def test_wait_works_where_a_loop_runs_already() -> None:
    async def work() -> int:
        return 1

    assert wait(work()) == 1


@pytest.mark.parametrize("keep", [True, False])
async def test_a_cancelled_caller_cancels_unless_the_work_is_kept(keep: bool) -> None:
    started, ended = threading.Event(), []

    async def work() -> None:
        started.set()
        try:
            await asyncio.sleep(0.3)
            ended.append("done")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    task = asyncio.ensure_future(join(work(), keep=keep))
    await asyncio.to_thread(started.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    deadline = time.monotonic() + 5
    while not ended and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert ended == ["done" if keep else "cancelled"]


def test_a_forked_child_gets_a_loop_of_its_own() -> None:
    async def work() -> int:
        return 7

    assert wait(work()) == 7
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, str(WORKER.submit(work()).outcome.result(timeout=5)).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 10) == b"7"
    os.close(read)
    os.close(write)
