"""The list tells each worktree's true state, and costs little."""


from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from ocman_jupyter import errors
from ocman_jupyter.git.records import Worktree

IDENTITY = ("-c", "user.name=T", "-c", "user.email=t@e")


def age(*places: Path | str) -> None:
    """Make all files look as if they were not touched just now.  ctime cannot be set: wait it out."""
    newest = 0.0
    for place in places:
        for folder, _, names in os.walk(place):
            for name in names:
                newest = max(newest, os.lstat(os.path.join(folder, name)).st_ctime)
    time.sleep(max(0.0, newest + 0.15 - time.time()))


async def settle(domain) -> None:
    """Wait until what is remembered in the background is remembered."""
    scans = list(domain.worktrees._statuses._scans.values())
    if scans:
        await asyncio.wait(scans)


async def test_every_field_is_told(domain, repository, git):
    root = repository()
    added = await domain.add(root, "x")
    Path(added.path, "README.md").write_text("changed")
    Path(added.path, "new").write_text("")
    listed = await domain.listed(root)
    assert list(listed) == ["project", "x"]
    main, x = listed["project"], listed["x"]
    head = git(root, "rev-parse", "HEAD")
    assert main == Worktree(
        path=str(root),
        name="project",
        branch="main",
        head=head,
        is_main=True,
        state="ok",
        prunable=False,
        detached=False,
        locked=False,
        lock_reason=None,
        made_by_ocman=False,
        base=None,
        changes={"modified": 0, "untracked": 0, "conflicted": 0},
        ahead=0,
        behind=0,
        merged="unknown",
        operation=None,
        last_activity=main.last_activity,
    )
    assert x.model_dump(exclude={"last_activity"}) == {
        "path": added.path,
        "name": "x",
        "branch": "x",
        "head": head,
        "is_main": False,
        "state": "ok",
        "prunable": False,
        "detached": False,
        "locked": False,
        "lock_reason": None,
        "made_by_ocman": True,
        "base": {"ref": "main", "sha": head, "age_seconds": None},
        "changes": {"modified": 1, "untracked": 1, "conflicted": 0},
        "ahead": 0,
        "behind": 0,
        "merged": "no",
        "operation": None,
    }
    assert x.last_activity.endswith("Z")


async def test_the_default_base_is_told(domain, repository, git):
    root = repository()
    base, _ = await domain.worktrees.list(await domain.resolve(root), changes=False)
    assert (base.ref, base.sha) == ("main", git(root, "rev-parse", "main"))


async def test_an_empty_repository_can_be_listed(domain, repository):
    root = repository(commit=False)
    repo = await domain.resolve(root)
    base, listed = await domain.worktrees.list(repo)
    assert base is None
    assert (listed[0].head, listed[0].branch, listed[0].state) == (None, "main", "ok")


async def test_states(domain, repository, git, tmp_path):
    root = repository()
    paths = {
        name: (await domain.add(root, name)).path for name in ("ok", "gone", "stick", "lost", "away", "apart")
    }
    shutil.rmtree(paths["gone"])
    git(root, "worktree", "lock", "--reason", "on a\nstick", paths["stick"])
    shutil.rmtree(paths["stick"])
    os.unlink(Path(paths["lost"]) / ".git")
    Path(paths["away"]).rename(Path(paths["away"]).with_name("there"))
    git(paths["apart"], "checkout", "-q", "--detach")
    (root.parent / ".worktrees" / "project" / "plain").mkdir()
    git(root, "init", "-q", str(root.parent / ".worktrees" / "project" / "own"))
    shutil.copytree(paths["ok"], root.parent / ".worktrees" / "project" / "copy")
    listed = await domain.listed(root)
    told = {name: one.state for name, one in listed.items()}
    assert told == {
        "project": "ok",
        "ok": "ok",
        "gone": "missing",
        "stick": "missing",
        "lost": "not_a_worktree",
        "there": "moved",
        "apart": "ok",
        "plain": "not_a_worktree",
        "own": "not_a_worktree",
        "copy": "not_a_worktree",
    }
    assert (listed["gone"].prunable, listed["gone"].locked, listed["gone"].changes) == (True, False, None)
    assert (listed["stick"].locked, listed["stick"].lock_reason) == (True, "on a\nstick")
    assert (listed["there"].branch, listed["there"].path.endswith("/there")) == ("away", True)
    assert (listed["apart"].detached, listed["apart"].branch) == (True, None)
    assert listed["plain"].head is None and not listed["plain"].made_by_ocman


