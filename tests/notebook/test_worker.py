"""Waiting for the background loop: interruptible, from threads, loops and forked processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ocman_jupyter.notebook.worker import WORKER, Interrupted, Reports, Running, join, wait

INTERRUPTING = """
import asyncio, os, signal, threading, time
from ocman_jupyter.notebook.worker import Interrupted, wait

signal.signal(signal.SIGINT, signal.default_int_handler)
started = threading.Event()

def send():
    assert started.wait(5)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=send, daemon=True).start()
"""


def interrupting(code: str) -> str:
    """What ``code`` prints in a process of its own that gets SIGINT, as a kernel does, once ``started`` is
    set.

    Not in this one: who runs the tests may wait for signals in the main thread himself.
    """
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTING + code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    code = """
undone = []

async def work():
    started.set()
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.1)
        undone.append(True)

begun = time.monotonic()
try:
    wait(work(), interrupted="Stopped.")
except Interrupted as stop:
    print(stop, undone, time.monotonic() - begun < 5)
"""
    assert interrupting(code) == "Stopped. [True] True\n"


def test_interrupt_leaves_kept_work_running() -> None:
    code = """
go, finished = threading.Event(), threading.Event()

async def work():
    started.set()
    await asyncio.to_thread(go.wait, 5)
    finished.set()

try:
    wait(work(), keep=True)
except Interrupted:
    before = finished.is_set()
    go.set()
    print(before, finished.wait(5))
"""
    assert interrupting(code) == "False True\n"


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_an_interrupt_while_the_work_is_started(
    monkeypatch: pytest.MonkeyPatch, begun: bool, keep: bool
) -> None:
    started, ended, start = threading.Event(), threading.Event(), Running.start

    async def work() -> None:
        started.set()
        try:
            await asyncio.sleep(0.2 if keep else 60)
        finally:
            ended.set()

    def interrupted(running: Running[None]) -> None:
        monkeypatch.setattr(Running, "start", start)
        if begun:
            running.start()
            assert started.wait(5)
        raise KeyboardInterrupt

    monkeypatch.setattr(Running, "start", interrupted)
    before = time.monotonic()
    with pytest.raises(Interrupted, match="Stopped"):
        wait(work(), keep=keep, interrupted="Stopped.")
    assert time.monotonic() - before < 2
    assert ended.wait(5) if keep or begun else not started.is_set()


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
