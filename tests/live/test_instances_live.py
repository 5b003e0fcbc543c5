"""The one OpenCode of a repository with the real thing: every version, both forms, with and without tmux."""


from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from ocman_jupyter.opencode import processes
from ocman_jupyter.opencode.instances import Instance, Instances
from ocman_jupyter.opencode.launcher import tmux_server
from ocman_jupyter.opencode.target import Target
from ocman_jupyter.opencode.versions import opencode_version, screen_takes_password
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store
from tests.live import waiting
from tests.live.waiting import eventually

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

NO_TMUX = pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux")
LAUNCHERS = ["process", pytest.param("tmux", marks=NO_TMUX)]


class Place:
    """A real repository and all that an `Instances` needs to serve it."""

    def __init__(self, root: Path, binary: Path, tmp_path: Path, launcher: str, form: str = "serve") -> None:
        self.root = root
        self.worktrees = root.parent / ".worktrees" / root.name
        self.settings = OcmanSettings(
            data_dir=str(tmp_path / "state"), opencode_command=str(binary), launcher=launcher,
            instance_command=form, launch_timeout=120.0, probe_timeout=10.0)
        self.store = Store(tmp_path / "state" / "store.sqlite")

    @property
    def target(self) -> Target:
        def belongs(directory: str) -> bool:
            place = Path(os.path.realpath(directory))
            return any(place == top or top in place.parents for top in (self.root, self.worktrees))

        return Target(str(self.root / ".git"), str(self.root), str(self.root), str(self.worktrees), belongs)

    @asynccontextmanager
    async def instances(self) -> AsyncIterator[Instances]:
        """Stops what runs at the end."""
        made = Instances(self.settings, self.store)
        try:
            yield made
        finally:
            await made.stop(self.target)
            await made.close()
            self.store.close()


@pytest.fixture
def place(
    repository: Callable[..., Path], tmp_path: Path, offline: dict[str, str]
) -> Callable[..., Place]:
    return lambda binary, launcher="process", form="serve": Place(
        repository(), binary, tmp_path.resolve(), launcher, form)


def opencodes(place: Place) -> list[int]:
    """Pids of all OpenCodes in the repository, also of those that do not listen."""
    return waiting.opencodes(place.root)


async def said_by_bash(instance: Instance, command: str) -> str:
    """Let the scripted agent run a command; gives what it saw."""
    session = await instance.client.create_session(instance.root)
    await instance.client.prompt(session.id, f"RUN bash: {command}")

    async def output() -> str | None:
        page = await instance.client.messages(session.id)
        for message in page.messages:
            for part in message["parts"]:
                state = part.get("state") or {}
                if part["type"] == "tool" and state.get("status") == "completed":
                    return state["output"]
        return None

    return await eventually(output, 120)


@pytest.mark.parametrize("form", ["serve", "tui"])
@pytest.mark.parametrize("launcher", LAUNCHERS)
async def test_launch_use_heal_and_stop(
    opencode_binary: Path, launcher: str, form: str, place: Callable[..., Place]
):
    here = place(opencode_binary, launcher, form)
    version = await opencode_version(str(opencode_binary))
    said: list[str] = []
    async with here.instances() as instances:
        first, launched = await instances.ensure(here.target, lambda sentence, _: said.append(sentence))
        assert launched and first.version == version and first.seeded and first.owner == "ocman"
        assert said[0] == "Starting OpenCode"
        assert opencodes(here) == [first.pid]
        words = psutil.Process(first.pid).cmdline()
        screen = form == "tui" and screen_takes_password(version or "")
        assert ("serve" in words) is not screen
        assert ("no_screen" in dict(first.warnings)) is (form == "tui" and not screen)
        assert bool(first.tmux_session) is (launcher == "tmux")

        again, relaunched = await instances.ensure(here.target)
        assert again == first and not relaunched and instances.discovery.scans == 1

        os.kill(first.pid, signal.SIGKILL)
        second, launched = await instances.ensure(here.target)
        assert launched and second.pid != first.pid and opencodes(here) == [second.pid]

        assert await instances.stop(here.target)
        assert opencodes(here) == []
        # Somebody else on this machine may have taken the port since.
        assert processes.holder(second.port) != second.process
        if launcher == "tmux":
            tmux, _ = tmux_server(here.settings)
            assert tmux is not None and await tmux.panes() == []


