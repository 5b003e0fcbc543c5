"""Exactly one OpenCode per repository, whatever happens; each test is named for what must not."""


from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from ocman_jupyter import errors
from ocman_jupyter.opencode import instances as module
from ocman_jupyter.opencode import launches, processes
from ocman_jupyter.opencode.client import ConnectionRefused, OpenCodeClient
from ocman_jupyter.opencode.registry import Record

from .conftest import until
from .world import World, wait_for

needs_tmux = pytest.mark.skipif(
    subprocess.run(["which", "tmux"], capture_output=True, check=False).returncode != 0, reason="no tmux")


@pytest.fixture(params=["process", pytest.param("tmux", marks=needs_tmux)])
def either(request: pytest.FixtureRequest, world: World) -> World:
    """The world with each launcher."""
    world.settings.launcher = request.param
    return world


# --- launch, find, adopt ---------------------------------------------------------------------


async def test_ensure_launches_one_and_finds_it_again(either: World):
    async with either.instances() as instances:
        first, launched = await instances.ensure(either.target())
        again, relaunched = await instances.ensure(either.target())
    assert (launched, relaunched) == (True, False)
    assert first == again
    assert (first.owner, first.seeded, first.version) == ("ocman", True, "9.9.9")
    assert bool(first.tmux_session) == (either.settings.launcher == "tmux")
    start, = either.starts()
    assert (start["cwd"], start["pid"]) == (str(either.root), first.pid)


@pytest.mark.parametrize("place", ["runtime", "logs", "log"])
async def test_a_folder_of_ours_that_cannot_be_used_is_a_typed_error(either: World, place: str):
    settings, target = either.settings, either.target()
    folder = Path(settings.data_dir) / "logs"
    if place == "log":
        (folder / f"{launches.session_name(target)}.log.old" / "full").mkdir(parents=True)
        (folder / f"{launches.session_name(target)}.log").touch()
    else:
        in_the_way = Path(settings.runtime_dir) if place == "runtime" else folder
        in_the_way.parent.mkdir(parents=True, exist_ok=True)
        in_the_way.touch()
    async with either.instances() as instances:
        with pytest.raises(errors.StateUnusable) as caught:
            await instances.ensure(target)
        assert caught.value.details["path"].startswith((settings.data_dir, settings.runtime_dir))
    assert either.starts() == []


@pytest.mark.parametrize("address", ["http://127.0.0.1:99999", "http://[::1", "http://ü:1", "http://"])
async def test_an_odd_address_in_its_log_is_not_believed(world: World, address: str):
    world.behave(says=f"listening on {address} maybe")
    async with world.instances() as instances:
        instance, launched = await instances.ensure(world.target())
        assert launched and await instance.client.health() == "9.9.9"


@pytest.mark.parametrize("form", ["serve", "tui"])
async def test_both_forms_are_found_by_their_port(either: World, form: str):
    either.settings.instance_command = form
    async with either.instances() as instances:
        instance, _ = await instances.ensure(either.target())
    assert either.starts()[0]["argv"][0] == ("serve" if form == "serve" else "--port")
    assert processes.listens(instance.port)


async def test_warm_ensure_uses_no_lock_no_store_and_no_scan(world: World, monkeypatch: pytest.MonkeyPatch):
    async with world.instances() as instances:
        first, _ = await instances.ensure(world.target())
        scans = instances.discovery.scans

        def refuse(*arguments: object) -> None:
            raise AssertionError("the warm path must not come here")

        monkeypatch.setattr(module, "locked", refuse)
        monkeypatch.setattr(world.store, "run", refuse)
        found = await asyncio.gather(*(instances.ensure(world.target()) for _ in range(100)))
    assert {one for one, _ in found} == {first} and not any(launched for _, launched in found)
    assert instances.discovery.scans == scans


async def test_many_cold_callers_share_one_launch_and_one_scan(world: World):
    async with world.instances() as instances:
        found = await asyncio.gather(*(instances.ensure(world.target()) for _ in range(20)))
        assert instances.discovery.scans == 1
    assert len(world.starts()) == 1
    assert sum(launched for _, launched in found) == 1


async def test_several_processes_at_once_launch_one(world: World, tmp_path: Path):
    world.behave(delay=0.3)
    programs = [_program(world, tmp_path / f"answer-{number}") for number in range(5)]
    for program in programs:
        assert await asyncio.to_thread(program.wait, 60) == 0
    answers = [json.loads((tmp_path / f"answer-{number}").read_text()) for number in range(5)]
    assert len({answer["pid"] for answer in answers}) == 1
    assert sum(answer["launched"] for answer in answers) == 1
    assert len(world.starts()) == 1


