"""Removal fails closed: every reason by name, rescue before loss, and only our own branch."""


from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ocman_jupyter import errors
from ocman_jupyter.git import removal

IDENTITY = ("-c", "user.name=T", "-c", "user.email=t@e")


@pytest.fixture
def reasons(domain):
    async def ask(path, delete_branch=False):
        repository, worktree = await domain.worktrees.find(str(path))
        found = await removal.reasons(domain.git, domain.store, repository, worktree, delete_branch)
        return {reason.code: reason for reason in found}

    return ask


@pytest.fixture
def remove(domain):
    async def do(path, **options):
        repository, worktree = await domain.worktrees.find(str(path))
        return await removal.remove(
            domain.git, domain.store, domain.settings, repository, worktree, **options
        )

    return do


@pytest.fixture
def x(domain, repository, jp_asyncio_loop):
    """A repository and a worktree of it."""
    root = repository(files={"a": "1\n", ".gitignore": "data/\n*.csv\n.env\n"})
    return root, Path(jp_asyncio_loop.run_until_complete(domain.add(root, "x")).path)


def names(reason) -> dict[str, int | None]:
    return {item.path: item.bytes for item in reason.items}


async def test_a_clean_worktree_goes_and_its_branch_stays(x, reasons, remove, git, domain):
    root, place = x
    assert await reasons(place) == {}
    assert await remove(place) == (False, [])
    assert not place.exists()
    assert git(root, "branch", "--list", "x") == "x"
    assert list(await domain.listed(root)) == ["project"]
    with pytest.raises(errors.NoSuchWorktree):
        await remove(place)


async def test_ignored_outputs_that_git_would_delete_silently(x, reasons, remove):
    _, place = x
    (place / "data" / "deep").mkdir(parents=True)
    (place / "data" / "deep" / "model.bin").write_bytes(b"x" * 1000)
    (place / "out.csv").write_text("1,2")
    (place / ".env").write_text("SECRET=1")
    (place / "data" / "link").symlink_to("/usr")  # never followed
    found = await reasons(place)
    assert list(found) == ["ignored"]
    assert names(found["ignored"]) == {"data/": 1000 + len("/usr"), "out.csv": 3, ".env": 8}
    assert found["ignored"].total_bytes == 1015
    with pytest.raises(errors.WouldLoseWork) as caught:
        await remove(place)
    assert caught.value.details["reasons"][0]["code"] == "ignored"
    assert caught.value.details["reasons"][0]["total_bytes"] == 1015
    assert (place / "out.csv").exists()
    await remove(place, accept={"ignored"})
    assert not place.exists()
    assert os.path.isdir("/usr")


async def test_uncommitted_and_untracked_are_told_apart(x, reasons, remove):
    _, place = x
    (place / "a").write_text("changed\n")
    (place / "new é\n").write_text("new")
    (place / "sub").mkdir()
    (place / "sub" / "one").write_text("1")
    found = await reasons(place)
    assert names(found["uncommitted"]) == {"a": 8}
    assert names(found["untracked"]) == {"new é\n": 3, "sub/one": 1}
    for accept in ((), {"uncommitted"}, {"untracked"}, {"ignored", "locked"}):
        with pytest.raises(errors.WouldLoseWork):
            await remove(place, accept=accept)
    assert (place / "a").read_text() == "changed\n"
    await remove(place, accept={"uncommitted", "untracked"})
    assert not place.exists()


async def test_staged_and_deleted_files_count(x, reasons, git):
    _, place = x
    git(place, "rm", "-q", "a")
    (place / "b").write_text("b")
    git(place, "add", "b")
    (place / "b").unlink()
    assert set(names((await reasons(place))["uncommitted"])) == {"a", "b"}


async def test_changes_that_git_was_told_not_to_look_at(x, reasons, git):
    _, place = x
    git(place, "update-index", "--assume-unchanged", "a")
    git(place, "update-index", "--skip-worktree", ".gitignore")
    assert await reasons(place) == {}
    (place / "a").write_text("hidden work\n")
    assert names((await reasons(place))["uncommitted"]) == {"a": 12}
    (place / ".gitignore").write_text("hidden too\n")
    assert set(names((await reasons(place))["uncommitted"])) == {"a", ".gitignore"}


async def test_a_nested_repository_is_not_deleted_silently(x, reasons, remove, git):
    _, place = x
    git(place, "init", "-q", str(place / "nested"))
    (place / "nested" / "file").write_text("12345")
    found = await reasons(place)
    assert found["untracked"].items[0].path == "nested/"
    assert found["untracked"].total_bytes >= 5
    with pytest.raises(errors.WouldLoseWork):
        await remove(place)
    assert (place / "nested" / "file").exists()


