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