async def test_an_instance_outlives_its_program_and_is_adopted(either: World, tmp_path: Path):
    program = _program(either, tmp_path / "answer")
    assert await asyncio.to_thread(program.wait, 30) == 0
    pid = json.loads((tmp_path / "answer").read_text())["pid"]
    async with either.instances() as instances:
        changes = []
        instances.on_change.append(lambda instance, change: changes.append((instance.pid, change)))
        assert [one.pid for one in await instances.known()] == [pid]
        again, launched = await instances.ensure(either.target())
        assert instances.discovery.scans == 0
    assert (again.pid, launched, len(either.starts())) == (pid, False, 1)
    assert changes == [(pid, "running")]


async def test_first_caller_gives_up_and_the_others_still_get_it(world: World):
    world.behave(delay=0.5)
    async with world.instances() as instances:
        first = asyncio.ensure_future(instances.ensure(world.target()))
        second = asyncio.ensure_future(instances.ensure(world.target()))
        await asyncio.to_thread(wait_for, world.starts)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        instance, _ = await second
    assert world.running() == [instance.pid]


async def test_waiting_is_told_second_by_second(world: World):
    world.behave(delay=1.2)
    said: list[str] = []
    async with world.instances() as instances:
        await instances.ensure(world.target(), lambda sentence, fraction: said.append(sentence))
    assert said[0] == "Starting OpenCode"
    assert "Starting OpenCode (1 s)" in said


async def test_a_failing_progress_listener_hurts_nobody(world: World):
    def broken(sentence: str, fraction: float | None) -> None:
        raise RuntimeError

    async with world.instances() as instances:
        _, launched = await instances.ensure(world.target(), broken)
    assert launched


async def test_a_request_that_is_invalid_launches_nothing(world: World):
    gone = dataclasses.replace(world.target(), cwd=str(world.root / "missing"))
    async with world.instances() as instances:
        with pytest.raises(errors.NoSuchDirectory):
            await instances.ensure(gone)
    assert world.starts() == []


@pytest.mark.parametrize("name", ["a b", "é", "two\nlines", "it's; $HOME `x`", "ends;", "-dash", "#{pid}"])
async def test_odd_paths_work(tmp_path: Path, runtime_dir: Path, name: str):
    world = World(tmp_path, runtime_dir, name)
    world.settings.launcher = "tmux"
    try:
        async with world.instances() as instances:
            await instances.ensure(world.target())
        assert world.starts()[0]["cwd"] == str(world.root)
    finally:
        world.clean_up()


async def test_a_root_that_no_rule_can_name_is_launched_unseeded(tmp_path: Path, runtime_dir: Path):
    world = World(tmp_path, runtime_dir, "what?")
    try:
        async with world.instances() as instances:
            instance, _ = await instances.ensure(world.target())
        assert not instance.seeded
        assert [code for code, _ in instance.warnings] == ["permission_not_seeded"]
    finally:
        world.clean_up()


# --- failures of a launch --------------------------------------------------------------------


async def test_exit_7_is_told_at_once_with_its_output(either: World):
    either.behave(exit=7)
    async with either.instances() as instances:
        begun = time.monotonic()
        with pytest.raises(errors.LaunchFailed) as caught:
            await instances.ensure(either.target())
        assert time.monotonic() - begun < 5
        assert caught.value.details["exit_code"] == 7
        assert "the cupboard is bare" in caught.value.details["output"]
        assert "a line before" in caught.value.details["output"]
        assert "the cupboard is bare" in caught.value.message
        assert await instances.registry.all() == []
    assert either.tmux("list-sessions") == ""


async def test_a_screen_that_exits_is_told_with_what_it_showed(either: World):
    either.settings.instance_command = "tui"
    either.behave(exit=3)
    async with either.instances() as instances:
        with pytest.raises(errors.LaunchFailed) as caught:
            await instances.ensure(either.target())
    assert caught.value.details["exit_code"] == 3
    assert "the cupboard is bare" in caught.value.details["output"]


@pytest.mark.parametrize("how", [{"deaf": True}, {"hang": True}, {"status": 401}])
async def test_one_that_never_answers_is_stopped_and_forgotten(world: World, how: dict):
    world.settings.launcher = "process" if "hang" in how else "auto"
    world.settings.launch_timeout = 1.0
    world.behave(**how)
    async with world.instances() as instances:
        with pytest.raises(errors.LaunchTimeout) as caught:
            await instances.ensure(world.target())
        assert "was stopped" in caught.value.message
        assert world.running() == []
        assert await instances.registry.all() == []
        world.settings.launch_timeout = 10.0
        world.behave()
        _, launched = await instances.ensure(world.target())
    assert launched


