"""The shell command: answers, errors, exit codes, interrupts."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter import __version__
from ocman_jupyter.errors import LaunchFailed, NoCommits, OpenCodeUnreachable
from ocman_jupyter.hosts.host import Check
from tests.cli.conftest import Answer
from tests.notebook.fake import FakeHost, loss, permission

Ocman = Callable[..., Answer]


def test_json_is_exactly_the_rest_answer(ocman: Ocman, fake: FakeHost) -> None:
    code, out, err = ocman("wt", "fix", "-p", "do it", "--json")
    answer = json.loads(out)
    assert code == 0 and err == ""
    assert set(answer) == {
        "session_id",
        "worktree_path",
        "branch",
        "repo_root",
        "host",
        "base",
        "reused",
        "branch_existed",
        "carried",
        "setup",
        "inherited_permissions",
        "session_reused",
        "prompt_sent",
        "warnings",
        "session",
    }
    assert answer["prompt_sent"] is True
    for verb, keys in {
        "worktrees": {"repo_root", "default_base", "worktrees", "sessions_elsewhere"},
        "sessions": {"sessions", "hidden"},
        "asks": {"asks"},
        "doctor": {"checks"},
        "stop": {"stopped"},
    }.items():
        assert set(json.loads(ocman(verb, "--json")[1])) == keys
    assert json.loads(ocman("prompt", "fix", "-p", "x", "--json")[1]).keys() == {"queued"}
    assert json.loads(ocman("wt", "other", "--dry-run", "--json")[1])["plan"]["branch"] == "other"
    assert json.loads(ocman("session", "--json")[1])["status"] == "idle"
    assert json.loads(ocman("ensure", "--json")[1])["launched"] is True


def test_json_error_is_the_error_object_on_stdout(ocman: Ocman, fake: FakeHost) -> None:
    fake.fail = NoCommits()
    code, out, err = ocman("wt", "fix", "--json")
    assert code == 1 and err == "" and json.loads(out) == NoCommits().to_json()


def test_error_for_people_goes_to_stderr_with_code_hint_and_output(ocman: Ocman, fake: FakeHost) -> None:
    fake.fail = LaunchFailed(details={"output": "line 1\n\x1b[31mcannot open config\x1b[0m\n"})
    code, out, err = ocman("ensure")
    assert code == 1 and out == ""
    assert "error [launch_failed]: OpenCode ended while it was starting." in err
    assert "cannot open config" in err and "\x1b" not in err


@pytest.mark.parametrize("debug", [False, True])
def test_a_fault_of_ours_is_a_line_and_its_place_only_when_asked_for(
    ocman: Ocman, fake: FakeHost, monkeypatch: pytest.MonkeyPatch, debug: bool
) -> None:
    monkeypatch.setenv("OCMAN_DEBUG", "1" if debug else "")
    fake.fail = RuntimeError("boom\nmore")
    code, out, err = ocman("sessions")
    assert code == 1 and out == "" and "error [internal]: RuntimeError: boom more\n" in err
    assert ("Traceback" in err) == debug and ("OCMAN_DEBUG=1" in err) != debug
    fake.fail = RuntimeError("boom")
    code, out, err = ocman("sessions", "--json")
    assert code == 1 and json.loads(out)["code"] == "internal" and "boom" in json.loads(out)["message"]
    assert ("Traceback" in err) == debug


@pytest.mark.parametrize(
    "words",
    [
        ("wt", "bad\udcff"),
        ("worktrees", "bad\udcff"),
        ("-C", "bad\udcff", "sessions"),
        ("prompt", "x", "-p", "bad\udcff"),
        ("rm", "x", "--rescue", "bad\udcff"),
    ],
)
def test_what_is_not_utf8_is_refused_in_one_sentence(
    ocman: Ocman, fake: FakeHost, words: tuple[str, ...]
) -> None:
    code, out, err = ocman(*words)
    assert (code, out) == (1, "") and not fake.calls
    assert err == 'error [invalid_request]: "bad\\xff" is not valid UTF-8.\n'


def test_a_working_directory_that_is_not_utf8_is_refused(command: Any, tmp_path: Path) -> None:
    bad = os.fsencode(tmp_path) + b"/bad\xff"
    os.mkdir(bad)
    out, err = (process := command("worktrees", fake="", cwd=bad)).communicate(timeout=30)
    assert process.returncode == 1 and "Traceback" not in err and "bad\\xff\" is not valid UTF-8" in err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("watch", "nope"), "`ocman-jupyter sessions`"),
        (("rm", "nope"), "`ocman-jupyter worktrees`"),
        (("reply", "nope", "once"), "`ocman-jupyter asks`"),
        (("--server", "http://127.0.0.1:9", "asks"), "Leave --server out."),
    ],
)
def test_hints_say_the_words_of_the_shell(
    ocman: Ocman, fake: FakeHost, words: tuple[str, ...], hint: str
) -> None:
    code, _, err = ocman(*words)
    assert code == 1 and hint in err and "%ocman" not in err
    assert "%ocman" not in json.loads(ocman(*words, "--json")[1])["hint"]


def test_a_hint_that_names_both_names_the_shell_only(ocman: Ocman, fake: FakeHost) -> None:
    fake.fail = OpenCodeUnreachable(hint="Start it with `ocman-jupyter ensure` or `%ocman ensure`.")
    assert "  Start it with `ocman-jupyter ensure`.\n" in ocman("sessions")[2]


def test_empty_lists_say_the_words_of_the_shell(ocman: Ocman, fake: FakeHost) -> None:
    for verb in ("worktrees", "sessions"):
        assert 'Make one: ocman-jupyter wt BRANCH "what to do"' in ocman(verb)[1]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("nope",),
        ("wt",),
        ("wt", "a", "b", "c"),
        ("wt", "a", "--nope"),
        ("prompt", "x"),
        ("reply", "x", "maybe"),
        ("attach", "--json"),
        ("wt", "a", "x", "-p", "y"),
        ("help", "nope"),
        ("local",),
        ("merge",),
    ],
)
def test_usage_errors_exit_2_and_say_how(ocman: Ocman, fake: FakeHost, words: tuple[str, ...]) -> None:
    code, out, err = ocman(*words)
    assert code == 2 and out == "" and not fake.calls
    assert err.startswith("ocman-jupyter: ") and "usage: " in err and len(err.splitlines()) == 2


@pytest.mark.parametrize(
    "words", [("--help",), ("-h",), ("help",), ("help", "wt"), ("wt", "-h"), ("rm", "--help")]
)
def test_help(ocman: Ocman, fake: FakeHost, words: tuple[str, ...]) -> None:
    code, out, err = ocman(*words)
    assert code == 0 and err == "" and "ocman-jupyter" in out and not fake.calls


def test_help_lists_setup_and_demo(ocman: Ocman) -> None:
    assert "setup" in ocman("--help")[1] and "demo" in ocman("--help")[1]


def test_setup_and_demo_get_their_own_words(ocman: Ocman, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    seen: list[Any] = []

    def main(argv: list[str]) -> int:
        seen.append(argv)
        return 3

    monkeypatch.setitem(sys.modules, "ocman_jupyter.setup", SimpleNamespace(main=main))
    monkeypatch.setitem(sys.modules, "ocman_jupyter.demo.run", SimpleNamespace(main=main))
    assert ocman("setup", "--force", "--help")[0] == ocman("demo", "--check")[0] == 3
    assert seen == [["--force", "--help"], ["--check"]]


def test_version(command: Any) -> None:
    out, _ = (process := command("--version")).communicate(timeout=30)
    assert process.returncode == 0 and out.strip() == __version__


def test_directories_are_seen_from_where_it_was_asked(
    ocman: Ocman, fake: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ocman("wt", "fix")
    assert fake.given("create").directory == str(tmp_path)
    ocman("-C", "sub", "wt", "fix")
    assert fake.given("create").directory == str(tmp_path / "sub")
    ocman("ensure", "other", "-C", "sub")
    assert fake.given("ensure") == str(tmp_path / "sub" / "other")
    ocman("worktrees", "~")
    assert fake.given("worktrees") == os.path.expanduser("~")
    ocman("-C", "sub", "rm", "./w", "--rescue", "saved")
    assert fake.given("remove").path == str(tmp_path / "sub" / "w")
    assert fake.given("remove").rescue_to == str(tmp_path / "sub" / "saved")


def test_result_of_a_create_reads_well(ocman: Ocman, fake: FakeHost) -> None:
    code, out, err = ocman("wt", "fix", "do it")
    assert code == 0 and "Worktree fix made" in out and "The prompt was sent" in out
    assert "Use --again" in ocman("wt", "fix", "do it")[1]


def test_prompt_that_waits_prints_the_answer_and_asks_to_stderr(ocman: Ocman, fake: FakeHost) -> None:
    ocman("wt", "fix")
    fake.turn_ask = permission()
    code, out, err = ocman("prompt", "fix", "-p", "count", "--wait")
    assert (code, out) == (0, "did: count\n")
    assert "! needs you: outside the worktree: /etc/hosts" in err and "ocman-jupyter reply per_1" in err


def test_prompt_whose_turn_fails_exits_1(ocman: Ocman, fake: FakeHost) -> None:
    ocman("wt", "fix")
    fake.turn_error = "model error 429"
    code, out, err = ocman("prompt", "fix", "-p", "count", "--wait", "--json")
    assert code == 1 and json.loads(out)["code"] == "opencode_error" and "429" in json.loads(out)["message"]


def test_prompt_that_waits_says_why_a_turn_failed_outside_of_any_message(ocman: Ocman, fake: FakeHost) -> None:
    ocman("wt", "fix")
    fake.broken = "no such model"
    code, out, err = ocman("prompt", "fix", "-p", "count", "--wait")
    assert (code, out) == (1, "") and "error [opencode_error]: The turn failed: no such model" in err


def test_prompt_that_waits_launches_an_opencode_that_is_gone(ocman: Ocman, fake: FakeHost) -> None:
    ocman("wt", "fix")
    fake.dead = True
    assert ocman("prompt", "fix", "-p", "count", "--wait")[:2] == (0, "did: count\n")
    assert fake.names().count("prompt") == 1


def test_watch_of_a_turn_that_failed_exits_1_and_says_why(ocman: Ocman, fake: FakeHost) -> None:
    fake.add_session("/w", "broken", status="error", error="no such model")
    begun = time.monotonic()
    code, out, err = ocman("watch", "broken")
    assert code == 1 and "! failed: no such model" in out and time.monotonic() - begun < 5
    assert err == "error [opencode_error]: The turn failed: no such model\n"
    code, out, err = ocman("watch", "broken", "--json")
    assert code == 1 and json.loads(out)["error"] == "no such model" and err == ""


def test_watch_prints_until_it_rests(ocman: Ocman, fake: FakeHost) -> None:
    ocman("wt", "fix", "count \x1b[2J")
    code, out, _ = ocman("watch", "fix")
    assert code == 0 and out.startswith("you: count") and out.endswith("did: count \n") and "\x1b" not in out


def test_watch_without_a_session_takes_the_newest(ocman: Ocman, fake: FakeHost) -> None:
    ocman("wt", "one", "first")
    ocman("wt", "two", "second")
    assert "second" in ocman("watch")[1]


def test_rm_shows_the_reasons_and_asks_nothing(ocman: Ocman, fake: FakeHost) -> None:
    ocman("wt", "fix")
    fake.refuses = [loss(), loss("untracked")]
    code, out, err = ocman("rm", "fix")
    assert code == 1 and out == ""
    assert "ignored: Ignored files would go. (2.0 MB)" in err and "out/x.csv" in err
    assert "--accept ignored,untracked" in err and "--rescue DIR" in err
    assert "--rescue" not in ocman("rm", "fix", "--rescue", "saved")[2]


def test_reply_without_a_name_leaves_other_repositories_alone(ocman: Ocman, fake: FakeHost) -> None:
    fake.add_session("/other", "Fix the loader", id="ses_1", repo_root="/other")
    fake.pending["per_1"] = permission()
    code, _, err = ocman("reply", "once")
    assert code == 1 and "/other" in err and "`ocman-jupyter reply per_1 once|always|reject`" in err
    assert fake.pending and "  in /other" in ocman("asks")[1]
    assert set(json.loads(ocman("asks", "--json")[1])["asks"][0]) == set(permission().model_dump())
    assert ocman("reply", "per_1", "once")[0] == 0


def test_rm_accepts_by_name(ocman: Ocman, fake: FakeHost) -> None:
    ocman("wt", "fix")
    assert ocman("rm", "fix", "--accept", "ignored", "--accept", "untracked,locked")[0] == 0
    assert fake.given("remove").accept == ["ignored", "untracked", "locked"]
    code, _, err = ocman("rm", "/repo/.worktrees/fix", "--accept", "everything")
    assert code == 1 and "invalid_request" in err and "accept" in err


def test_doctor_exits_1_when_something_is_an_error(ocman: Ocman, fake: FakeHost) -> None:
    assert ocman("doctor")[0] == 0
    fake.checks = [
        Check(name="git", status="ok", message="2.39"),
        Check(name="tmux", status="warning", message="not there", hint="apt-get install tmux"),
    ]
    code, out, _ = ocman("doctor")
    assert code == 0 and "warning" in out and "tmux: apt-get install tmux" in out
    fake.checks += [Check(name="opencode", status="error", message="not there", hint="ocman-jupyter setup")]
    assert ocman("doctor")[0] == ocman("doctor", "--json")[0] == 1


@pytest.mark.parametrize("url", ["http://x/?token=s3cret", "http://u:s3cret@x/"])
def test_a_server_url_with_a_secret_is_refused(ocman: Ocman, fake: FakeHost, url: str) -> None:
    code, out, err = ocman("--server", url, "sessions", "--json")
    assert code == 1 and json.loads(out)["code"] == "invalid_request" and "s3cret" not in out + err


def test_a_server_that_does_not_answer_is_said(ocman: Ocman, fake: FakeHost) -> None:
    code, _, err = ocman("--server", "http://127.0.0.1:9", "prompt", "ses_" + "0" * 26, "-p", "x")
    assert code == 1 and "server_unreachable" in err and not fake.calls


# --- as a process ----------------------------------------------------------------------------

HOLD = """
async def hold(name, progress):
    import asyncio
    progress("Starting OpenCode", None)
    print("holding", file=sys.stderr, flush=True)
    await asyncio.sleep(60)
