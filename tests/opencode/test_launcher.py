"""What a launch leaves on the disk, in the process table and in tmux."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ocman_jupyter.opencode import ending, processes
from ocman_jupyter.opencode.environment import launch_environment, with_plugin
from ocman_jupyter.opencode.launcher import (
    Launch,
    LaunchFiles,
    ProcessLauncher,
    choose,
    find_opencode,
    fresh_log,
    tail,
)
from ocman_jupyter.opencode.launches import session_name
from ocman_jupyter.opencode.registry import Record
from ocman_jupyter.opencode.shells import forgetful_shell
from ocman_jupyter.opencode.tmux import Tmux
from ocman_jupyter.opencode.versions import screen_takes_password

from .world import World, wait_for


def launch_of(tmp_path: Path, *argv: str, **environ: str) -> Launch:
    return Launch(
        "f00d", "ocman-x-1", argv, str(tmp_path), {"PATH": os.environ["PATH"], **environ},
        str(tmp_path / "log"), screen=False)


# --- the script ------------------------------------------------------------------------------


def test_the_script_is_for_this_user_alone_and_gone_when_it_runs(tmp_path: Path):
    files = LaunchFiles(tmp_path, "f00d")
    files.write(launch_of(tmp_path, "sh", "-c", "echo $SECRET", SECRET="it's\na $secret"), True)
    assert files.script.stat().st_mode & 0o777 == 0o600
    done = subprocess.run(["/bin/sh", str(files.script)], env={}, check=False)
    assert done.returncode == 0
    assert (tmp_path / "log").read_text() == "it's a $secret\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f00d.pid", "home", "log"]
    files.remove()
    assert not files.pid_file.exists()


def test_a_revoked_launch_never_starts(tmp_path: Path):
    files = LaunchFiles(tmp_path, "f00d")
    files.write(launch_of(tmp_path, "touch", "started"), True)
    script = files.script.read_bytes()
    assert files.revoke() and not files.revoke()
    # Even a shell that had opened it already does not get past its first line.
    subprocess.run(["/bin/sh"], input=script, env={}, check=False, stderr=subprocess.DEVNULL)
    assert not (tmp_path / "started").exists() and files.pid() is None


def test_the_script_says_who_it_became(tmp_path: Path):
    files = LaunchFiles(tmp_path, "f00d")
    files.write(launch_of(tmp_path, "sleep", "60"), True)
    child = subprocess.Popen(["/bin/sh", str(files.script)], env={})
    try:
        wait_for(lambda: files.pid() == child.pid)
    finally:
        child.kill()
        child.wait()


def test_a_missing_directory_starts_nothing_elsewhere(tmp_path: Path):
    files = LaunchFiles(tmp_path, "f00d")
    launch = launch_of(tmp_path, "touch", "started")
    files.write(Launch(**{**launch.__dict__, "cwd": str(tmp_path / "gone")}), True)
    assert subprocess.run(["/bin/sh", str(files.script)], env={}, cwd=tmp_path, check=False).returncode == 72
    assert not (tmp_path / "started").exists()


def test_names_that_a_shell_cannot_set_are_left_out(tmp_path: Path):
    files = LaunchFiles(tmp_path, "f00d")
    files.write(launch_of(tmp_path, "env", **{"BASH_FUNC_x%%": "() { :; }", "UID": "0", "GOOD": "1"}), True)
    assert subprocess.run(["/bin/sh", str(files.script)], env={}, check=False).returncode == 0
    assert "GOOD=1" in (tmp_path / "log").read_text()


# --- launchers -------------------------------------------------------------------------------


async def test_an_ended_child_does_not_stay_a_zombie(tmp_path: Path):
    launcher = ProcessLauncher()
    started = await launcher.launch(launch_of(tmp_path, "sh", "-c", "exit 7"), LaunchFiles(tmp_path, "f00d"))
    wait_for(lambda: not Path(f"/proc/{started.process.pid}").exists() or not started.process.runs)
    assert await launcher.exit_code(started) == 7
    with pytest.raises(ProcessLookupError):
        os.kill(started.process.pid, 0)


def test_launcher_is_as_set_and_says_why_not(world: World):
    world.settings.launcher = "auto"
    world.settings.tmux_command = "no-such-tmux"
    launcher, reason = choose(world.settings)
    assert launcher.kind == "process" and "not installed" in (reason or "")
    world.settings.tmux_command = "sh"
    world.settings.runtime_dir = "/tmp/" + "x" * 120
    launcher, reason = choose(world.settings)
    assert launcher.kind == "process" and "too long" in (reason or "")


def test_opencode_is_found_as_set_then_on_path_then_our_own(world: World, monkeypatch: pytest.MonkeyPatch):
    world.settings.opencode_command = ""
    own = world.settings.private_prefix / "node_modules" / ".bin" / "opencode"
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nowhere")
        assert find_opencode(world.settings) is None
        own.parent.mkdir(parents=True)
        own.symlink_to(world.program)
        assert find_opencode(world.settings) == str(own)
        patch.setenv("PATH", str(world.bin))
        assert find_opencode(world.settings) == str(world.program)
    world.settings.opencode_command = str(own)
    assert find_opencode(world.settings) == str(own)


def test_session_names_are_safe_and_of_one_repository_each(tmp_path: Path, runtime_dir: Path):
    names = []
    for number, name in enumerate(["a.b", "a:b", "#h ö", "-x", "A" * 200]):
        place = tmp_path / str(number)
        place.mkdir()
        names.append(session_name(World(place, runtime_dir, name).target()))
    assert len(set(names)) == 5
    assert all(name.isascii() and name.replace("-", "").isalnum() and len(name) < 60 for name in names)


@pytest.mark.skipif(subprocess.run(["which", "tmux"], capture_output=True).returncode != 0, reason="no tmux")
async def test_tmux_works_without_server_home_or_terminal(runtime_dir: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("HOME", "TERM", "LANG"):
        monkeypatch.delenv(name, raising=False)
    tmux = Tmux("tmux", str(runtime_dir / "own.sock"))
    assert await tmux.panes() == [] and await tmux.find("x") == []
    pane = await tmux.start("x", ["sleep", "60"])
    try:
        assert await tmux.find("x") == [pane]
        assert await tmux.find("") == []
        await tmux.end("$99")
        assert await tmux.find("x") == [pane]
    finally:
        await tmux.end(pane.session_id)
    await tmux.end(pane.session_id)
    assert await tmux.panes() == []
    assert processes.mark(pane.pid) is None or wait_for(lambda: processes.mark(pane.pid) is None)


# --- logs ------------------------------------------------------------------------------------


def test_of_a_long_log_only_the_end_is_read(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(b"x" * 5_000_000 + b"\n\x1b[31mthe end\x1b[0m \xff\n")
    assert tail(str(log)).endswith("the end \ufffd") and len(tail(str(log))) <= 8000
    assert tail(str(tmp_path / "none")) == ""


def test_a_new_log_is_private_and_the_old_one_is_kept(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("before")
    fresh_log(str(log))
    assert log.read_text() == "" and log.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "log.old").read_text() == "before"


# --- the environment -------------------------------------------------------------------------


def environment(shell: str | None = "/sh", **environ: str) -> tuple[dict[str, str], list[str]]:
    made, warnings = launch_environment(
        environ, worktrees_root="/w", launch_id="id", username="opencode", password="pw", shell=shell)
    return made, [code for code, _ in warnings]


def test_what_must_not_leak_is_dropped_and_the_rest_stays():
    made, _ = environment(
        GIT_DIR="x", GIT_SSH="x", TMUX="x", TMUX_PANE="x", JUPYTER_TOKEN="x", JUPYTERHUB_USER="x",
        JPY_API="x", JUPYTER_CONFIG_DIR="kept", OPENAI_API_KEY="kept", GITHUB_TOKEN="kept",
        OPENCODE_SERVER_PASSWORD="mine")
    assert {name for name, value in made.items() if value == "kept"} == {
        "JUPYTER_CONFIG_DIR", "OPENAI_API_KEY", "GITHUB_TOKEN"}
    assert "x" not in made.values() and made["OPENCODE_SERVER_PASSWORD"] == "pw"
    assert "OPENCODE_CONFIG_CONTENT" not in made


def test_project_configuration_is_turned_off_only_on_request():
    made, _ = launch_environment(
        {}, worktrees_root="/w", launch_id="id", username="u", password="p", shell="/sh",
        disable_project_config=True)
    assert made["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"
    assert "OPENCODE_DISABLE_PROJECT_CONFIG" not in environment()[0]


def test_without_a_forgetful_shell_the_plugin_hides_the_password_beside_the_users_own():
    theirs = '{"plugin": ["file:///theirs.js"], /* why */ "model": "a/b",}'
    made, codes = environment(None, OPENCODE_CONFIG_CONTENT=theirs)
    content = json.loads(made["OPENCODE_CONFIG_CONTENT"])
    assert content["model"] == "a/b" and content["plugin"][0] == "file:///theirs.js"
    assert content["plugin"][1].endswith("hide_password.mjs") and codes == []
    assert with_plugin(made["OPENCODE_CONFIG_CONTENT"])[0] == made["OPENCODE_CONFIG_CONTENT"]
    assert environment(None, OPENCODE_PURE="1")[1] == ["password_not_hidden"]


@pytest.mark.parametrize("broken", ["{", "[]", '{"plugin": 3}', "{plugin", '{"a":' * 5000 + "1" + "}" * 5000])
def test_a_broken_inline_configuration_stays_the_users(broken: str):
    made, codes = environment(None, OPENCODE_CONFIG_CONTENT=broken)
    assert made["OPENCODE_CONFIG_CONTENT"] == broken and codes == ["password_not_hidden"]


def test_the_forgetful_shell_keeps_its_name_and_forgets(tmp_path: Path):
    made = forgetful_shell({"SHELL": "/bin/sh", "PATH": os.environ["PATH"]}, tmp_path / "a b")
    assert made is not None and os.path.basename(made) == "sh"
    again = forgetful_shell({"SHELL": "/bin/sh", "PATH": os.environ["PATH"]}, tmp_path / "a b")
    assert made == again
    told = subprocess.run(
        [made, "-c", 'echo "$0 $1 $SHELL ${OPENCODE_SERVER_PASSWORD-none} $KEPT"', "name", "one"],
        env={"OPENCODE_SERVER_PASSWORD": "pw", "KEPT": "kept"}, capture_output=True, text=True, check=True)
    assert told.stdout == "name one /bin/sh none kept\n"


def test_a_shell_that_agents_do_not_get_is_replaced_as_opencode_does(tmp_path: Path):
    fish = tmp_path / "fish"
    fish.write_text("#!/bin/sh\n")
    fish.chmod(0o755)
    made = forgetful_shell({"SHELL": str(fish), "PATH": os.environ["PATH"]}, tmp_path)
    assert made is not None and os.path.basename(made) in ("bash", "sh")


def test_a_shell_that_does_not_work_is_not_used(tmp_path: Path):
    broken = tmp_path / "zsh"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert forgetful_shell({"SHELL": str(broken), "PATH": os.environ["PATH"]}, tmp_path / "shells") is None


def test_which_screens_take_a_password():
    assert not screen_takes_password("1.17.11") and screen_takes_password("1.18.33")
    assert screen_takes_password("2.0.0") and not screen_takes_password("0.9")


# --- ending ----------------------------------------------------------------------------------


def test_ending_takes_the_group_and_the_children_along():
    child = subprocess.Popen(
        ["sh", "-c", "sleep 60 & setsid sleep 60 & wait"], start_new_session=True, stdin=subprocess.DEVNULL)
    root = processes.current(child.pid)
    assert root is not None
    wait_for(lambda: len(processes.family(child.pid)) > 2)
    family = processes.family(child.pid)
    assert ending.end([root], grace=2)
    child.wait()
    assert not [one for one in family if one.runs]


def test_a_process_that_took_the_pid_is_not_touched():
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert ending.end([processes.Process(child.pid, "another")], grace=0.2)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_somebody_elses_listener_on_the_port_does_not_stand_in_the_way(world: World):
    stranger = world.user_starts()
    port = processes.listeners(stranger)[0].port
    assert processes.holder(port) == processes.current(stranger)
    assert ending.end([], "some-launch", port)
    assert world.running() == [stranger]


def test_a_zombie_is_no_process():
    child = subprocess.Popen(["true"])
    wait_for(lambda: processes.mark(child.pid) is None)
    child.wait()
    assert processes.current(child.pid) is None and processes.listeners(child.pid) == []


def test_a_mark_is_of_one_process_and_stays():
    mine = processes.mark(os.getpid())
    time.sleep(0.01)
    assert mine and mine == processes.mark(os.getpid()) != processes.mark(1)
    processes.send(processes.Process(os.getpid(), "another"), signal.SIGKILL)


# --- records ---------------------------------------------------------------------------------


def test_a_record_survives_the_store_and_newer_fields():
    record = Record(
        identity="/r/\udcff.git", state="running", root="/r", cwd="/r", owner="ocman", url="http://127.0.0.1:1",
        password="pw", pid=1)
    text = json.dumps({**json.loads(record.to_json()), "added_later": 1})
    assert Record.from_json(text) == record
    assert "pw" not in repr(record)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"state": "running"}', "null"])
def test_a_record_that_is_not_understood_is_none(text: str):
    assert Record.from_json(text) is None