async def test_a_failure_reaches_all_who_wait_and_the_next_begins_anew(world: World):
    world.behave(exit=1, delay=0)
    async with world.instances() as instances:
        failed = await asyncio.gather(
            *(instances.ensure(world.target()) for _ in range(5)), return_exceptions=True)
        assert {type(one) for one in failed} == {errors.LaunchFailed}
        assert len(world.starts()) == 1
        world.behave()
        _, launched = await instances.ensure(world.target())
    assert launched


async def test_a_first_request_that_hangs_is_asked_again_on_a_new_connection(world: World):
    world.behave(silent_for=0.8)
    async with world.instances() as instances:
        begun = time.monotonic()
        await instances.ensure(world.target())
    assert time.monotonic() - begun < 8


async def test_an_invalid_configuration_is_told_in_opencodes_words(world: World):
    world.behave(path_status=400)
    async with world.instances() as instances:
        with pytest.raises(errors.LaunchFailed) as caught:
            await instances.ensure(world.target())
    assert "ConfigJsonError" in caught.value.details["text"]
    assert world.running() == []


async def test_one_that_answers_but_not_about_its_directory_is_told_so(world: World):
    world.settings.launch_timeout = 0.7
    world.behave(path_hangs=True)
    async with world.instances() as instances:
        with pytest.raises(errors.LaunchTimeout) as caught:
            await instances.ensure(world.target())
    assert "about its directory" in caught.value.message and world.running() == []


async def test_one_that_comes_up_elsewhere_is_stopped(world: World):
    world.behave(directory="/somewhere/else")
    async with world.instances() as instances:
        with pytest.raises(errors.LaunchFailed):
            await instances.ensure(world.target())
        assert await instances.registry.all() == []
    assert world.running() == []


async def test_opencode_missing_is_said(world: World):
    world.settings.opencode_command = str(world.tmp_path / "nowhere" / "opencode")
    async with world.instances() as instances:
        with pytest.raises(errors.OpenCodeMissing):
            await instances.ensure(world.target())


async def test_without_tmux_it_runs_as_a_plain_process(world: World):
    world.settings.launcher = "auto"
    world.settings.tmux_command = "no-such-tmux"
    async with world.instances() as instances:
        instance, launched = await instances.ensure(world.target())
    assert launched and instance.tmux_session is None
    assert os.getpgid(instance.pid) == instance.pid != os.getpgrp()


async def test_with_a_broken_tmux_it_runs_as_a_plain_process(world: World):
    broken = world.bin / "tmux"
    broken.write_text("#!/bin/sh\necho 'create session failed: no pty' >&2\nexit 1\n")
    broken.chmod(0o755)
    world.settings.launcher, world.settings.tmux_command = "auto", str(broken)
    async with world.instances() as instances:
        instance, launched = await instances.ensure(world.target())
        assert launched and instance.tmux_session is None
        world.settings.launcher = "tmux"
        await instances.stop(world.target())
        with pytest.raises(errors.LaunchFailed, match="no pty"):
            await instances.ensure(world.target())
    assert len(world.starts()) == 1


async def test_a_shim_is_launched_and_its_child_is_the_instance(world: World):
    real = world.program.rename(world.bin / "opencode-real")
    world.program.write_text(f'#!/bin/sh\n"{real}" "$@"\n')
    world.program.chmod(0o755)
    async with world.instances() as instances:
        instance, _ = await instances.ensure(world.target())
        assert instance.pid == world.starts()[0]["pid"]
        parent = psutil.Process(instance.pid).ppid()
        assert await instances.stop(world.target())
    assert world.running() == [] and processes.mark(parent) is None


# --- what is there already -------------------------------------------------------------------


async def test_a_users_own_is_used_and_never_doubled(world: World):
    pid = world.user_starts()
    async with world.instances() as instances:
        instance, launched = await instances.ensure(world.target())
        assert (instance.pid, instance.owner, launched) == (pid, "user", False)
        with pytest.raises(errors.NotOurs):
            await instances.stop(world.target())
        with pytest.raises(errors.NotOurs):
            await instances.restart(world.target())
    assert world.running() == [pid]


