"""The Python API: light to import, the same waited for and awaited."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ocman_jupyter as ocman
from ocman_jupyter.errors import InvalidRequest
from ocman_jupyter.notebook import api
from ocman_jupyter.notebook.client import InProcessClient
from ocman_jupyter.notebook.rest import RestClient
from tests.notebook.fake import FakeHost, install


def python(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **env},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_light() -> None:
    code = (
        "import sys; import ocman_jupyter;"
        "heavy = {'httpx', 'pydantic', 'psutil', 'tornado', 'IPython', 'traitlets', 'asyncio'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert python(code).strip() == "[]"


def test_load_ext_brings_in_nothing_heavy() -> None:
    code = (
        "import sys; from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance();"
        "before = set(sys.modules); s.run_line_magic('load_ext', 'ocman_jupyter');"
        "heavy = {'httpx', 'pydantic', 'ocman_jupyter.hosts.host', 'ocman_jupyter.git', 'jupyter_server'};"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    assert python(code).strip() == "[]"


def test_every_verb_has_its_twin_and_its_help() -> None:
    for verb in ocman._VERBS:
        waiting, awaited = getattr(ocman, verb), getattr(ocman, "a" + verb)
        assert callable(waiting) and inspect.iscoroutinefunction(awaited)
        assert waiting.__doc__ and awaited.__doc__
    assert "directory" in inspect.signature(ocman.worktree).parameters
    assert not {"self", "progress", "say"} & set(inspect.signature(ocman.worktree).parameters)
    assert {"worktree", "aworktree", "OcmanError", "NoCommits"} <= set(dir(ocman))
    with pytest.raises(AttributeError):
        ocman.nothing  # noqa: B018


def test_errors_are_there_by_name() -> None:
    assert issubclass(ocman.NoCommits, ocman.OcmanError) and ocman.NoCommits.code == "no_commits"


def test_waiting(fake: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = ocman.worktree("fix", prompt="do it")
    assert fake.given("create").directory == str(tmp_path) and made.prompt_sent
    assert ocman.watch().answer == "did: do it"
    assert ocman.prompt(None, "more", wait=True).answer == "did: more"
    assert ocman.worktrees()[0].branch == "fix" and len(ocman.sessions()) == 1
    assert ocman.session(title="here").title == "here"
    ocman.ensure("sub")
    assert fake.given("ensure") == str(tmp_path / "sub")
    assert ocman.doctor().healthy and len(ocman.asks()) == 0
    assert ocman.remove("fix").removed


async def test_awaited_in_a_running_loop(fake: FakeHost) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.ensure_future(tick())
    made, other = await asyncio.gather(ocman.aworktree("a", "one"), ocman.aworktree("b", prompt="two"))
    assert made.branch == "a" and other.branch == "b"
    assert (await ocman.awatch(made.session_id, quiet=True)).answer == "did: one"
    assert (await ocman.aprompt(other.session_id, "three", wait=True)).answer == "did: three"
    assert len(await ocman.aworktrees()) == 2
    assert (await ocman.aabort(made.session_id)).id == made.session_id
    ticking.cancel()
    assert ticks > 10


async def test_waiting_functions_work_where_a_loop_runs(fake: FakeHost) -> None:
    assert ocman.worktree("fix").branch == "fix"


async def test_a_caller_that_gives_up_does_not_stop_the_create(fake: FakeHost) -> None:
    from ocman_jupyter.notebook.worker import WORKER

    async def hold() -> asyncio.Event:
        fake.hold = asyncio.Event()
        return fake.hold

    held = await asyncio.wrap_future(WORKER.submit(hold()).outcome)
    task = asyncio.ensure_future(ocman.aworktree("fix"))
    deadline = time.monotonic() + 5
    while "create" not in fake.names() and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    WORKER._loop.call_soon_threadsafe(held.set)  # type: ignore[union-attr]
    while not fake.finished and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert fake.finished == ["create"] and not fake.cancelled


def test_a_wrong_word_is_a_typed_error_that_names_it(fake: FakeHost) -> None:
    with pytest.raises(InvalidRequest, match="session"):
        ocman.worktree("fix", session="sometimes")
    for empty in (
        lambda: ocman.prompt("x", "  "),
        lambda: ocman.worktree("x", ""),
        lambda: ocman.session(prompt=""),
    ):
        with pytest.raises(InvalidRequest, match="empty"):
            empty()
    assert not {"create", "create_session", "prompt"} & set(fake.names())
    with pytest.raises(ocman.NoSuchHost):
        ocman.worktree("fix", host="elsewhere")


def test_the_last_session_is_the_default(fake: FakeHost) -> None:
    with pytest.raises(ocman.NoSuchSession, match="no session in this repository yet"):
        ocman.abort()
    fake.add_session("/w", "old", created="2020-01-01T00:00:00Z")
    newest = fake.add_session("/w", "new")
    assert ocman.abort().id == newest.id
    made = ocman.worktree("fix")
    assert ocman.abort().id == made.session_id


def test_a_working_directory_that_is_gone_is_a_typed_error(
    fake: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(InvalidRequest, match="gone"):
        ocman.worktrees()


def test_a_server_among_the_ancestors_is_used_and_local_is_asked_for(
    fake: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(os.environ["JUPYTER_RUNTIME_DIR"])
    folder.mkdir(parents=True)
    record = {"pid": os.getppid(), "url": "http://127.0.0.1:9/", "token": "s3cret"}
    (folder / f"jpserver-{os.getppid()}.json").write_text(json.dumps(record))
    api.DESK.use(None)
    assert isinstance(api.DESK.verbs().client, RestClient)
    with pytest.raises(ocman.ServerUnreachable) as caught:  # said, and nothing is done in process instead
        ocman.worktree("fix")
    assert "create" not in fake.names() and "%ocman local" in (caught.value.hint or "")
    assert "s3cret" not in repr(caught.value.to_json())
    assert "in process" in repr(ocman.local())
    assert ocman.worktree("fix").branch == "fix" and isinstance(api.DESK.verbs().client, InProcessClient)
    assert "127.0.0.1:9" in repr(ocman.local(False))


def test_a_process_that_stays_adopts_what_runs(fake: FakeHost) -> None:
    api.DESK.use(None)
    api.DESK.verbs()
    deadline = time.monotonic() + 5
    while "start" not in fake.names() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "start" in fake.names()


def test_a_forked_child_connects_anew(fake: FakeHost) -> None:
    ocman.worktree("fix")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            install()
            os.write(write, ocman.worktree("child").branch.encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 100) == b"child"
    os.close(read)
    os.close(write)


def test_progress_is_one_line_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    from ocman_jupyter.notebook import live

    lines: list[str] = []

    class Line:
        def update(self, text: str) -> None:
            lines.append(text)

        finish = update

    async def work(reports: Any) -> int:
        reports.progress("Starting \x1b[2JOpenCode", 0.5)
        await asyncio.sleep(0.9)
        return 1

    monkeypatch.setattr(live, "SHOW_AFTER", 0.0)
    assert live.call(work, "fix-loader", line=Line()) == 1
    assert lines[0] == "fix-loader: Starting OpenCode 50% (0 s)"
    assert lines[-1].startswith("fix-loader: done (0.")
    assert len(lines) >= 3