async def test_after_the_main_checkout_moved_its_worktrees_are_shown_as_moved(domain, repository):
    root = repository()
    await domain.add(root, "x")
    root.rename(root.parent / "renamed")
    listed = await domain.listed(root.parent / "renamed")
    assert [(one.name, one.state) for one in listed.values()] == [("renamed", "ok"), ("x", "moved")]


async def test_after_all_moved_together_its_worktrees_are_shown_as_moved(domain, repository, tmp_path):
    root = repository()
    await domain.add(root, "x")
    root.parent.rename(tmp_path / "elsewhere")
    listed = await domain.listed(tmp_path / "elsewhere" / "project")
    assert [(one.name, one.state, one.branch) for one in listed.values()] == [
        ("project", "ok", "main"),
        ("x", "moved", "x"),
    ]


@pytest.mark.parametrize("operation", ["merge", "rebase", "cherry-pick", "revert", "bisect"])
async def test_an_operation_under_way(domain, repository, git, operation):
    root = repository(files={"a": "1\n"})
    added = await domain.add(root, "x")
    for place in (root, added.path):
        Path(place, "a").write_text(f"{place}\n")
        git(place, *IDENTITY, "commit", "-q", "-a", "-m", "change")
    arguments = {
        "merge": ["merge", "main"],
        "rebase": ["rebase", "main"],
        "cherry-pick": ["cherry-pick", "main"],
        "revert": ["revert", "--no-edit", "main"],
        "bisect": ["bisect", "start", "HEAD", "HEAD~1"],
    }
    subprocess.run(["git", "-C", added.path, *IDENTITY, *arguments[operation]], capture_output=True)
    listed = (await domain.listed(root))["x"]
    assert listed.operation == operation
    assert (await domain.listed(root))["project"].operation is None


async def test_changes_of_every_kind_are_counted(domain, repository, git):
    root = repository(
        files=dict.fromkeys(("a", "b", "c", "d e", "é", "new\nline"), "1\n") | {".gitignore": "*.log\n"}
    )
    place = Path((await domain.add(root, "x")).path)
    (place / "a").write_text("changed")
    git(place, "rm", "-q", "b")
    (place / "c").unlink()
    git(place, "mv", "d e", "f g")
    (place / "é").write_text("changed")
    (place / "new\nline").write_text("changed")
    (place / "un\ntracked").write_text("")
    (place / "folder").mkdir()
    (place / "folder" / "one").write_text("")
    (place / "out.log").write_text("")
    changes = (await domain.listed(root))["x"].changes
    assert (changes.modified, changes.untracked, changes.conflicted) == (7, 2, 0)


async def test_looking_for_changes_leaves_the_processor_to_others(make_domain, repository, wrapper, tmp_path):
    root, told = repository(), tmp_path / "nice"
    look = f'case "$*" in *status*) until [ "$(nice)" != {os.nice(0)} ]; do sleep 0.01; done; nice > {told};; esac'
    await make_domain(git_command=wrapper(look)).listed(root)
    assert int(told.read_text()) == max(10, os.nice(0))


async def test_configuration_does_not_hide_untracked_files(domain, repository, git):
    root = repository()
    git(root, "config", "status.showUntrackedFiles", "no")
    (root / "new").write_text("")
    assert (await domain.listed(root))["project"].changes.untracked == 1


async def test_a_worktree_that_cannot_be_read_keeps_no_other_waiting(domain, repository):
    root = repository()
    broken = await domain.add(root, "broken")
    await domain.add(root, "fine")
    (root / ".git" / "worktrees" / "broken" / "index").write_bytes(b"rubbish")
    listed = await domain.listed(root)
    assert listed["broken"].changes is None and listed["broken"].path == broken.path
    assert listed["fine"].changes.modified == 0


async def test_a_name_that_is_not_utf_8_does_not_break_the_list(domain, repository, git):
    root = repository()
    place = os.fsencode(root.parent) + b"/caf\xe9"
    subprocess.run(
        [b"git", b"-C", os.fsencode(root), b"worktree", b"add", b"-q", b"-b", b"x", place], check=True
    )
    listed = await domain.listed(root)
    assert listed["caf\\xe9"].branch == "x"
    listed["caf\\xe9"].model_dump_json()


async def test_a_git_that_is_too_old_for_nul_separated_lists(make_domain, repository, wrapper):
    root = repository()
    domain = make_domain(git_command=wrapper("case \"$*\" in *'worktree list'*-z*) exit 129;; esac"))
    await domain.add(root, "x")
    assert [(one.name, one.state) for one in (await domain.listed(root)).values()] == [
        ("project", "ok"),
        ("x", "ok"),
    ]