async def test_agents_do_not_see_the_password(opencode_binary: Path, place: Callable[..., Place]):
    here = place(opencode_binary)
    async with here.instances() as instances:
        instance, _ = await instances.ensure(here.target)
        password = instance.credentials[1]
        assert psutil.Process(instance.pid).environ()["OPENCODE_SERVER_PASSWORD"] == password
        assert not [process for process in psutil.process_iter(["cmdline"])
                    if password in " ".join(process.info["cmdline"] or [])]
        seen = await said_by_bash(instance, 'echo "[$OPENCODE_SERVER_PASSWORD]"; env | sort')
        assert seen.startswith("[]") and password not in seen and "PATH=" in seen
        session = await instance.client.create_session(str(here.root))
        await instance.client.shell(session.id, "env > seen-by-shell")
        text = (here.root / "seen-by-shell").read_text()
        assert password not in text and "PATH=" in text


async def test_a_launch_waits_for_no_npm(
    opencode_binary: Path, place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
):
    """Where npm has no network, a plugin in the configuration costs more than a minute per directory."""
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    here = place(opencode_binary)
    here.settings.launch_timeout = 45.0
    async with here.instances() as instances:
        instance, _ = await instances.ensure(here.target)
        assert not (await instance.client.config(str(here.root))).get("plugin")