async def test_a_submodule_is_not_vouched_for(domain, repository, reasons, remove, git):
    inner, outer = repository("inner"), repository("outer")
    allow = ("-c", "protocol.file.allow=always")
    git(outer, *allow, "submodule", "add", "-q", str(inner), "sub")
    git(outer, "commit", "-q", "-m", "submodule")
    place = Path((await domain.add(outer, "x")).path)
    assert await reasons(place) == {}
    (place / "sub" / "stray").write_text("1")
    assert names((await reasons(place))["unverified"]) == {"sub": 1}
    (place / "sub" / "stray").unlink()
    git(place, *allow, "submodule", "update", "-q", "--init")
    git(place / "sub", *IDENTITY, "commit", "-q", "--allow-empty", "-m", "only here")
    found = await reasons(place)
    assert set(found) == {"uncommitted", "unverified"}
    with pytest.raises(errors.WouldLoseWork):
        await remove(place, accept={"uncommitted"})
    git(place, "submodule", "deinit", "-q", "--force", "sub")  # its commits are still in the admin folder
    assert set(await reasons(place)) == {"unverified"}
    await remove(place, accept={"unverified"})
    assert not place.exists()


async def test_commits_on_a_detached_head(x, reasons, remove, git):
    root, place = x
    git(place, "checkout", "-q", "--detach")
    assert await reasons(place) == {}
    git(place, *IDENTITY, "commit", "-q", "--allow-empty", "-m", "only here")
    found = await reasons(place)
    assert found["unreachable_commits"].items[0].path.endswith("only here")
    with pytest.raises(errors.WouldLoseWork):
        await remove(place)
    git(root, "tag", "kept", git(place, "rev-parse", "HEAD"))
    assert await reasons(place) == {}


async def test_commits_that_a_kept_branch_holds_are_safe(x, reasons, git):
    _, place = x
    git(place, *IDENTITY, "commit", "-q", "--allow-empty", "-m", "mine")
    assert await reasons(place) == {}
    assert set(await reasons(place, delete_branch=True)) == {"unreachable_commits"}


async def test_the_branch_goes_only_when_asked_and_only_when_we_made_it(domain, x, remove, git):
    root, place = x
    git(root, "config", "branch.x.remote", "origin")
    assert await remove(place, delete_branch=True) == (True, [])
    assert git(root, "branch", "--list", "x") == ""
    assert "[branch" not in (root / ".git" / "config").read_text()
    git(root, "branch", "theirs")
    other = (await domain.add(root, "theirs")).path
    assert (await remove(other, delete_branch=True))[0] is False
    assert git(root, "branch", "--list", "theirs") == "theirs"


async def test_the_branch_that_happens_to_be_checked_out_is_not_deleted(x, remove, git):
    root, place = x
    git(place, "checkout", "-q", "-b", "theirs")
    assert (await remove(place, delete_branch=True))[0] is False
    assert git(root, "branch", "--list", "theirs", "x").split() == ["theirs", "x"]


async def test_a_branch_checked_out_twice_stays(x, remove, git):
    root, place = x
    git(root, "checkout", "-q", "--ignore-other-worktrees", "x")
    assert (await remove(place, delete_branch=True))[0] is False
    assert git(root, "rev-parse", "x")


async def test_squash_merged_commits_are_safe(x, reasons, remove, git):
    root, place = x
    (place / "b").write_text("b")
    git(place, "add", "b")
    git(place, *IDENTITY, "commit", "-q", "-m", "b")
    assert set(await reasons(place, delete_branch=True)) == {"unreachable_commits"}
    with pytest.raises(errors.WouldLoseWork):
        await remove(place, delete_branch=True)
    git(root, *IDENTITY, "merge", "-q", "--squash", "x")
    git(root, *IDENTITY, "commit", "-q", "-m", "squashed")
    assert await reasons(place, delete_branch=True) == {}
    assert (await remove(place, delete_branch=True))[0] is True


async def test_an_operation_under_way(x, reasons, git):
    root, place = x
    for where in (root, place):
        (where / "a").write_text(f"{where}\n")
        git(where, *IDENTITY, "commit", "-q", "-a", "-m", "change")
    subprocess.run(["git", "-C", place, *IDENTITY, "merge", "main"], capture_output=True)
    assert {"operation", "uncommitted"} <= set(await reasons(place))


async def test_a_locked_worktree_is_never_forced_unless_accepted(x, reasons, remove, git):
    root, place = x
    git(root, "worktree", "lock", "--reason", "mine", str(place))
    assert "mine" in (await reasons(place))["locked"].message
    with pytest.raises(errors.WouldLoseWork):
        await remove(place, accept={"uncommitted", "unverified"})
    await remove(place, accept={"locked"})
    assert not place.exists()


