"""The magics in a real kernel: cell status, interrupts, awaiting, live output."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

PREPARE = """
from tests.notebook.fake import install
fake = install()
%load_ext ocman_jupyter
import ocman_jupyter as ocman
"""


@dataclass
class Cell:
    status: str = ""
    stdout: str = ""
    stderr: str = ""
    result: dict[str, str] = field(default_factory=dict)
    displays: list[dict[str, str]] = field(default_factory=list)
    error: dict[str, Any] = field(default_factory=dict)


class Kernel:
    def __init__(self) -> None:
        self.manager = KernelManager(kernel_name="python3")
        root = str(Path(__file__).parents[2])
        self.manager.start_kernel(env={**os.environ, "PYTHONPATH": root})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str, meanwhile: Callable[[dict[str, Any]], None] | None = None) -> Cell:
        """Run a cell; ``meanwhile`` sees each message of it as it comes."""
        cell = Cell()

        def hook(message: dict[str, Any]) -> None:
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "stream":
                setattr(cell, content["name"], getattr(cell, content["name"]) + content["text"])
            elif kind == "execute_result":
                cell.result = content["data"]
            elif kind in ("display_data", "update_display_data"):
                cell.displays.append(content["data"])
            elif kind == "error":
                cell.error = content
            if meanwhile is not None:
                meanwhile(message)

        reply = self.client.execute_interactive(code, timeout=60, output_hook=hook, stop_on_error=False)
        cell.status = reply["content"]["status"]
        return cell

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def shared() -> Iterator[Kernel]:
    kernel = Kernel()
    yield kernel
    kernel.close()


@pytest.fixture
def kernel(shared: Kernel) -> Kernel:
    prepared = shared.run(PREPARE)
    assert prepared.status == "ok", prepared.error
    return shared


def interrupt_once(
    kernel: Kernel, when: Callable[[dict[str, Any]], bool]
) -> Callable[[dict[str, Any]], None]:
    sent: list[bool] = []

    def look(message: dict[str, Any]) -> None:
        if not sent and when(message):
            sent.append(True)
            kernel.manager.interrupt_kernel()

    return look


def test_a_result_has_text_and_page(kernel: Kernel) -> None:
    cell = kernel.run('%ocman wt fix "do it"')
    assert cell.status == "ok" and "Worktree fix made" in cell.result["text/plain"]
    assert cell.result["text/html"].startswith("<div>")
    assert kernel.run("_.branch").result["text/plain"] == "'fix'"


def test_an_error_is_one_line_and_the_cell_failed(kernel: Kernel) -> None:
    cell = kernel.run("from ocman_jupyter.errors import NoCommits\nfake.fail = NoCommits()\n%ocman wt fix")
    assert cell.status == "error" and cell.error["ename"] == "NoCommits"
    assert len(cell.error["traceback"]) == 2 and "no commits yet" in cell.error["traceback"][0]
    assert not cell.stdout + cell.stderr
    usage = kernel.run("%ocman wt")
    assert usage.status == "error" and usage.error["ename"] == "InvalidRequest"
    assert len(usage.error["traceback"]) == 2


def test_await_in_a_cell_and_waiting_in_one(kernel: Kernel) -> None:
    code = "import asyncio\na, b = await asyncio.gather(ocman.aworktree('a'), ocman.aworktree('b'))\n"
    code += "a.branch + b.branch"
    assert kernel.run(code).result["text/plain"] == "'ab'"
    assert kernel.run("ocman.worktree('c').branch").result["text/plain"] == "'c'"


def test_watch_streams_while_it_runs(kernel: Kernel) -> None:
    kernel.run("fake.turn_seconds = 0.3")
    arrived: list[float] = []

    def look(message: dict[str, Any]) -> None:
        if message["header"]["msg_type"] == "stream":
            arrived.append(time.monotonic())

    cell = kernel.run('%ocman wt live "count"\n%ocman watch', look)
    assert "you: count" in cell.stdout and cell.stdout.endswith("did: count\n")
    assert arrived[-1] - arrived[0] > 0.2


def test_interrupting_a_watch_stops_watching_not_the_session(kernel: Kernel) -> None:
    kernel.run("fake.turn_seconds = 5")
    # Before `watch` listens the interrupt would meet something else.
    look = interrupt_once(kernel, lambda message: "it listens" in str(message["content"].get("text")))
    tell = """
import threading, time
def tell():
    while not fake.listeners: time.sleep(0.02)
    print("it listens", flush=True)
threading.Thread(target=tell, daemon=True).start()
"""
    code = '%ocman wt long "count"' + tell + "%ocman watch"
    begun = time.monotonic()
    cell = kernel.run(code, look)
    assert time.monotonic() - begun < 5 and cell.status == "error"
    assert cell.error["traceback"] == ["Stopped watching; the session goes on."]
    assert kernel.run("'abort' in fake.names()").result["text/plain"] == "False"
    deadline = time.monotonic() + 5
    while kernel.run("fake.listeners").result["text/plain"] != "[]":
        assert time.monotonic() < deadline, "the stream was not given back"


def test_interrupting_a_create_leaves_it_running_and_the_next_run_takes_it(kernel: Kernel) -> None:
    hold = """
import asyncio
from ocman_jupyter.notebook.worker import WORKER
async def make(): fake.hold = asyncio.Event()
WORKER.submit(make()).outcome.result()
"""
    kernel.run(hold)
    look = interrupt_once(kernel, lambda message: "Starting" in str(message["content"].get("data")))
    cell = kernel.run('%ocman wt slow "do it"', look)
    assert cell.status == "error" and "the work goes on" in cell.error["traceback"][0]
    kernel.run("WORKER._loop.call_soon_threadsafe(fake.hold.set)")
    deadline = time.monotonic() + 5
    while kernel.run("fake.finished").result["text/plain"] != "['create']":
        assert time.monotonic() < deadline
    again = kernel.run('%ocman wt slow "do it"')
    assert again.status == "ok" and "nothing was sent" in again.result["text/plain"]


def test_progress_is_one_display_that_is_updated(kernel: Kernel) -> None:
    kernel.run("""
import asyncio
async def long(name, progress):
    progress("Starting OpenCode", None)
    await asyncio.sleep(1.2)
fake.long = long
""")
    cell = kernel.run("%ocman ensure")
    assert cell.status == "ok"
    assert cell.displays[0]["text/plain"].startswith("ensure: Starting OpenCode (")
    assert cell.displays[-1]["text/plain"].startswith("ensure: done (")
    quick = kernel.run("%ocman sessions")
    assert not quick.displays


def test_completion_over_the_wire(kernel: Kernel) -> None:
    kernel.run("%ocman wt tab-branch")
    deadline = time.monotonic() + 10
    found: list[str] = []
    while "tab-branch" not in found and time.monotonic() < deadline:
        reply = kernel.client.complete("%ocman rm tab", reply=True, timeout=10)
        found = reply["content"]["matches"]
    assert "tab-branch" in found