# --- cost ----------------------------------------------------------------------------------------


async def test_without_changes_two_processes_whatever_the_number(domain, repository):
    root = repository()
    for number in range(6):
        await domain.add(root, f"x{number}")
    before = domain.git.started
    await domain.listed(root, changes=False)
    assert domain.git.started - before == 2


async def test_an_unchanged_tree_is_not_looked_at_again(domain, repository, git):
    root = repository(files={"a": "1\n", ".gitignore": "ignored/\n*.log\n"})
    place = Path((await domain.add(root, "x")).path)
    (place / "ignored").mkdir()
    (place / "ignored" / "big").write_text("")
    (place / "x.log").write_text("")
    age(root.parent)
    await domain.listed(root)
    await settle(domain)
    before = domain.git.started
    (place / "ignored" / "more").write_text("")
    (place / "x.log").write_text("longer")
    assert (await domain.listed(root))["x"].changes.modified == 0
    assert domain.git.started - before == 3  # the list, and where the recorded bases are now


@pytest.mark.parametrize(
    "change",
    [
        lambda place, git: (place / "a").write_text("2\n"),  # same size
        lambda place, git: (place / "new").write_text(""),
        lambda place, git: (place / "a").unlink(),
        lambda place, git: (place / "a").chmod(0o755),
        lambda place, git: (place / "s" / "b").write_text("2\n"),
        lambda place, git: (place / ".gitignore").write_text(""),
        lambda place, git: git(place, "rm", "-q", "--cached", "a"),
        lambda place, git: (place / "a").write_text("2\n") and os.utime(place / "a", ns=(OLD, OLD)),
        lambda place, git: git(place, "config", "core.excludesFile", "/dev/null"),
    ],
)
async def test_any_change_is_seen(domain, repository, git, change):
    root = repository(files={"a": "1\n", "s/b": "1\n", ".gitignore": "*.log\n", "x.py": ""})
    place = Path((await domain.add(root, "x")).path)
    (place / "x.log").write_text("")
    for path in (place / "a", place / "s" / "b"):
        os.utime(path, ns=(OLD, OLD))
    git(place, "update-index", "-q", "--refresh")
    age(root.parent)
    first = (await domain.listed(root))["x"].changes
    await settle(domain)
    change(place, git)
    expected = subprocess.run(
        ["git", "-C", place, "status", "--porcelain"], capture_output=True, text=True
    ).stdout
    lines = expected.splitlines()
    now = (await domain.listed(root))["x"].changes
    untracked = sum(line.startswith("??") for line in lines)
    assert (now.modified, now.untracked) == (len(lines) - untracked, untracked)
    assert first.modified == 0


OLD = 1_600_000_000_123_456_789


HIDING = {
    "only ignored files": ({"out/a.log": ""}, lambda top: (top / "out/new.txt").write_text("")),
    "below a tracked folder": ({"src/sub/a.log": ""}, lambda top: (top / "src/sub/new.txt").write_text("")),
    "only an ignored folder": ({"pkg/build/x": ""}, lambda top: (top / "pkg/m.py").write_text("")),
    "made anew": (
        {"out/a.log": ""},
        lambda top: (shutil.rmtree(top / "out"), (top / "out").mkdir(), (top / "out/new.txt").write_text("")),
    ),
    "a .gitignore that ignores itself": (
        {"venv/.gitignore": "*\n", "venv/x": ""},
        lambda top: (top / "venv/.gitignore").unlink(),
    ),
}


@pytest.mark.parametrize("hidden, change", HIDING.values(), ids=HIDING)
async def test_a_file_beside_ignored_ones_is_seen(domain, repository, hidden, change):
    root = repository(files={"src/a.py": "", ".gitignore": "*.log\nbuild/\n"})
    for name, text in hidden.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for _ in range(3):
        assert (await domain.listed(root))["project"].changes.untracked == 0
        await settle(domain)
        time.sleep(0.12)  # a change younger than a time stamp can tell is not remembered
    change(root)
    assert (await domain.listed(root))["project"].changes.untracked == 1


async def test_a_young_change_is_not_trusted(domain, repository):
    root = repository(files={"a": "1\n"})
    domain.worktrees.close()  # nothing is watched
    for number in range(5):
        (root / "a").write_text(f"{number}\n")
        await domain.listed(root)
        await settle(domain)
        assert str(root) not in domain.worktrees._statuses._seen
        (root / "a").write_text("1\n")
        assert (await domain.listed(root))["project"].changes.modified == 0