async def test_stop_leaves_a_users_own_that_is_in_no_record(world: World):
    pid = world.user_starts()
    async with world.instances() as instances:
        with pytest.raises(errors.NotOurs):
            await instances.stop(world.target())
        assert not await instances.stop(world.target(world.tmp_path / "code" / "another"))
    assert world.running() == [pid]


@pytest.mark.parametrize("where", ["src/deep", "../.worktrees/project/one"])
async def test_a_users_own_in_a_subfolder_or_worktree_serves_the_repository(world: World, where: str):
    place = world.root / where
    place.mkdir(parents=True)
    pid = world.user_starts(place)
    async with world.instances() as instances:
        instance, launched = await instances.ensure(world.target())
    assert (instance.pid, launched) == (pid, False)


async def test_a_symlinked_root_is_the_same_project(world: World):
    link = world.tmp_path / "link"
    link.symlink_to(world.root)
    pid = world.user_starts(link, PWD=str(link))
    async with world.instances() as instances:
        instance, launched = await instances.ensure(world.target())
    assert (instance.pid, launched) == (pid, False)


async def test_a_neighbour_with_a_longer_name_is_another_project(world: World):
    neighbour = world.root.with_name("project-mr-5")
    neighbour.mkdir()
    other = world.user_starts(neighbour)
    async with world.instances() as instances:
        instance, launched = await instances.ensure(world.target())
    assert launched and instance.pid != other


async def test_one_that_says_it_serves_another_project_is_not_used(world: World):
    pid = world.user_starts(FAKE_CWD="/somewhere/else")
    async with world.instances() as instances:
        instance, launched = await instances.ensure(world.target())
    assert launched and instance.pid != pid
    assert set(world.running()) == {pid, instance.pid}


async def test_two_of_a_users_own_are_always_the_same_one_with_a_warning(world: World):
    first = world.user_starts()
    second = world.user_starts()
    for _ in range(2):
        async with world.instances() as instances:
            instance, _ = await instances.ensure(world.target())
            await instances.registry.delete(world.target().identity)
            assert instance.pid == first
            (code, sentence), = [one for one in instance.warnings if one[0] == "several_instances"]
            assert str(second) in sentence
    assert set(world.running()) == {first, second}


async def test_one_that_wants_a_password_gets_ours_from_the_environment_or_is_left(world: World):
    pid = world.user_starts(OPENCODE_SERVER_PASSWORD="theirs")
    async with world.instances() as instances:
        with pytest.raises(errors.OpenCodeNeedsPassword) as caught:
            await instances.ensure(world.target())
        assert caught.value.details["pid"] == pid
    world.environ["OPENCODE_SERVER_PASSWORD"] = "theirs"
    async with world.instances() as instances:
        instance, launched = await instances.ensure(world.target())
        assert (instance.pid, launched) == (pid, False)
        assert "theirs" not in repr(instance)
        assert "theirs" not in repr(await instances.registry.get(world.target().identity))
    del world.environ["OPENCODE_SERVER_PASSWORD"]
    async with world.instances() as instances:
        instance, _ = await instances.ensure(world.target())  # the record knows it now
    assert instance.pid == pid and world.running() == [pid]


async def test_a_password_of_the_environment_that_cannot_be_sent_is_told(world: World):
    pid = world.user_starts()
    world.environ["OPENCODE_SERVER_PASSWORD"] = "a\udcff"  # bytes that are not UTF-8
    async with world.instances() as instances:
        with pytest.raises(errors.InvalidRequest) as caught:
            await instances.ensure(world.target())
        assert caught.value.details == {"field": "password"}
    assert world.running() == [pid]


@pytest.mark.parametrize("locked", [False, True])
async def test_a_second_port_of_an_opencode_does_not_speak_for_it(world: World, locked: bool):
    world.behave(second_port=True)
    pid = world.user_starts(**({"OPENCODE_SERVER_PASSWORD": "theirs"} if locked else {}))
    async with world.instances() as instances:
        if locked:
            with pytest.raises(errors.OpenCodeNeedsPassword):
                await instances.ensure(world.target())
        else:
            assert (await instances.ensure(world.target()))[0].pid == pid
    assert world.running() == [pid]


@pytest.mark.parametrize("how", [{"hang": True}, {"reset": True}, {"status": 500}])
async def test_an_unknown_one_that_is_unsure_is_left_and_none_is_launched_beside_it(
    world: World, how: dict, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "HEALTH_TRY", 0.2)
    pid = world.user_starts()
    world.behave(**how)
    async with world.instances() as instances:
        with pytest.raises(errors.OpenCodeUnreachable):
            await instances.ensure(world.target())
        assert await instances.registry.all() == []
    assert world.running() == [pid]