fake.long = hold
"""


def interrupted(process: subprocess.Popen[str], stream: Any, word: str) -> tuple[int, str]:
    seen = ""
    while word not in seen:
        line = stream.readline()
        assert line, seen
        seen += line
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - begun < 10
    return process.returncode, seen + out + err


def test_interrupting_a_create_is_clean_and_says_what_goes_on(command: Any) -> None:
    process = command("wt", "fix", fake=HOLD)
    code, text = interrupted(process, process.stderr, "holding")
    assert code == 130 and "Traceback" not in text and "the next command uses it" in text


def test_interrupting_a_watch_stops_watching(command: Any) -> None:
    fake = "fake.turn_seconds = 30\nimport threading\ns = fake.add_session('/w', 't', status='busy')\n"
    fake += "fake.history[s.id].append({'info': {'id': 'm', 'role': 'user'}, "
    fake += "'parts': [{'id': 'p', 'type': 'text', 'text': 'hello'}]})\n"
    process = command("watch", fake=fake)
    code, text = interrupted(process, process.stdout, "you: hello")
    assert code == 130 and "Stopped watching; the session goes on." in text and "Traceback" not in text


def test_a_reader_that_goes_away_is_no_error(command: Any) -> None:
    fake = "[fake.add_session('/w', 'title ' * 20) for _ in range(5000)]"
    process = command("sessions", "--json", fake=fake)
    assert process.stdout is not None and process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=30) == 1 and "Traceback" not in err and "BrokenPipe" not in err


def test_a_terminal_that_cannot_say_a_name_gets_it_escaped(command: Any) -> None:
    env = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    process = command("sessions", fake="fake.add_session('/w', 'zażółć')", env=env)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0 and "za\\u017c" in out and err == ""


def on_a_terminal(**env: str) -> str:
    """What ``doctor`` prints where stdout is a terminal."""
    leader, follower = pty.openpty()
    fake = "from ocman_jupyter.hosts.host import Check\n"
    fake += "fake.checks.append(Check(name='x', status='error', message='m'))"
    code = f"import sys\nfrom tests.notebook.fake import install\nfake = install()\n{fake}\n"
    code += "from ocman_jupyter.cli import main\nsys.exit(main(['doctor']))"
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "PYTHONPATH": root, **env},
    )
    os.close(follower)
    text = b""
    while True:
        try:
            piece = os.read(leader, 10_000)
        except OSError:
            break
        if not piece:
            break
        text += piece
    process.wait(timeout=30)
    os.close(leader)
    return text.decode()


def test_colour_only_on_a_terminal_and_not_with_no_color(command: Any) -> None:
    assert "\x1b[31merror" in on_a_terminal()
    assert "\x1b" not in on_a_terminal(NO_COLOR="1")
    process = command("doctor", fake="")
    assert "\x1b" not in process.communicate(timeout=30)[0]


def test_not_a_repository_for_real(command: Any, tmp_path: Path) -> None:
    process = command("worktrees", "--json", cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1 and json.loads(out)["code"] == "not_a_repository", err