async def test_a_nested_repository_is_always_looked_at(domain, repository, git):
    root = repository("outer")
    git(root, "init", "-q", str(root / "inner"))
    age(root)
    await domain.listed(root)
    await settle(domain)
    before = domain.git.started
    await domain.listed(root)
    assert domain.git.started - before == 3


async def test_callers_at_the_same_time_share_one_look(make_domain, repository, wrapper, tmp_path):
    root = repository()
    domain = make_domain(
        git_command=wrapper(f'case "$*" in *status*) echo x >> {tmp_path}/looks; sleep 0.3;; esac')
    )
    await asyncio.gather(*(domain.listed(root) for _ in range(5)))
    assert (tmp_path / "looks").read_text().count("x") == 1


async def test_a_caller_that_gives_up_does_not_take_the_look_from_the_others(
    make_domain, repository, wrapper, tmp_path
):
    root = repository()
    domain = make_domain(
        git_command=wrapper(f'case "$*" in *status*) echo x >> {tmp_path}/looks; sleep 0.3;; esac')
    )
    first = asyncio.ensure_future(domain.listed(root))
    second = asyncio.ensure_future(domain.listed(root))
    deadline = time.monotonic() + 10
    while not (tmp_path / "looks").exists() and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    first.cancel()
    assert (await second)["project"].changes is not None
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_details_come_one_by_one(domain, repository):
    root = repository()
    await domain.add(root, "x")
    repo = await domain.resolve(root)
    base, listed = await domain.worktrees.list(repo, changes=False)
    assert all(one.changes is None and one.ahead is None and one.merged == "unknown" for one in listed)
    ready: list[Worktree] = []
    full = await domain.worktrees.details(repo, base, listed, ready.append)
    assert {one.path for one in ready} == {one.path for one in full}
    assert all(one.changes is not None for one in full)


# --- find and verify -----------------------------------------------------------------------------


async def test_find(domain, repository, git, tmp_path):
    root = repository(files={"src/a": ""})
    ours = (await domain.add(root, "x")).path
    git(root, "worktree", "add", "-q", "-b", "y", str(tmp_path / "elsewhere"))
    link = tmp_path / "link"
    link.symlink_to(ours)
    for path, branch in (
        (ours, "x"),
        (f"{ours}/", "x"),
        (link, "x"),
        (tmp_path / "elsewhere", "y"),
        (root, "main"),
    ):
        repo, found = await domain.worktrees.find(str(path))
        assert (repo.root, found.branch) == (str(root), branch)
    for path in (f"{ours}/src", "/nowhere/at/all", "relative", str(tmp_path), "nul\0", f"{ours}-2"):
        with pytest.raises(errors.NoSuchWorktree):
            await domain.worktrees.find(path)


async def test_find_what_is_gone_or_lost_its_link(domain, repository, git):
    root = repository()
    gone, lost = (await domain.add(root, "gone")).path, (await domain.add(root, "lost")).path
    shutil.rmtree(gone)
    os.unlink(Path(lost) / ".git")
    assert (await domain.worktrees.find(gone))[1].state == "missing"
    assert (await domain.worktrees.find(lost))[1].state == "not_a_worktree"


async def test_verify(domain, make_domain, repository, git):
    outer = repository("outer")
    root = outer / "inner"
    git(outer, "init", "-q", "--initial-branch=main", str(root))
    git(root, *IDENTITY, "commit", "-q", "--allow-empty", "-m", "1")
    added = (await domain.add(root, "x")).path
    fresh = make_domain()
    await fresh.worktrees.verify(added)
    assert fresh.git.started == 1
    await domain.worktrees.verify(str(root))
    before = domain.git.started
    await domain.worktrees.verify(added)
    assert domain.git.started == before
    (Path(added) / "src").mkdir()
    dot_git = Path(added) / ".git"
    text = dot_git.read_text()
    for spoil in (
        lambda: dot_git.unlink(),
        lambda: dot_git.write_text("gitdir: /nowhere\n"),
        lambda: (dot_git.write_text(text), (root / ".git" / "worktrees" / "x" / "HEAD").unlink()),
        lambda: shutil.rmtree(added),
    ):
        spoil()
        with pytest.raises(errors.DirectoryMissing):
            await domain.worktrees.verify(added)
    for path in (added + "/src", "/nowhere", "nul\0"):
        with pytest.raises(errors.DirectoryMissing):
            await domain.worktrees.verify(path)