# --- connections -----------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True])
async def test_closing_in_the_middle_of_a_look_leaves_no_connection(
    world: World, known: bool, connections_closed: list
):
    world.user_starts()
    if known:
        async with world.instances() as instances:
            await instances.ensure(world.target())
    world.behave(hang=True)
    async with world.instances() as instances:
        before = len(connections_closed)
        looking = asyncio.create_task(instances.find(world.target()))
        await until(lambda: len(connections_closed) > before)
        looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking


async def test_closing_in_the_middle_of_a_launch_leaves_no_connection(world: World, monkeypatch: pytest.MonkeyPatch):
    asked = asyncio.Event()
    config = OpenCodeClient.config

    async def noted(client: OpenCodeClient, *args: Any, **options: Any) -> Any:
        asked.set()
        return await config(client, *args, **options)

    monkeypatch.setattr(OpenCodeClient, "config", noted)
    world.behave(config_hangs=True)
    async with world.instances() as instances:
        launching = asyncio.create_task(instances.ensure(world.target()))
        await asked.wait()
    with pytest.raises(asyncio.CancelledError):
        await launching


async def test_who_looks_at_the_same_time_shares_one_client(world: World, connections_closed: list):
    world.user_starts()
    async with world.instances() as instances:
        await instances.ensure(world.target())
    async with world.instances() as instances:
        identity = world.target().identity
        found = await asyncio.gather(*(instances.probe(identity) for _ in range(5)))
        assert all(one is found[0] for one in found) and instances.is_live(found[0])
        assert len([one for one in connections_closed if not one.closed]) <= 2, "one pool, and one for streams"
    assert not instances.is_live(found[0])


async def test_what_is_found_after_closing_is_closed(world: World):
    world.user_starts()
    async with world.instances() as instances:
        await instances.ensure(world.target())
    found = await instances.probe(world.target().identity)
    assert found is not None and instances.live() == []
    with pytest.raises(ConnectionRefused):
        await found.client.health()


# --- what was there --------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"hang": True}, {"reset": True}, {"status": 503}, {"status": 429}])
async def test_a_slow_one_is_unsure_and_left_alone(world: World, how: dict):
    async with world.instances() as instances:
        instance, _ = await instances.ensure(world.target())
        scans = instances.discovery.scans
        world.behave(**how)
        with pytest.raises((errors.OpenCodeUnreachable, errors.OpenCodeError)):
            await instances.ensure(world.target())
        assert (instances.discovery.scans, world.running()) == (scans, [instance.pid])
        world.behave()
        again, launched = await instances.ensure(world.target())
    assert (again, launched) == (instance, False)
    assert len(world.starts()) == 1


async def test_one_that_was_killed_is_replaced(either: World):
    async with either.instances() as instances:
        changes = []
        instances.on_change.append(lambda instance, change: changes.append((instance.pid, change)))
        first, _ = await instances.ensure(either.target())
        os.kill(first.pid, signal.SIGKILL)
        await asyncio.to_thread(wait_for, lambda: not either.running())
        second, launched = await instances.ensure(either.target())
    assert launched and either.running() == [second.pid]
    assert changes == [(first.pid, "running"), (first.pid, "stopped"), (second.pid, "running")]


async def test_a_users_own_that_ended_is_replaced_by_ours(world: World):
    pid = world.user_starts()
    async with world.instances() as instances:
        await instances.ensure(world.target())
        world.children[0].kill()
        world.children[0].wait()
        instance, launched = await instances.ensure(world.target())
    assert launched and instance.owner == "ocman" and instance.pid != pid


async def test_a_recycled_pid_and_port_are_not_ours(world: World):
    """After a reboot the record's pid is a stranger's, and another project's OpenCode has the port."""
    elsewhere = world.tmp_path / "code" / "elsewhere"
    elsewhere.mkdir()
    stranger = world.user_starts(elsewhere)
    port = processes.listeners(stranger)[0].port
    async with world.instances() as instances:
        await instances.registry.put(Record(
            identity=world.target().identity, state="running", root=str(world.root), cwd=str(world.root),
            owner="ocman", url=f"http://127.0.0.1:{port}", port=port, pid=stranger, pid_mark="boot:1"))
        instance, launched = await instances.ensure(world.target())
        assert launched and instance.port != port
        assert await instances.stop(world.target())
    assert world.running() == [stranger]


