"""Removal fails closed: every reason by name, rescue before loss, and only our own branch."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ocman_jupyter import errors
from ocman_jupyter.git import removal
from ocman_jupyter.git.rescue import target

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
        return await removal.remove(domain.git, domain.store, domain.settings, repository, worktree, **options)

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
    fault = f"case \"$*\" in *'worktree remove'*) cd {place.parent}/.removing-* && echo late > late; esac"
    domain = make_domain(git_command=wrapper(fault))
    repository, worktree = await domain.worktrees.find(str(place))
    with pytest.raises(errors.WouldLoseWork) as caught:
        await removal.remove(domain.git, domain.store, domain.settings, repository, worktree)
    assert caught.value.details["reasons"][0]["items"][0]["path"] == "late"
    assert (place / "late").exists()


@pytest.fixture
def just_before_the_rename(monkeypatch):
    """``just_before_the_rename(work)``: between the look and the moment in which the folder is put aside."""

    def arrange(work, fails=False):
        real = os.rename

        def rename(old, new):
            if os.path.basename(new).startswith(".removing-"):
                work()
                if fails:
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            real(old, new)

        monkeypatch.setattr(os, "rename", rename)

    return arrange


@pytest.mark.parametrize("fails", [False, True], ids=["put aside", "cannot be put aside"])
@pytest.mark.parametrize(
    ("accept", "late"),
    [((), "late.csv"), ({"uncommitted"}, "late"), ({"ignored", "uncommitted"}, "late.csv")],
)
async def test_a_file_made_after_the_look_is_kept(x, remove, just_before_the_rename, domain, accept, late, fails):
    root, place = x
    if "uncommitted" in accept:
        (place / "a").write_text("changed\n")
    if "ignored" in accept:
        (place / "early.csv").write_text("1")
    just_before_the_rename(lambda: (place / late).write_text("precious"), fails)
    with pytest.raises(errors.WouldLoseWork) as caught:
        await remove(place, accept=accept)
    (reason,) = caught.value.details["reasons"]
    assert [item["path"] for item in reason["items"]] == [late]
    assert (place / late).read_text() == "precious"
    assert (place / "a").exists()
    assert (await domain.listed(root))["x"].state == "ok"
    assert os.listdir(place.parent) == ["x"]


async def test_a_copied_file_that_changes_after_the_copy_is_kept(x, remove, just_before_the_rename, tmp_path):
    _, place = x
    (place / "out.csv").write_text("1")
    just_before_the_rename(lambda: (place / "out.csv").write_text("1,2"))
    with pytest.raises(errors.WouldLoseWork) as caught:
        await remove(place, rescue_to=str(tmp_path / "rescued"))
    assert (place / "out.csv").read_text() == "1,2"
    assert [one["path"] for one in caught.value.details["rescued"]] == ["out.csv"]


@pytest.mark.parametrize("change", ["same size", "same size and time", "exchanged", "added", "staged"])
@pytest.mark.parametrize("fails", [False, True], ids=["put aside", "cannot be put aside"])
async def test_a_change_that_keeps_names_and_sizes_of_what_was_copied_is_kept(
    x, remove, just_before_the_rename, tmp_path, git, change, fails
):
    root, place = x
    (place / "data").mkdir()
    for name in ("one", "two"):
        (place / "data" / name).write_text("OLD!")
        os.utime(place / "data" / name, (1e9, 1e9))
    (place / "a").write_text("old\n")

    def work():
        if change == "added":
            (place / "data" / "empty").write_text("")
        elif change == "staged":
            (place / "a").write_text("new\n")
            git(place, "add", "a")
            (place / "a").write_text("old\n")
        elif change == "exchanged":
            (tmp_path / "new").write_text("NEW!")
            os.replace(tmp_path / "new", place / "data" / "one")
        else:
            (place / "data" / "one").write_text("NEW!")
            if change.endswith("time"):
                os.utime(place / "data" / "one", (1e9, 1e9))

    just_before_the_rename(work, fails)
    with pytest.raises(errors.WouldLoseWork) as caught:
        await remove(place, rescue_to=str(tmp_path / "rescued"), rescue=["ignored", "uncommitted"])
    (reason,) = caught.value.details["reasons"]
    if change == "staged":
        assert reason["code"] == "uncommitted"
        assert git(place, "show", ":a") == "new"
    else:
        name = "data/empty" if change == "added" else "data/one"
        assert (reason["code"], [item["path"] for item in reason["items"]]) == ("ignored", [name])
        assert name in reason["message"]
        assert (place / name).read_text() == ("" if change == "added" else "NEW!")
    assert {one["path"] for one in caught.value.details["rescued"]} == {"a", "data/one", "data/two"}


async def test_a_copied_file_that_was_only_touched_goes(x, remove, just_before_the_rename, tmp_path):
    _, place = x
    (place / "out.csv").write_text("1")
    just_before_the_rename(lambda: os.utime(place / "out.csv"))
    await remove(place, rescue_to=str(tmp_path / "rescued"))
    assert not place.exists()


@pytest.mark.parametrize("when", ["worktree remove", "status"])
async def test_a_writer_meets_no_worktree_that_goes_away_under_it(make_domain, x, wrapper, tmp_path, when):
    _, place = x
    fault = f"case \"$*\" in *'{when}'*) [ -d {place} ] && echo 1 > {place}/late.csv; esac"
    domain = make_domain(git_command=wrapper(fault))
    repository, worktree = await domain.worktrees.find(str(place))
    try:
        await removal.remove(domain.git, domain.store, domain.settings, repository, worktree)
    except errors.WouldLoseWork:
        assert (place / "late.csv").exists()
    else:
        assert when == "worktree remove"


async def test_cut_short_while_put_aside_all_is_still_there(domain, x, monkeypatch, git):
    root, place = x
    (place / "a").write_text("changed\n")

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(removal._Removal, "_move_back", lambda *_: None)
    monkeypatch.setattr(removal._Removal, "_unregister", die)
    repository, worktree = await domain.worktrees.find(str(place))
    task = removal.remove(domain.git, domain.store, domain.settings, repository, worktree, accept={"uncommitted"})
    with pytest.raises(KeyboardInterrupt):
        await task
    (aside,) = place.parent.iterdir()
    assert (aside / "a").read_text() == "changed\n"
    assert (await domain.listed(root))[aside.name].state == "moved"
    aside.rename(place)
    assert (await domain.listed(root))["x"].state == "ok"


async def test_a_branch_that_moved_on_is_not_deleted(make_domain, x, git, wrapper):
    root, place = x
    late = f'"$REAL" -C {place.parent}/.removing-* {" ".join(IDENTITY)} commit -q --allow-empty -m late'
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


@pytest.mark.parametrize("holder", ["reflog", "worktree ref", "bisect ref", "ORIG_HEAD"])
async def test_commits_that_only_the_worktree_itself_remembers(x, reasons, remove, git, holder):
    root, place = x
    git(place, "checkout", "-q", "--detach")
    git(place, *IDENTITY, "commit", "-q", "--allow-empty", "-m", "first")
    git(place, *IDENTITY, "commit", "-q", "--allow-empty", "-m", "second")
    sha = git(place, "rev-parse", "HEAD")
    git(place, "checkout", "-q", "x")
    if holder != "reflog":
        git(place, "reflog", "expire", "--expire=all", "HEAD")
        assert await reasons(place) == {}
    if holder == "ORIG_HEAD":
        git(place, "update-ref", "ORIG_HEAD", sha)
    elif holder != "reflog":
        git(place, "update-ref", f"refs/{holder.split()[0]}/mine", sha)
    found = await reasons(place)
    assert [name.split()[1] for name in names(found["unreachable_commits"])] == ["second", "first"]
    with pytest.raises(errors.WouldLoseWork):
        await remove(place)
    assert place.exists()
    shutil.move(place, place.with_name("away"))
    shutil.rmtree(place.with_name("away"))
    assert set(await reasons(place)) == {"unreachable_commits"}  # its admin folder would go
    git(root, "tag", "kept", sha)
    assert await reasons(place) == {}


async def test_an_amended_commit_is_kept_by_the_reflog_of_a_branch_that_stays(x, reasons, git):
    _, place = x
    git(place, *IDENTITY, "commit", "-q", "--allow-empty", "-m", "one")
    git(place, *IDENTITY, "commit", "-q", "--allow-empty", "--amend", "-m", "other")
    assert await reasons(place) == {}
    found = await reasons(place, delete_branch=True)
    assert {name.split()[1] for name in names(found["unreachable_commits"])} == {"one", "other"}


async def test_what_a_squash_merge_took_is_safe_in_the_reflog_as_well(x, reasons, git):
    root, place = x
    git(place, "checkout", "-q", "--detach")
    for name in ("b", "c"):
        (place / name).write_text(name)
        git(place, "add", name)
        git(place, *IDENTITY, "commit", "-q", "-m", name)
    sha = git(place, "rev-parse", "HEAD")
    git(place, "checkout", "-q", "x")
    assert set(await reasons(place)) == {"unreachable_commits"}
    git(root, *IDENTITY, "merge", "-q", "--squash", sha)
    git(root, *IDENTITY, "commit", "-q", "-m", "squashed")
    assert await reasons(place) == {}


async def test_a_plain_reflog_costs_no_process(x, domain, git):
    _, place = x
    repository, worktree = await domain.worktrees.find(str(place))
    before = domain.git.started
    await removal.reasons(domain.git, domain.store, repository, worktree)
    assert domain.git.started - before == 4  # the list, and the three looks at files


# --- what is not there, or cannot be looked at -----------------------------------------------------


async def test_a_worktree_that_vanishes_during_the_look_is_no_worktree(make_domain, x, wrapper):
    root, place = x
    gone = f'[ -d {place} ] && "$REAL" -C {root} worktree remove --force {place}'
    domain = make_domain(git_command=wrapper(f'case "$*" in *ls-files*) {gone};; esac'))
    for ask in (removal.reasons, removal.remove):
        repository, worktree = await domain.worktrees.find(str(root))
        worktree = worktree.model_copy(update={"path": str(place)})
        settings = (domain.settings,) if ask is removal.remove else ()
        with pytest.raises(errors.NoSuchWorktree):
            await ask(domain.git, domain.store, *settings, repository, worktree)


async def test_a_worktree_that_vanishes_before_it_is_put_aside(x, remove, just_before_the_rename, git):
    root, place = x
    just_before_the_rename(lambda: git(root, "worktree", "remove", str(place)))
    with pytest.raises(errors.NoSuchWorktree):
        await remove(place)


async def test_many_removals_at_once(x, remove, domain):
    _, place = x
    results = await asyncio.gather(*(remove(place) for _ in range(6)), return_exceptions=True)
    assert sorted(type(one).__name__ for one in results) == ["NoSuchWorktree"] * 5 + ["tuple"]


@pytest.mark.parametrize("number", [errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG])
async def test_a_path_that_cannot_be_looked_at(domain, x, monkeypatch, number, tmp_path):
    _, place = x
    real = os.path.realpath

    def realpath(path, **options):
        if "closed" in str(path):
            raise OSError(number, os.strerror(number), path)
        return real(path, **options)

    monkeypatch.setattr(os.path, "realpath", realpath)
    with pytest.raises(errors.NoSuchWorktree):
        await domain.worktrees.find(str(tmp_path / "closed"))
    (place.parent / "closed").symlink_to(place)
    with pytest.raises(errors.DirectoryMissing):
        await domain.worktrees.verify(str(place.parent / "closed"))
    with pytest.raises(errors.PathConflict):
        target(str(tmp_path / "closed"), str(place))


@pytest.mark.parametrize("name", ["caf\udce9", "half \ud800", "nul\0", "x" * 5000, "/proc/1/root"])
async def test_a_path_that_can_be_no_worktree(domain, x, name):
    _, place = x
    path = os.path.join(place.parent, name)
    with pytest.raises(errors.NoSuchWorktree):
        await domain.worktrees.find(path)
    with pytest.raises(errors.DirectoryMissing):
        await domain.worktrees.verify(path)
    repository, worktree = await domain.worktrees.find(str(place))
    worktree = worktree.model_copy(update={"path": path, "branch": None, "name": name})
    with pytest.raises(errors.NoSuchWorktree):
        await removal.reasons(domain.git, domain.store, repository, worktree)


async def test_a_link_to_a_folder_whose_name_is_not_utf8(domain, x, tmp_path):
    odd = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(odd)
    os.symlink(odd, tmp_path / "link")
    with pytest.raises(errors.NoSuchWorktree):
        await domain.worktrees.find(str(tmp_path / "link"))


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


@pytest.mark.parametrize("inside", ["", "resc", "worktrees/x", "worktrees/x/resc", "worktrees/y/resc", "objects"])
async def test_a_rescue_into_the_folders_of_git_is_refused(x, remove, domain, tmp_path, inside):
    root, place = x
    await domain.add(root, "y")
    (place / "out.csv").write_text("1")
    (tmp_path / "link").symlink_to(root / ".git")
    for to in (root / ".git" / inside, tmp_path / "link" / inside, place / ".." / "x" / inside):
        with pytest.raises(errors.PathConflict) as caught:
            await remove(place, rescue_to=str(to))
        assert "outside" in caught.value.message
    assert (place / "out.csv").exists()
    assert not list(root.rglob(".git/**/out.csv"))


@pytest.mark.parametrize("way", ["a folder of its own name", "a link back", "a link to .git"])
async def test_a_rescue_that_leads_back_below_its_folder_is_refused(x, remove, tmp_path, way):
    root, place = x
    to = tmp_path / "rescued"
    to.mkdir()
    folder = place / "data"
    if way == "a folder of its own name":
        to, folder = place.parent, place / "x"
        (place / "out.csv").write_text("1")  # the place of the copy, and equal
    elif way == "a link back":
        (to / "data").symlink_to(folder)
    else:
        (root / ".git" / "worktrees" / "x" / "resc").mkdir()
        (to / "data").symlink_to(root / ".git" / "worktrees" / "x" / "resc")
    folder.mkdir()
    (folder / "out.csv").write_text("1")
    with pytest.raises(errors.PathConflict):
        await remove(place, rescue_to=str(to))
    assert (folder / "out.csv").read_text() == "1"


async def test_two_removals_at_once(x, remove):
    _, place = x
    results = await asyncio.gather(remove(place), remove(place), return_exceptions=True)
    assert sorted(type(one).__name__ for one in results) == ["NoSuchWorktree", "tuple"]
