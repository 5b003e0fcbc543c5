"""git is started in one place: with a clean environment, within limits, and its errors are understood."""


from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from ocman_jupyter.errors import GitMissing, IndexLocked, NoSuchDirectory, NotARepository
from ocman_jupyter.git.command import GitFailed


async def test_git_variables_of_a_hook_do_not_lead_to_another_repository(
    domain, repository, git, monkeypatch
):
    here, other = repository("here"), repository("other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    monkeypatch.setenv("GIT_COMMON_DIR", str(other / ".git"))
    found = await domain.resolve(here)
    assert found.root == str(here)
    added = await domain.add(here, "feature")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"):
        monkeypatch.delenv(name)
    assert Path(added.path).parent.parent.parent == here.parent
    assert git(other, "branch", "--list") == "* main"
    assert "bare = true" not in (other / ".git" / "config").read_text()


async def test_reads_run_neither_hooks_nor_a_planted_file_system_monitor(domain, repository, git, tmp_path):
    root = repository()
    planted = tmp_path / "planted"
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    planted.chmod(0o755)
    git(root, "config", "core.fsmonitor", str(planted))
    await domain.listed(root)
    assert not (tmp_path / "ran").exists()


async def test_reads_leave_the_index_alone(domain, repository):
    root = repository(files={"a.txt": "a"})
    index = root / ".git" / "index"
    os.utime(root / "a.txt", (1, 1))  # git would refresh the index
    before = index.stat().st_mtime_ns
    assert (await domain.listed(root))["project"].changes.modified == 0
    assert index.stat().st_mtime_ns == before


async def test_no_git_is_said_as_such(make_domain, repository):
    root = repository()
    domain = make_domain(git_command="/nowhere/git")
    with pytest.raises(GitMissing):
        await domain.resolve(root)
    assert await domain.git.version() is None


async def test_version_tells_path_and_number(domain):
    path, number = await domain.git.version()
    assert os.path.isabs(path)
    assert number[0].isdigit()


async def test_a_read_that_hangs_is_ended_at_its_deadline(make_domain, repository, wrapper):
    domain = make_domain(git_command=wrapper("sleep 60"), git_timeout=0.3)
    began = time.monotonic()
    with pytest.raises(GitFailed, match="did not finish within"):
        await domain.git.run("status", cwd=str(repository()))
    assert time.monotonic() - began < 10


async def test_a_cancelled_read_leaves_no_process(make_domain, repository, wrapper, tmp_path):
    domain = make_domain(git_command=wrapper(f"echo $$ > {tmp_path}/pid; sleep 60"))
    task = asyncio.ensure_future(domain.git.run("status", cwd=str(repository())))
    pid = await _content(tmp_path / "pid")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


async def test_no_more_processes_at_once_than_configured(make_domain, repository, wrapper, tmp_path):
    (tmp_path / "running").mkdir()
    script = f"touch {tmp_path}/running/$$; ls {tmp_path}/running | wc -l >> {tmp_path}/counts; sleep 0.05\n"
    script += f"rm {tmp_path}/running/$$"
    domain = make_domain(git_command=wrapper(script), git_processes=2)
    await asyncio.gather(*(domain.git.run("--version", cwd="/") for _ in range(10)))
    counts = [int(line) for line in (tmp_path / "counts").read_text().split()]
    assert len(counts) == 10
    assert max(counts) <= 2


async def test_a_worktree_that_another_git_is_just_making_makes_no_command_fail(
    make_domain, repository, wrapper, tmp_path
):
    said = "fatal: failed to read .git/worktrees/other/commondir: Success"
    script = f'case "$*" in *worktree*) if [ ! -e {tmp_path}/once ]; then touch {tmp_path}/once;'
    domain = make_domain(git_command=wrapper(f"{script} echo '{said}' >&2; exit 128; fi;; esac"))
    assert list(await domain.listed(repository())) == ["project"]


async def test_a_daemon_that_a_hook_leaves_behind_does_not_hold_us(domain, repository, tmp_path):
    from .conftest import hook

    root = repository()
    hook(root, "post-checkout", f"sleep 20 & echo $! > {tmp_path}/daemon")
    began = time.monotonic()
    added = await domain.add(root, "feature")
    try:
        assert time.monotonic() - began < 10
        assert Path(added.path, "README.md").exists()
    finally:
        os.kill(int((tmp_path / "daemon").read_text()), 9)


async def test_a_held_index_lock_is_told_with_its_age_and_left(domain, repository):
    root = repository()
    lock = root / ".git" / "index.lock"
    lock.touch()
    os.utime(lock, (time.time() - 100, time.time() - 100))
    with pytest.raises(IndexLocked) as caught:
        await domain.git.run("reset", "--hard", cwd=str(root), write=True)
    assert 99 <= caught.value.details["age_seconds"] < 200
    assert caught.value.details["path"] == str(lock)
    assert lock.exists()


async def test_a_refusal_for_ownership_shows_git_s_text_and_the_path(make_domain, repository, wrapper):
    root = repository()
    text = f"fatal: detected dubious ownership in repository at '{root}'"
    domain = make_domain(git_command=wrapper(f'echo "{text}" >&2; exit 128'))
    with pytest.raises(NotARepository) as caught:
        await domain.resolve(root)
    assert caught.value.message == text
    assert f"safe.directory '{root}'" in caught.value.hint


async def test_a_directory_that_vanished_is_no_internal_error(domain, tmp_path):
    with pytest.raises(NoSuchDirectory):
        await domain.git.run("status", cwd=str(tmp_path / "gone"))


async def _content(path: Path) -> str:
    deadline = time.monotonic() + 10
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < deadline, f"{path} did not appear"
        await asyncio.sleep(0.01)
    return path.read_text()


# --- output that is handed on as it comes -----------------------------------------------------------


async def test_output_is_handed_on_in_pieces(domain, repository):
    root = repository(files={f"f{number}": "x" for number in range(100)})
    pieces = []
    done = await domain.git.run("ls-files", "-z", cwd=str(root), take=lambda piece: pieces.append(piece) or True)
    assert (done.code, done.out) == (0, b"")
    assert len(b"".join(pieces).split(b"\0")) == 101


async def test_who_has_enough_ends_it(make_domain, repository, wrapper, tmp_path):
    domain = make_domain(git_command=wrapper(f"echo $$ > {tmp_path}/pid; yes; exit 3"))
    root = str(repository())
    taken = []
    done = await asyncio.wait_for(domain.git.run("log", cwd=root, take=lambda piece: taken.append(piece)), 20)
    assert (done.code, len(taken)) == (0, 1)
    assert _gone(int(await _content(tmp_path / "pid")))


async def test_a_fault_of_the_taker_ends_it_and_is_told(make_domain, repository, wrapper, tmp_path):
    domain = make_domain(git_command=wrapper(f"echo $$ > {tmp_path}/pid; yes"))

    def take(piece):
        raise RuntimeError("of the taker")

    with pytest.raises(RuntimeError, match="of the taker"):
        await asyncio.wait_for(domain.git.run("log", cwd=str(repository()), take=take), 20)
    assert _gone(int(await _content(tmp_path / "pid")))


async def test_a_failure_after_some_output_is_a_failure(make_domain, repository, wrapper):
    domain = make_domain(git_command=wrapper("echo some; echo 'fatal: /r/.git/worktrees/x/HEAD' >&2; exit 128"))
    taken = []
    with pytest.raises(GitFailed):
        await domain.git.run("log", cwd=str(repository()), take=lambda piece: taken.append(piece) or True)
    assert taken == [b"some\n"], "what was handed on is not handed on again"


async def test_a_read_whose_output_nobody_waits_for_any_more_is_ended(make_domain, repository, wrapper, tmp_path):
    domain = make_domain(git_command=wrapper(f"echo $$ > {tmp_path}/pid; sleep 60"), git_timeout=0.3)
    with pytest.raises(GitFailed, match="did not finish within"):
        await domain.git.run("log", cwd=str(repository()), take=lambda piece: True)
    assert _gone(int(await _content(tmp_path / "pid")))


async def test_a_private_index_is_used_and_the_own_one_left_alone(domain, repository, git, tmp_path):
    root = repository(files={"a": "1"})
    before = (root / ".git" / "index").read_bytes()
    index = str(tmp_path / "index")
    await domain.git.run("read-tree", "HEAD", cwd=str(root), index=index)
    await domain.git.run("rm", "--cached", "a", cwd=str(root), index=index)
    done = await domain.git.run("ls-files", cwd=str(root), index=index)
    assert done.out == b""
    assert (root / ".git" / "index").read_bytes() == before


async def test_diff_options_of_the_environment_do_not_reach_git(domain, repository, monkeypatch):
    root = repository(files={"a": "1\n2\n3\n"})
    (root / "a").write_text("1\nX\n3\n")
    monkeypatch.setenv("GIT_DIFF_OPTS", "-u0")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert " 1\n-2\n" in (await domain.git.run("diff", cwd=str(root))).text


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