async def test_a_record_of_one_that_serves_another_project_is_dropped(world: World):
    elsewhere = world.tmp_path / "code" / "elsewhere"
    elsewhere.mkdir()
    stranger = world.user_starts(elsewhere)
    port = processes.listeners(stranger)[0].port
    async with world.instances() as instances:
        await instances.registry.put(Record(
            identity=world.target().identity, state="running", root=str(world.root), cwd=str(world.root),
            owner="user", url=f"http://127.0.0.1:{port}", port=port, pid=stranger,
            pid_mark=processes.mark(stranger) or ""))
        instance, launched = await instances.ensure(world.target())
    assert launched and instance.pid != stranger
    assert stranger in world.running()


async def test_a_bad_record_keeps_nothing_from_starting(world: World):
    await world.store.run(lambda db: db.execute(
        "INSERT INTO instances VALUES (?, ?)", (world.target().identity, '{"state": "flying"')))
    async with world.instances() as instances:
        assert await instances.known() == []
        _, launched = await instances.ensure(world.target())
    assert launched


async def test_a_moved_repository_gets_a_new_one_and_the_old_one_ends(world: World):
    async with world.instances() as instances:
        old, _ = await instances.ensure(world.target())
        world.behave(directory=str(world.root))  # as OpenCode does, it keeps to the path that it began with
        moved = world.root.rename(world.root.with_name("moved"))
        task = asyncio.ensure_future(instances.ensure(world.target(moved)))
        await asyncio.to_thread(wait_for, lambda: old.pid not in world.running())
        world.behave()
        new, launched = await task
    assert launched and world.running() == [new.pid]


@needs_tmux
async def test_a_tmux_session_without_a_server_in_it_is_replaced(world: World):
    world.settings.launcher = "tmux"
    name = launches.session_name(world.target())
    os.makedirs(world.settings.runtime_dir, 0o700)
    world.tmux("new-session", "-d", "-s", name, "sleep", "60")
    sleeper = int(world.tmux("list-panes", "-a", "-F", "#{pane_pid}"))
    async with world.instances() as instances:
        instance, launched = await instances.ensure(world.target())
    assert launched and instance.tmux_session == name
    assert processes.mark(sleeper) is None


# --- programs that die in the middle ---------------------------------------------------------


@pytest.mark.parametrize("at", ["before the script is read", "while it starts"])
async def test_a_launch_whose_program_was_killed_is_finished(either: World, tmp_path: Path, at: str):
    either.behave(delay=1.0)
    program = _program(either, tmp_path / "answer")
    if at == "while it starts":
        await asyncio.to_thread(wait_for, either.starts)
    else:
        runtime = Path(either.settings.runtime_dir)
        await asyncio.to_thread(wait_for, lambda: any(runtime.glob("*.sh")) or either.starts())
    program.kill()
    program.wait()
    async with either.instances() as instances:
        instance, _ = await instances.ensure(either.target())
        await asyncio.to_thread(wait_for, lambda: len(either.running()) == 1)
        assert either.running() == [instance.pid]
        assert len(either.starts()) == 1
        (record,) = await instances.registry.all()
        assert record.state == "running"
    assert not list(Path(either.settings.runtime_dir).glob("*.sh"))


async def test_a_launch_that_never_began_is_begun_anew(world: World):
    async with world.instances() as instances:
        await instances.registry.put(Record(
            identity=world.target().identity, state="launching", root=str(world.root), cwd=str(world.root),
            owner="ocman", launch_id="0123456789abcdef", launcher="process", launched_at=time.time()))
        _, launched = await instances.ensure(world.target())
    assert launched and len(world.running()) == 1