async def test_a_missing_worktree(domain, x, reasons, remove, git):
    root, place = x
    shutil.rmtree(place)
    assert await reasons(place) == {}
    assert (await remove(place, delete_branch=True))[0] is True
    assert list(await domain.listed(root)) == ["project"]


async def test_a_missing_and_locked_worktree(domain, x, reasons, remove, git):
    root, place = x
    git(root, "worktree", "lock", str(place))
    shutil.rmtree(place)
    assert set(await reasons(place)) == {"locked"}
    with pytest.raises(errors.WouldLoseWork):
        await remove(place)
    await remove(place, accept={"locked"})
    assert list(await domain.listed(root)) == ["project"]


@pytest.mark.parametrize("state", ["lost", "plain", "moved"])
async def test_what_git_cannot_compare_is_not_vouched_for(domain, x, reasons, remove, state):
    root, place = x
    if state == "lost":
        (place / ".git").unlink()
    elif state == "moved":
        place = place.rename(place.with_name("there"))
    else:
        place = place.with_name("plain")
        place.mkdir()
        (place / "a").write_text("1\n")
    found = await reasons(place)
    assert set(found) == {"unverified"}
    assert names(found["unverified"])["a"] == 2
    with pytest.raises(errors.WouldLoseWork):
        await remove(place, accept={"ignored", "untracked", "uncommitted"})
    assert (place / "a").exists()
    await remove(place, accept={"unverified"})
    assert not place.exists()
    if state == "lost":
        assert list(await domain.listed(root)) == ["project"]


async def test_a_check_that_fails_is_a_reason(x, reasons, remove):
    root, place = x
    (root / ".git" / "worktrees" / "x" / "index").write_bytes(b"rubbish")
    found = await reasons(place)
    assert set(found) == {"unverified"}
    with pytest.raises(errors.WouldLoseWork):
        await remove(place, accept={"uncommitted", "untracked", "ignored"})
    assert place.exists()


@pytest.mark.parametrize("check", ["status", "ls-files --others", "ls-files -v", "log "])
async def test_each_check_fails_closed(make_domain, x, git, wrapper, check):
    _, place = x
    git(place, *IDENTITY, "commit", "-q", "--allow-empty", "-m", "mine")
    domain = make_domain(git_command=wrapper(f"case \"$*\" in *'{check}'*) exit 1;; esac"))
    repository, worktree = await domain.worktrees.find(str(place))
    with pytest.raises(errors.WouldLoseWork) as caught:
        await removal.remove(
            domain.git,
            domain.store,
            domain.settings,
            repository,
            worktree,
            delete_branch=True,
            accept={"unreachable_commits"},
        )
    assert [reason["code"] for reason in caught.value.details["reasons"]] == ["unverified"]
    assert place.exists()


async def test_the_main_checkout_is_never_removed(x, reasons, remove):
    root, _ = x
    for ask in (reasons, remove):
        with pytest.raises(errors.MainWorktree):
            await ask(root)
    assert (root / "a").exists()


async def test_long_lists_are_cut_but_the_total_is_right(x, reasons):
    _, place = x
    for number in range(300):
        (place / f"{number}.csv").write_text("1234")
    reason = (await reasons(place))["ignored"]
    assert (len(reason.items), reason.total_bytes) == (200, 1200)
    assert "300" in reason.message and "200" in reason.message


async def test_work_that_appears_after_the_look_is_not_forced(make_domain, x, wrapper):
    _, place = x
    fault = f"case \"$*\" in *'worktree remove'*) echo late > {place}/late; esac"
    domain = make_domain(git_command=wrapper(fault))
    repository, worktree = await domain.worktrees.find(str(place))
    with pytest.raises(errors.WouldLoseWork) as caught:
        await removal.remove(domain.git, domain.store, domain.settings, repository, worktree)
    assert caught.value.details["reasons"][0]["items"][0]["path"] == "late"
    assert (place / "late").exists()


async def test_a_branch_that_moved_on_is_not_deleted(make_domain, x, git, wrapper):
    root, place = x
    late = f'"$REAL" -C {place} {" ".join(IDENTITY)} commit -q --allow-empty -m late'
    fault = f'case "$*" in *"worktree remove"*) {late}; esac'
    domain = make_domain(git_command=wrapper(fault))
    repository, worktree = await domain.worktrees.find(str(place))
    deleted, _ = await removal.remove(
        domain.git, domain.store, domain.settings, repository, worktree, delete_branch=True
    )
    assert deleted is False
    assert git(root, "log", "-1", "--format=%s", "x") == "late"