async def test_a_plugin_of_the_users_is_loaded(
    opencode_binary: Path, place: Callable[..., Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plugin, loaded = tmp_path / "theirs.mjs", tmp_path / "loaded"
    plugin.write_text(
        'import fs from "fs"\n'
        f'export const Theirs = async () => (fs.writeFileSync({json.dumps(str(loaded))}, "yes"), {{}})\n')
    content = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", json.dumps({**content, "plugin": [plugin.as_uri()]}))
    here = place(opencode_binary)
    async with here.instances() as instances:
        await instances.ensure(here.target)
        await eventually(lambda: _exists(loaded), 120)


async def _exists(path: Path) -> bool:
    return path.exists()


async def test_without_a_forgetful_shell_our_plugin_hides_the_password_beside_theirs(
    opencode_binary: Path, place: Callable[..., Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ocman_jupyter.opencode.launches.forgetful_shell", lambda *arguments: None)
    plugin = tmp_path / "theirs.mjs"
    plugin.write_text("export const Theirs = async () => ({})\n")
    content = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", json.dumps({**content, "plugin": [plugin.as_uri()]}))
    here = place(opencode_binary)
    async with here.instances() as instances:
        instance, _ = await instances.ensure(here.target)
        seen = await said_by_bash(instance, 'echo "[$OPENCODE_SERVER_PASSWORD]"; env')
        assert seen.startswith("[]") and instance.credentials[1] not in seen
        plugins = (await instance.client.config(str(here.root)))["plugin"]
        assert plugins[0] == plugin.as_uri() and plugins[1].endswith("/hide_password.mjs")


async def test_the_users_rules_hold_beside_the_seed(
    opencode_binary: Path, place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
):
    theirs = {"external_directory": "deny", "bash": {"rm *": "deny"}, "*": "ask"}
    monkeypatch.setenv("OPENCODE_PERMISSION", json.dumps(theirs))
    here = place(opencode_binary)
    async with here.instances() as instances:
        instance, _ = await instances.ensure(here.target)
        assert instance.seeded
        agents = await instance.client.agents(str(here.root))
        rules = next(agent["permission"] for agent in agents if agent["name"] == "build")
        ours = f"{here.worktrees}/**"
        said = [(rule["permission"], rule["pattern"], rule["action"]) for rule in rules]
        assert said.index(("bash", "rm *", "deny")) < said.index(("*", "*", "ask"))
        assert said.index(("*", "*", "ask")) < said.index(("external_directory", ours, "allow"))


async def test_an_invalid_configuration_is_told_in_opencodes_words(
    opencode_binary: Path, place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
):
    from ocman_jupyter.errors import LaunchFailed

    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", '{"model": broken')
    here = place(opencode_binary)
    async with here.instances() as instances:
        with pytest.raises(LaunchFailed) as caught:
            await instances.ensure(here.target)
    assert "ConfigJsonError" in caught.value.details["text"] and opencodes(here) == []


async def test_stopping_a_busy_one_takes_its_tools_along(opencode_binary: Path, place: Callable[..., Place]):
    here = place(opencode_binary, "tmux" if shutil.which("tmux") else "process")
    async with here.instances() as instances:
        instance, _ = await instances.ensure(here.target)
        session = await instance.client.create_session(str(here.root))
        await instance.client.prompt(session.id, "RUN bash: sleep 97 & sleep 97")
        sleepers = await eventually(lambda: _sleepers(instance.pid), 120)
        assert await instances.stop(here.target)
        assert not [one for one in sleepers if one.runs]


async def _sleepers(pid: int) -> list[processes.Process]:
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if child.cmdline() == ["sleep", "97"]:
                found.append(processes.Process(child.pid, processes.mark(child.pid) or ""))
    return found if len(found) == 2 else []


async def test_a_users_own_screen_is_used_and_left(opencode_binary: Path, place: Callable[..., Place]):
    here = place(opencode_binary)
    child = subprocess.Popen(
        [str(opencode_binary), "--port", "0"], cwd=here.root, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await eventually(lambda: _listens(child.pid), 60)
        instances = Instances(here.settings, here.store)
        instance, launched = await instances.ensure(here.target)
        assert (instance.pid, instance.owner, launched, instance.seeded) == (child.pid, "user", False, False)
        await instances.close()
        assert child.poll() is None and opencodes(here) == [child.pid]
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        here.store.close()


async def _listens(pid: int) -> bool:
    return bool(processes.listeners(pid))


ASK = """
import asyncio, json, os, sys
from ocman_jupyter.opencode.instances import Instances
from ocman_jupyter.opencode.target import Target
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store
root, settings, store = json.loads(sys.argv[1])
def belongs(directory):
    return directory == root or directory.startswith(root + os.sep)
async def main():
    instances = Instances(OcmanSettings(**settings), Store(store))
    target = Target(root + "/.git", root, root, root + "-worktrees", belongs)
    instance, launched = await instances.ensure(target)
    print(json.dumps([instance.pid, launched]), flush=True)
    await instances.close()
asyncio.run(main())
"""


def ask_from_another_program(here: Place) -> subprocess.Popen[bytes]:
    names = ("data_dir", "opencode_command", "launcher", "launch_timeout", "probe_timeout")
    settings = {name: getattr(here.settings, name) for name in names}
    top = str(Path(__file__).resolve().parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", ASK, json.dumps([str(here.root), settings, str(here.store.path)])], cwd=top,
        env={**os.environ, "PYTHONPATH": top}, stdout=subprocess.PIPE)


async def test_ten_processes_launch_one_and_heal_it(opencode_binary: Path, place: Callable[..., Place]):
    here = place(opencode_binary, "tmux" if shutil.which("tmux") else "process")
    async with here.instances() as instances:
        answers: list[Any] = []
        for _ in range(2):
            programs = [ask_from_another_program(here) for _ in range(10)]
            answers = [json.loads((await asyncio.to_thread(one.communicate))[0]) for one in programs]
            assert len({pid for pid, _ in answers}) == 1
            assert sum(launched for _, launched in answers) == 1
            assert opencodes(here) == [answers[0][0]]
            os.kill(answers[0][0], signal.SIGKILL)
        adopted, launched = await instances.ensure(here.target)
        assert launched and opencodes(here) == [adopted.pid]


async def test_a_killed_launch_is_finished(opencode_binary: Path, place: Callable[..., Place]):
    here = place(opencode_binary)
    async with here.instances() as instances:
        program = ask_from_another_program(here)
        await eventually(lambda: _some(here), 60)
        program.kill()
        program.communicate()
        pids = opencodes(here)
        instance, launched = await instances.ensure(here.target)
        assert [instance.pid] == pids == opencodes(here) and not launched


async def _some(here: Place) -> list[int]:
    return opencodes(here)