async def test_a_launch_that_nobody_can_finish_is_cleaned_up_and_begun_anew(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(launches, "FINISH_AT_LEAST", 0.5)
    world.settings.launch_timeout = 1.0
    world.behave(deaf=True)
    program = _program(world, tmp_path / "answer")
    await asyncio.to_thread(wait_for, world.starts)
    program.kill()
    program.wait()
    world.behave()
    world.settings.launch_timeout = 10.0
    later = time.time() + 3600
    monkeypatch.setattr(launches, "time", SimpleNamespace(time=lambda: later, monotonic=time.monotonic))
    async with world.instances() as instances:
        instance, launched = await instances.ensure(world.target())
    assert launched and world.running() == [instance.pid]
    assert len(world.starts()) == 2


async def test_a_pid_file_that_names_a_stranger_harms_nobody(world: World):
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        os.makedirs(world.settings.runtime_dir, 0o700)
        (Path(world.settings.runtime_dir) / "feed.pid").write_text(str(stranger.pid))
        async with world.instances() as instances:
            await instances.registry.put(Record(
                identity=world.target().identity, state="launching", root=str(world.root),
                cwd=str(world.root), owner="ocman", launch_id="feed", launcher="process",
                launched_at=time.time()))
            _, launched = await instances.ensure(world.target())
        assert launched and stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_a_stop_that_was_cut_short_is_finished_by_the_next_start(world: World):
    async with world.instances() as instances:
        first, _ = await instances.ensure(world.target())
        record = await instances.registry.get(world.target().identity)
        await instances.registry.put(dataclasses.replace(record, state="stopping"))
    async with world.instances() as instances:
        assert await instances.known() == []
        second, launched = await instances.ensure(world.target())
    assert launched and world.running() == [second.pid] and second.pid != first.pid


async def test_no_replacement_unless_the_stop_is_confirmed(world: World, monkeypatch: pytest.MonkeyPatch):
    async with world.instances() as instances:
        first, _ = await instances.ensure(world.target())
        with monkeypatch.context() as patch:
            patch.setattr(launches, "end", lambda *arguments: False)
            for attempt in (instances.stop, instances.restart, instances.ensure):
                with pytest.raises(errors.OpenCodeUnreachable, match="did not end"):
                    await attempt(world.target())
        assert world.running() == [first.pid] and len(world.starts()) == 1
        assert (await instances.registry.get(world.target().identity)).state == "stopping"
        second, launched = await instances.ensure(world.target())
    assert launched and world.running() == [second.pid]


# --- stop ------------------------------------------------------------------------------------


async def test_stop_ends_it_with_its_children_and_frees_the_port(either: World):
    either.behave(child="session")
    async with either.instances() as instances:
        instance, _ = await instances.ensure(either.target())
        children = psutil.Process(instance.pid).children()
        assert len(children) == 1
        assert await instances.stop(either.target())
        assert not processes.listens(instance.port)
        assert processes.mark(children[0].pid) is None
        assert await instances.registry.all() == [] and instances.live() == []
        assert not await instances.stop(either.target())
    assert either.tmux("list-sessions") == "" and either.running() == []


async def test_one_that_ignores_the_request_is_killed(either: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ocman_jupyter.opencode.ending.end.__defaults__", ("", 0, 0.4))
    either.behave(stubborn=True)
    async with either.instances() as instances:
        await instances.ensure(either.target())
        assert await instances.stop(either.target())
    assert either.running() == [] and either.tmux("list-sessions") == ""


@needs_tmux
async def test_stop_leaves_other_sessions_also_with_the_same_prefix(world: World):
    world.settings.launcher = "tmux"
    async with world.instances() as instances:
        instance, _ = await instances.ensure(world.target())
        others = [f"{instance.tmux_session}-2", instance.tmux_session[:-1], "work"]
        for other in others:
            world.tmux("new-session", "-d", "-s", other, "sleep", "60")
        assert await instances.stop(world.target())
        assert sorted(world.tmux("list-sessions", "-F", "#{session_name}").split()) == sorted(others)


async def test_stop_ends_nothing_that_took_the_pid(world: World):
    async with world.instances() as instances:
        await instances.ensure(world.target())
        record = await instances.registry.get(world.target().identity)
        await instances.registry.put(dataclasses.replace(
            record, pid_mark="another", launch_mark="another", launch_id="another"))
        assert not await instances.stop(world.target())
    assert len(world.running()) == 1


async def test_restart_gives_a_new_one(world: World):
    async with world.instances() as instances:
        first, _ = await instances.ensure(world.target())
        second = await instances.restart(world.target())
        third, launched = await instances.ensure(world.target())
    assert second.pid != first.pid and (third, launched) == (second, False)
    assert world.running() == [second.pid]


# --- what leaks nowhere ----------------------------------------------------------------------


async def test_secrets_are_in_no_command_line_and_no_file_that_stays(either: World):
    either.behave(delay=0.4)
    seen: list[str] = []
    async with either.instances() as instances:
        task = asyncio.ensure_future(instances.ensure(either.target()))
        while not task.done():
            for process in psutil.process_iter():
                try:
                    seen.append("\0".join(process.cmdline()))
                except psutil.Error:
                    continue
            await asyncio.sleep(0.01)
        instance, _ = await task
        password = instance.credentials[1]
        assert password and len(password) > 30
        assert either.starts()[0]["environ"]["OPENCODE_SERVER_PASSWORD"] == password
        assert not [line for line in seen if password in line]
        assert password not in repr(instance)
        leftovers = [path for path in Path(either.settings.runtime_dir).iterdir() if path.name != "tmux.sock"]
        assert leftovers == []
        log = Path(instance.log_path)
        assert password not in log.read_text() and log.stat().st_mode & 0o777 == 0o600
        await instances.stop(either.target())
        await instances.restart(either.target())
        assert instances.live()[0].credentials[1] != password


async def test_what_tmux_was_started_with_does_not_reach_opencode(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OF_THE_FIRST_CLIENT", "1")
    world.settings.launcher = "tmux"
    world.environ.update(
        GIT_DIR="/elsewhere/.git", GIT_INDEX_FILE="x", TMUX="/tmp/users", TMUX_PANE="%1", JUPYTER_TOKEN="t",
        JUPYTERHUB_API_TOKEN="h", JPY_SESSION_NAME="s", THEIRS="two\nlines 'and' \"quotes\" $HOME",
        PWD="/wrong")
    async with world.instances() as instances:
        await instances.ensure(world.target())
    environ = world.starts()[0]["environ"]
    assert environ["THEIRS"] == world.environ["THEIRS"]
    assert environ.get("PWD") == str(world.root)
    assert "OF_THE_FIRST_CLIENT" not in world.tmux("show-environment", "-g")
    leaked = [name for name in environ if name.startswith(("GIT_", "JUPYTERHUB_", "JPY_"))]
    assert not leaked and not {"OF_THE_FIRST_CLIENT", "JUPYTER_TOKEN", "TMUX", "TMUX_PANE"} & set(environ)


async def test_a_shell_in_opencodes_configuration_is_warned_of(world: World):
    world.behave(shell="/bin/zsh")
    async with world.instances() as instances:
        instance, _ = await instances.ensure(world.target())
    assert "password_not_hidden" in dict(instance.warnings)


async def test_a_screen_that_knows_no_password_gives_way_to_serve(world: World):
    world.settings.instance_command = "tui"
    world.behave(version="1.17.11")
    async with world.instances() as instances:
        instance, _ = await instances.ensure(world.target())
    assert world.starts()[0]["argv"][0] == "serve"
    assert "no_screen" in dict(instance.warnings)


# --- looks without a launch ------------------------------------------------------------------


async def test_probe_launches_nothing(world: World):
    async with world.instances() as instances:
        assert await instances.probe(world.target().identity) is None
        instance, _ = await instances.ensure(world.target())
    async with world.instances() as instances:
        assert await instances.probe(world.target().identity) == instance
        world.behave(hang=True)
        with pytest.raises(errors.OpenCodeUnreachable):
            await instances.probe(world.target().identity)
        assert len(world.starts()) == 1


async def test_find_sees_a_users_own_and_launches_nothing(world: World):
    async with world.instances() as instances:
        assert await instances.find(world.target()) is None
        pid = world.user_starts()
        found = await instances.find(world.target())
    assert found is not None and found.pid == pid


def _program(world: World, answer: Path) -> subprocess.Popen[bytes]:
    """Another program of the same user that asks for the instance, as a kernel or a shell does."""
    values = {name: getattr(world.settings, name) for name in (
        "data_dir", "runtime_dir", "opencode_command", "launcher", "launch_timeout", "probe_timeout",
        "request_timeout")}
    text = (
        "import asyncio, json, os, sys\n"
        "from ocman_jupyter.opencode.instances import Instances\n"
        "from ocman_jupyter.opencode.target import Target\n"
        "from ocman_jupyter.settings import OcmanSettings\n"
        "from ocman_jupyter.store import Store\n"
        "given = json.loads(sys.argv[1])\n"
        "root = given['root']\n"
        "def belongs(directory):\n"
        "    return directory == root or directory.startswith(root + os.sep)\n"
        "target = Target(root + '/.git', root, root, given['worktrees'], belongs)\n"
        "async def main():\n"
        "    settings, store = OcmanSettings(**given['settings']), Store(given['store'])\n"
        "    instances = Instances(settings, store, given['environ'])\n"
        "    instance, launched = await instances.ensure(target)\n"
        "    with open(given['answer'], 'w') as file:\n"
        "        json.dump({'pid': instance.pid, 'launched': launched}, file)\n"
        "    await instances.close()\n"
        "asyncio.run(main())\n"
    )
    given = {
        "root": str(world.root), "worktrees": world.target().worktrees_root, "settings": values,
        "store": str(world.store.path), "environ": world.environ, "answer": str(answer)}
    return subprocess.Popen(
        [sys.executable, "-c", text, json.dumps(given)], cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])})