async def test_a_removal_that_fails_says_so(make_domain, x, wrapper):
    _, place = x
    domain = make_domain(
        git_command=wrapper("case \"$*\" in *'worktree remove'*) echo 'fatal: no' >&2; exit 128; esac")
    )
    repository, worktree = await domain.worktrees.find(str(place))
    with pytest.raises(errors.PathConflict) as caught:
        await removal.remove(domain.git, domain.store, domain.settings, repository, worktree)
    assert caught.value.details["output"] == "fatal: no"
    assert (await domain.worktrees.find(str(place)))[1].made_by_ocman


# --- rescue --------------------------------------------------------------------------------------


async def test_rescued_files_count_as_accepted(x, remove, tmp_path):
    _, place = x
    (place / "data" / "empty").mkdir(parents=True)
    (place / "data" / "model.bin").write_bytes(b"x" * 100_000)
    (place / "data" / "link").symlink_to("model.bin")
    (place / "out é.csv").write_text("1,2")
    os.utime(place / "out é.csv", (1e9, 1e9))
    to = tmp_path / "rescued" / "here"
    _, rescued = await remove(place, rescue_to=str(to))
    assert {(one.path, one.to, one.bytes) for one in rescued} == {
        ("data/model.bin", str(to / "data" / "model.bin"), 100_000),
        ("data/link", str(to / "data" / "link"), len("model.bin")),
        ("out é.csv", str(to / "out é.csv"), 3),
    }
    assert not place.exists()
    assert (to / "data" / "model.bin").read_bytes() == b"x" * 100_000
    assert os.readlink(to / "data" / "link") == "model.bin"
    assert (to / "out é.csv").stat().st_mtime == 1e9


async def test_rescue_never_overwrites(x, remove, tmp_path):
    _, place = x
    to = tmp_path / "rescued"
    to.mkdir()
    (to / "out.csv").write_text("older")
    (to / "same.csv").write_text("same")
    (place / "out.csv").write_text("newer")
    (place / "same.csv").write_text("same")
    _, rescued = await remove(place, rescue_to=str(to))
    assert {one.path: one.to for one in rescued} == {
        "out.csv": str(to / "out.2.csv"),
        "same.csv": str(to / "same.csv"),
    }
    assert (to / "out.csv").read_text() == "older"
    assert (to / "out.2.csv").read_text() == "newer"


async def test_only_what_was_chosen_is_rescued_and_the_rest_still_protects(x, remove, tmp_path):
    _, place = x
    (place / "out.csv").write_text("1")
    (place / "a").write_text("changed")
    to = tmp_path / "rescued"
    with pytest.raises(errors.WouldLoseWork) as caught:
        await remove(place, rescue_to=str(to))
    assert [reason["code"] for reason in caught.value.details["reasons"]] == ["uncommitted"]
    assert not to.exists()
    assert (place / "a").read_text() == "changed"


async def test_uncommitted_work_is_rescued_with_what_was_staged(x, remove, git, tmp_path):
    root, place = x
    (place / "a").write_text("staged\n")
    git(place, "add", "a")
    (place / "a").write_text("later\n")
    (place / "new").write_text("new")
    to = tmp_path / "rescued"
    await remove(place, rescue_to=str(to), rescue=["uncommitted", "untracked"])
    assert not place.exists()
    assert (to / "a").read_text() == "later\n"
    assert (to / "new").read_text() == "new"
    git(root, "apply", str(to / "x.staged.patch"))
    assert (root / "a").read_text() == "staged\n"


async def test_a_rescue_that_cannot_be_made_removes_nothing(x, remove, tmp_path):
    _, place = x
    (place / "out.csv").write_text("1")
    (tmp_path / "file").write_text("")
    for to in (tmp_path / "file" / "below", place / "inside", place, "relative", "nul\0"):
        with pytest.raises(errors.PathConflict):
            await remove(place, rescue_to=str(to))
        assert (place / "out.csv").exists()


async def test_a_rescue_into_the_worktree_through_a_link_is_refused(x, remove, tmp_path):
    _, place = x
    (place / "out.csv").write_text("1")
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(errors.PathConflict):
        await remove(place, rescue_to=str(tmp_path / "link" / "sub"))
    assert (place / "out.csv").exists()


async def test_two_removals_at_once(x, remove):
    _, place = x
    results = await asyncio.gather(remove(place), remove(place), return_exceptions=True)
    assert sorted(type(one).__name__ for one in results) == ["NoSuchWorktree", "tuple"]
