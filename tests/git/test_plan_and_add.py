"""Planning and making worktrees: the base, reuse, conflicts, and that a failure leaves nothing of ours."""


from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ocman_jupyter import errors
from ocman_jupyter.git import made, refs
from ocman_jupyter.git.names import short_hash

from .conftest import hook


def codes(added) -> list[str]:
    return [warned.code for warned in added.warnings]


def snapshot(root: Path) -> tuple:
    """All that a failed add may not change: refs, worktrees, files beside the repository."""
    branches = subprocess.run(["git", "-C", root, "for-each-ref"], capture_output=True, check=True).stdout
    listed = subprocess.run(
        ["git", "-C", root, "worktree", "list", "--porcelain"], capture_output=True, check=True
    )
    beside = sorted(
        str(path.relative_to(root.parent)) for path in root.parent.rglob("*") if ".git" not in path.parts
    )
    # A git that is ended between making this folder and taking note of it leaves it empty, and prunes it later.
    admins = sorted(path.parent.name for path in (root / ".git" / "worktrees").glob("*/gitdir"))
    return branches, listed.stdout, beside, admins


async def cancel_once(task: asyncio.Future, on: Path) -> None:
    """Cancel the task when the file ``on`` is there, and see it end so."""
    await until(on.exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# --- the base ------------------------------------------------------------------------------


async def test_a_new_branch_starts_from_main_and_tracks_nothing(domain, repository, git):
    root = repository()
    added = await domain.add(root, "fix-loader")
    head = git(root, "rev-parse", "main")
    assert added.path == str(root.parent / ".worktrees" / "project" / "fix-loader")
    assert (added.base.ref, added.base.sha) == ("main", head)
    assert 0 <= added.base.age_seconds < 3600
    assert not added.reused and not added.branch_existed and added.warnings == []
    assert git(added.path, "rev-parse", "HEAD") == head
    assert git(added.path, "status", "--porcelain") == ""
    assert git(root, "reflog", "show", "fix-loader") != ""


@pytest.fixture
def cloned(repository, git, tmp_path):
    """A clone whose origin has another default branch, ``trunk``, one commit ahead; and its origin."""
    origin = repository("origin")
    git(origin, "checkout", "-q", "-b", "trunk")
    git(origin, "commit", "-q", "--allow-empty", "-m", "second")
    clone = tmp_path / "repositories" / "clone"
    git(origin, "clone", "-q", str(origin), str(clone))
    git(clone, "config", "user.name", "Test")
    git(clone, "config", "user.email", "test@example.com")
    return clone, origin


async def test_the_default_branch_of_origin_comes_first(domain, cloned, git):
    clone, _ = cloned
    git(clone, "branch", "main", "HEAD~1")
    git(clone, "config", "branch.autoSetupMerge", "always")
    added = await domain.add(clone, "x")
    assert (added.base.ref, added.base.sha) == ("origin/trunk", git(clone, "rev-parse", "origin/trunk"))
    assert subprocess.run(["git", "-C", clone, "config", "branch.x.remote"], check=False).returncode == 1


async def test_a_default_branch_that_is_only_on_the_remote(domain, cloned, git):
    clone, _ = cloned
    git(clone, "checkout", "-q", "-b", "dev")
    git(clone, "branch", "-D", "trunk")
    git(clone, "remote", "set-head", "origin", "--delete")
    assert (await domain.add(clone, "one")).base.ref == "origin/main"
    assert (await domain.add(clone, "two", base="trunk")).base.ref == "origin/trunk"


async def test_a_dangling_origin_head_is_passed_over(domain, cloned, git):
    clone, _ = cloned
    git(clone, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone")
    assert (await domain.add(clone, "one")).base.ref == "origin/main"


async def test_a_branch_whose_commit_is_gone_spoils_nothing(domain, repository, git):
    root = repository()
    (root / ".git" / "refs" / "heads" / "master").write_text("1" * 40 + "\n")
    assert (await domain.add(root, "one")).base.ref == "main"
    git(root, "branch", "-m", "main", "work")
    assert (await domain.add(root, "two")).base.ref == "work"


async def test_without_main_or_master_the_current_branch_of_where_it_was_asked(domain, repository, git):
    root = repository()
    git(root, "branch", "-m", "main", "work")
    first = await domain.add(root, "one")
    assert first.base.ref == "work"
    git(first.path, "-c", "user.name=T", "-c", "user.email=t@e", "commit", "-q", "--allow-empty", "-m", "2")
    second = await domain.add(first.path, "two")
    assert (second.base.ref, second.base.sha) == ("one", git(first.path, "rev-parse", "HEAD"))


async def test_a_tag_of_the_same_name_does_not_win(domain, repository, git):
    root = repository()
    git(root, "commit", "-q", "--allow-empty", "-m", "second")
    git(root, "tag", "main", "HEAD~1")
    git(root, "tag", "x", "HEAD~1")
    head = git(root, "rev-parse", "refs/heads/main")
    assert (await domain.add(root, "one")).base.sha == head
    assert (await domain.add(root, "two", base="main")).base.sha == head
    assert git((await domain.add(root, "x")).path, "rev-parse", "HEAD") == head


@pytest.mark.parametrize("base", ["v1", "HEAD~1", "main~1", "refs/heads/main~1"])
async def test_an_explicit_base(domain, repository, git, base):
    root = repository()
    git(root, "tag", "-a", "v1", "-m", "annotated")
    git(root, "commit", "-q", "--allow-empty", "-m", "second")
    added = await domain.add(root, "x", base=base)
    assert (added.base.ref, added.base.sha) == (base, git(root, "rev-parse", "HEAD~1"))
    assert (await domain.add(root, "y", base=git(root, "rev-parse", "HEAD~1"))).base.sha == added.base.sha


async def test_head_as_base_is_recorded_by_the_name_of_the_branch(domain, repository):
    assert (await domain.add(repository(), "x", base="HEAD")).base.ref == "main"


@pytest.mark.parametrize(
    "base", ["nope", "", "-x", "--all", "main:README.md", "a\nb", "nul\0", "half \ud800", "..", "^main"]
)
async def test_a_base_that_is_no_commit(domain, repository, base):
    root = repository()
    before = snapshot(root)
    with pytest.raises(errors.NoBase):
        await domain.add(root, "x", base=base)
    assert snapshot(root) == before


async def test_a_plan_changes_nothing(domain, repository):
    root = repository()
    before = snapshot(root)
    plan = await domain.worktrees.plan(await domain.resolve(root), "feature")
    assert plan.worktree_path == str(root.parent / ".worktrees" / "project" / "feature")
    assert (plan.reused, plan.branch_existed, plan.base.ref) == (False, False, "main")
    assert snapshot(root) == before


# --- what is there already -----------------------------------------------------------------


async def test_the_same_name_twice_is_the_same_worktree(domain, repository):
    root = repository()
    first = await domain.add(root, "x")
    second = await domain.add(root, "x")
    assert (second.path, second.reused, second.branch_existed) == (first.path, True, True)
    assert second.base.sha == first.base.sha


async def test_two_callers_of_one_name_one_makes_and_the_other_reuses(domain, make_domain, repository):
    root = repository()
    others = [domain, make_domain(), make_domain()]
    added = await asyncio.gather(*(one.add(root, "x") for one in others for _ in range(3)))
    assert {one.path for one in added} == {str(root.parent / ".worktrees" / "project" / "x")}
    assert sorted(one.reused for one in added) == [False] + [True] * 8


async def test_many_names_at_once(domain, repository, git):
    root = repository()
    names = [f"idea-{number}" for number in range(8)] + ["feat/a", "feat-a", "Feat.a"]
    added = await asyncio.gather(*(domain.add(root, name) for name in names))
    assert len({one.path for one in added}) == len(names)
    for one in added:
        assert git(one.path, "symbolic-ref", "--short", "HEAD") == one.branch


async def test_a_git_that_stumbles_after_it_made_the_branch_is_tried_again(
    make_domain, repository, git, wrapper, tmp_path
):
    root = repository()
    once = tmp_path / "once"
    said = "fatal: failed to read .git/worktrees/other/commondir: Success"
    stumble = f'"$REAL" -C {root} branch x "${{@: -1}}"; touch {once}; echo "{said}" >&2; exit 128'
    fault = f'case "$*" in *"worktree add"*) if [ ! -e {once} ]; then {stumble}; fi;; esac'
    added = await make_domain(git_command=wrapper(fault)).add(root, "x")
    assert not added.branch_existed and git(added.path, "symbolic-ref", "--short", "HEAD") == "x"


async def test_an_existing_branch_is_used_as_it_is(domain, repository, git):
    root = repository()
    git(root, "branch", "old")
    git(root, "commit", "-q", "--allow-empty", "-m", "second")
    added = await domain.add(root, "old")
    assert added.branch_existed and not added.reused and added.base is None
    assert git(added.path, "rev-parse", "HEAD") == git(root, "rev-parse", "main~1")
    assert codes(await domain.add(root, "old", base="main")) == ["base_ignored"]


async def test_a_worktree_made_elsewhere_is_reused(domain, repository, git, tmp_path):
    root = repository()
    git(root, "worktree", "add", "-q", "-b", "x", str(tmp_path / "elsewhere"))
    added = await domain.add(root, "x")
    assert (added.path, added.reused) == (str(tmp_path / "elsewhere"), True)


async def test_new_branch_says_whether_it_must_be_new(domain, repository, git):
    root = repository()
    git(root, "branch", "old")
    with pytest.raises(errors.BranchExists):
        await domain.add(root, "old", new_branch=True)
    with pytest.raises(errors.NoSuchBranch):
        await domain.add(root, "new", new_branch=False)
    assert not (await domain.add(root, "new", new_branch=True)).reused
    assert (await domain.add(root, "new", new_branch=False)).reused


async def test_a_branch_that_only_the_remote_has_is_pointed_out(domain, cloned):
    clone, _ = cloned
    with pytest.raises(errors.NoSuchBranch) as caught:
        await domain.add(clone, "main", new_branch=False)
    assert "origin/main" in caught.value.hint
    assert codes(await domain.add(clone, "main")) == ["branch_on_remote"]


async def test_the_branch_of_the_main_checkout(domain, repository):
    root = repository()
    with pytest.raises(errors.BranchCheckedOut) as caught:
        await domain.add(root, "main")
    assert caught.value.details["path"] == str(root)


async def test_an_unborn_branch_of_the_main_checkout_is_not_made_under_it(domain, repository, git):
    root = repository()
    git(root, "checkout", "-q", "--orphan", "fresh")
    with pytest.raises(errors.BranchCheckedOut):
        await domain.add(root, "fresh")


async def test_a_branch_in_the_middle_of_a_rebase_is_where_it_is(domain, repository, git):
    root = repository(files={"a": "1\n"})
    added = await domain.add(root, "x")
    for place, text in ((added.path, "x\n"), (root, "main\n")):
        (Path(place) / "a").write_text(text)
        git(place, "commit", "-q", "-a", "-m", "change")
    assert subprocess.run(["git", "-C", added.path, "rebase", "main"], capture_output=True).returncode != 0
    again = await domain.add(root, "x")
    assert (again.path, again.reused, codes(again)) == (added.path, True, ["operation"])
    listed = (await domain.listed(root))["x"]
    assert (listed.operation, listed.detached, listed.changes.conflicted) == ("rebase", True, 1)


@pytest.mark.parametrize(("existing", "asked"), [("feat", "feat/x"), ("feat/x", "feat"), ("a/b/c", "a/b")])
async def test_names_that_git_cannot_hold_together(domain, repository, git, existing, asked):
    root = repository()
    git(root, "branch", existing)
    before = snapshot(root)
    with pytest.raises(errors.BranchNameConflict) as caught:
        await domain.add(root, asked)
    assert caught.value.details["existing"] == existing
    assert snapshot(root) == before


async def test_names_that_differ_by_case_conflict_only_where_git_folds_case(domain, repository, git):
    root = repository()
    git(root, "branch", "Feat")
    git(root, "config", "core.IgnoreCase", "true")
    with pytest.raises(errors.BranchNameConflict):
        await domain.add(root, "feat")
    git(root, "config", "core.ignorecase", "false")
    assert (await domain.add(root, "feat")).branch == "feat"


async def test_two_branches_of_one_slug_get_distinct_folders(domain, repository):
    root = repository()
    first = await domain.add(root, "feat/a")
    second = await domain.add(root, "feat-a")
    assert Path(first.path).name == "feat-a"
    assert Path(second.path).name == f"feat-a-{short_hash('feat-a')}"
    assert (await domain.add(root, "feat-a")).path == second.path


async def test_a_folder_whose_worktree_went_to_another_branch_is_not_taken_over(domain, repository, git):
    root = repository()
    first = await domain.add(root, "x")
    git(first.path, "checkout", "-q", "-b", "other")
    second = await domain.add(root, "x")
    assert second.path != first.path
    assert git(second.path, "symbolic-ref", "--short", "HEAD") == "x"


async def test_an_empty_folder_in_the_way_is_used_and_anything_else_is_not(domain, repository, tmp_path):
    root = repository()
    place = root.parent / ".worktrees" / "project"
    (place / "empty").mkdir(parents=True)
    assert (await domain.add(root, "empty")).path == str(place / "empty")
    (place / "full").mkdir()
    (place / "full" / "mine.txt").write_text("mine")
    (place / "file").write_text("mine")
    (place / "link").symlink_to(tmp_path)
    (place / "dangling").symlink_to(tmp_path / "nowhere")
    before = snapshot(root)
    for name in ("full", "file", "link", "dangling"):
        with pytest.raises(errors.PathConflict) as caught:
            await domain.add(root, name)
        assert caught.value.details["path"] == str(place / name)
    assert snapshot(root) == before
    assert (place / "full" / "mine.txt").read_text() == "mine"


async def test_a_file_where_the_folder_of_the_worktrees_belongs(domain, repository):
    root = repository()
    (root.parent / ".worktrees").write_text("")
    with pytest.raises(errors.PathConflict) as caught:
        await domain.add(root, "x")
    assert caught.value.details["path"] == str(root.parent / ".worktrees")


async def test_worktrees_can_live_behind_a_link(domain, repository, tmp_path):
    root = repository()
    (tmp_path / "big-disk").mkdir()
    (root.parent / ".worktrees").symlink_to(tmp_path / "big-disk")
    added = await domain.add(root, "x")
    assert added.path == str(tmp_path / "big-disk" / "project" / "x")
    assert (await domain.add(root, "x")).reused


NOBODY = 65534
PACKAGE = Path(errors.__file__).parents[1]
ADD_UNPRIVILEGED = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
from ocman_jupyter.errors import ForbiddenPath
from ocman_jupyter.git.command import Git
from ocman_jupyter.git.worktrees import Worktrees
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store

async def main():
    if os.geteuid() == 0:  # root may write everywhere
        os.setuid(65534)
    settings = OcmanSettings(data_dir=sys.argv[3])
    git, store = Git(settings), Store(sys.argv[3] + "/state.db")
    worktrees = Worktrees(git, store, settings)
    repository = await worktrees.repositories.resolve(sys.argv[2])
    try:
        await worktrees.add(repository, "x")
    except ForbiddenPath as error:
        print("forbidden", error.details["path"])

asyncio.run(main())
"""


async def test_a_parent_that_cannot_be_written(repository, tmp_path):
    root = repository()
    before = snapshot(root)
    data = tmp_path / "unprivileged"
    data.mkdir()
    if os.geteuid() == 0:
        for parent in root.parents:  # pytest's own directories are private
            if str(parent).startswith("/tmp/"):
                parent.chmod(0o755)
        subprocess.run(["chown", "-R", str(NOBODY), str(root), str(data)], check=True)
    root.parent.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", ADD_UNPRIVILEGED, str(PACKAGE), str(root), str(data)],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(data), "XDG_CONFIG_HOME": str(data)},
    )
    root.parent.chmod(0o755)
    assert done.stdout.strip() == f"forbidden {root.parent}", done.stderr
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "0", str(root)], check=True)
    assert snapshot(root) == before


# --- missing, moved, locked ------------------------------------------------------------------


async def test_a_worktree_removed_by_hand_is_made_again(domain, repository, git):
    root = repository()
    first = await domain.add(root, "x")
    git(
        first.path, "-c", "user.name=T", "-c", "user.email=t@e", "commit", "-q", "--allow-empty", "-m", "mine"
    )
    head = git(first.path, "rev-parse", "HEAD")
    shutil.rmtree(first.path)
    plan = await domain.worktrees.plan(await domain.resolve(root), "x")
    assert plan.recreate and [warned.code for warned in plan.warnings] == ["recreated"]
    again = await domain.add(root, "x")
    assert (again.path, again.reused, again.recreated, again.branch_existed) == (
        first.path,
        False,
        True,
        True,
    )
    assert git(again.path, "rev-parse", "HEAD") == head
    assert (await domain.listed(root))["x"].base.ref == "main"


async def test_a_missing_worktree_whose_branch_is_gone_too(domain, repository, git):
    root = repository()
    first = await domain.add(root, "x")
    shutil.rmtree(first.path)
    git(root, "update-ref", "-d", "refs/heads/x")
    again = await domain.add(root, "x")
    assert (again.path, again.recreated, again.branch_existed) == (first.path, True, False)


async def test_a_missing_and_locked_worktree_is_never_forced(domain, repository, git):
    root = repository()
    first = await domain.add(root, "x")
    git(root, "worktree", "lock", "--reason", "on a stick", first.path)
    shutil.rmtree(first.path)
    before = snapshot(root)
    with pytest.raises(errors.WorktreeLocked) as caught:
        await domain.add(root, "x")
    assert "on a stick" in caught.value.message
    assert snapshot(root) == before


async def test_a_worktree_that_lost_its_link_is_not_reused(domain, repository):
    root = repository()
    first = await domain.add(root, "x")
    os.unlink(Path(first.path) / ".git")
    with pytest.raises(errors.PathConflict) as caught:
        await domain.add(root, "x")
    assert "worktree repair" in caught.value.hint
    assert Path(first.path, "README.md").exists()


async def test_after_the_repository_moved_its_worktrees_are_not_reused_until_repaired(
    domain, repository, git, tmp_path
):
    root = repository()
    first = await domain.add(root, "x")
    moved = root.parent / "renamed"
    root.rename(moved)
    with pytest.raises(errors.PathConflict):
        await domain.add(moved, "x")
    git(moved, "worktree", "repair", first.path)
    assert (await domain.add(moved, "x")).path == first.path


# --- hooks and failures ----------------------------------------------------------------------


async def test_a_failing_hook_is_a_warning_with_its_output(domain, repository, git):
    root = repository()
    hook(root, "post-checkout", "echo no luck >&2; exit 7")
    added = await domain.add(root, "x")
    assert codes(added) == ["hook_failed"]
    assert "no luck" in added.warnings[0].message
    assert git(added.path, "status", "--porcelain") == ""
    assert (await domain.add(root, "x")).reused


async def test_a_slow_hook_stops_nobody_else_and_is_not_a_hang(domain, repository, tmp_path):
    root = repository()
    hook(
        root,
        "post-checkout",
        f"case $PWD in */slow) touch {tmp_path}/on; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done;; esac",
    )
    slow = asyncio.ensure_future(domain.add(root, "slow"))
    await until((tmp_path / "on").exists)
    assert not (await domain.add(root, "quick")).reused
    assert not slow.done()
    (tmp_path / "go").touch()
    assert not (await slow).reused


def at_add(*steps: str) -> str:
    """What the wrapper does in place of `git worktree add`; ``$p`` is the path of the worktree."""
    body = "; ".join(steps)
    return f'case "$*" in *"worktree add"*) p="${{@: -2:1}}"; {body};; esac'


REALLY = '"$REAL" "$@" >/dev/null 2>&1'
UNFINISHED = 'a=$("$REAL" -C "$p" rev-parse --git-dir); echo -n initializing > "$a"/locked'


@pytest.mark.parametrize(
    "fault",
    [
        at_add("echo 'fatal: could not write: No space left on device' >&2", "exit 128"),
        at_add(REALLY, 'rm -f "$p"/*', "exit 128"),
        at_add(REALLY, 'rm -f "$p"/*', UNFINISHED, 'rm "$a"/index', "kill -9 $$"),
        at_add(REALLY, 'rm "$p"/*', UNFINISHED, 'rm "$a"/index', 'printf %040d 0 > "$a"/HEAD', "kill -9 $$"),
    ],
    ids=["disk-full", "torn", "killed-before-it-could-tidy-up", "killed-at-the-very-start"],
)
@pytest.mark.parametrize("empty_folder", [False, True])
async def test_a_failed_add_leaves_nothing_of_its_own(make_domain, repository, wrapper, fault, empty_folder):
    root = repository()
    domain = make_domain(git_command=wrapper(fault))
    if empty_folder:
        (root.parent / ".worktrees" / "project" / "x").mkdir(parents=True, mode=0o700)
    before = snapshot(root)
    with pytest.raises(errors.PathConflict) as caught:
        await domain.add(root, "x")
    assert snapshot(root) == before
    assert "left" not in caught.value.details
    if "No space" in fault:
        assert "no space left" in caught.value.message
    assert not (await make_domain().add(root, "x")).reused


async def test_a_failed_add_keeps_the_branch_that_was_there(make_domain, repository, git, wrapper):
    root = repository()
    git(root, "branch", "x")
    domain = make_domain(git_command=wrapper(at_add("exit 128")))
    before = snapshot(root)
    with pytest.raises(errors.PathConflict):
        await domain.add(root, "x")
    assert snapshot(root) == before


async def test_a_file_that_somebody_put_there_survives_the_undo(make_domain, repository, wrapper):
    root = repository()
    fault = at_add(REALLY, 'rm "$p"/README.md', 'echo mine > "$p"/notes', "exit 1")
    domain = make_domain(git_command=wrapper(fault))
    with pytest.raises(errors.PathConflict) as caught:
        await domain.add(root, "x")
    place = root.parent / ".worktrees" / "project" / "x"
    assert (place / "notes").read_text() == "mine\n"
    assert caught.value.details["left"] == [str(place)]


async def test_a_folder_that_appears_meanwhile_is_not_touched(make_domain, repository, git, wrapper):
    root = repository()
    fault = at_add('mkdir -p "$p"', 'echo mine > "$p"/notes')
    domain = make_domain(git_command=wrapper(fault))
    with pytest.raises(errors.PathConflict):
        await domain.add(root, "x")
    assert (root.parent / ".worktrees" / "project" / "x" / "notes").read_text() == "mine\n"
    assert git(root, "branch", "--list", "x") == ""


async def test_a_worktree_that_somebody_else_makes_there_meanwhile_is_theirs(
    make_domain, repository, git, wrapper
):
    root = repository()
    domain = make_domain(
        git_command=wrapper(at_add(f'"$REAL" -C {root} worktree add -q -b theirs "$p" main'))
    )
    added = await domain.add(root, "x")
    assert Path(added.path).name.startswith("x-") and not added.reused
    listed = await domain.listed(root)
    assert (listed["x"].branch, listed["x"].state, listed["x"].made_by_ocman) == ("theirs", "ok", False)


async def test_the_same_worktree_made_by_somebody_else_meanwhile_is_found(make_domain, repository, wrapper):
    root = repository()
    domain = make_domain(git_command=wrapper(at_add(f'"$REAL" -C {root} worktree add -q -b x "$p" main')))
    added = await domain.add(root, "x")
    assert (added.reused, added.branch_existed, added.warnings) == (True, True, [])
    assert not (await domain.listed(root))["x"].made_by_ocman


async def test_the_same_worktree_made_by_somebody_else_survives_a_cancel(
    make_domain, repository, git, wrapper, tmp_path
):
    root, on = repository(), tmp_path / "on"
    theirs = f'"$REAL" -C {root} worktree add -q -b x "$p" main; touch {on}; sleep 30'
    task = asyncio.ensure_future(make_domain(git_command=wrapper(at_add(theirs))).add(root, "x"))
    await cancel_once(task, on)
    place = root.parent / ".worktrees/project/x"
    assert git(place, "rev-parse", "HEAD") == git(root, "rev-parse", "main")


async def test_a_folder_that_fills_before_git_starts_is_seen(domain, repository, monkeypatch):
    root = repository()
    place = root.parent / ".worktrees/project/x"
    save = made.save

    async def slow(*arguments):
        await save(*arguments)
        place.mkdir(parents=True, exist_ok=True)
        (place / "notes").write_text("mine")

    monkeypatch.setattr(made, "save", slow)
    before = snapshot(root)
    with pytest.raises(errors.PathConflict):
        await domain.add(root, "x")
    assert (place / "notes").read_text() == "mine"
    assert snapshot(root)[:2] == before[:2]


async def test_a_branch_that_is_another_ones_second_name_is_in_use(domain, repository, git):
    root = repository()
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    with pytest.raises(errors.BranchCheckedOut) as caught:
        await domain.add(root, "alias")
    assert caught.value.details == {"branch": "alias", "path": str(root)}


@pytest.mark.parametrize("content", ["", "nonsense\n", "ref: refs/heads/x\n", "ref: refs/heads/gone\n"])
async def test_a_broken_branch_is_told_and_left_as_it_is(domain, repository, content):
    root = repository()
    broken = root / ".git/refs/heads/x"
    broken.write_text(content)
    for call in (domain.worktrees.plan, domain.worktrees.add):
        with pytest.raises(errors.BranchNameConflict) as caught:
            await call(await domain.resolve(root), "x")
        assert str(broken) in caught.value.message and "delete" in caught.value.hint
    assert broken.read_text() == content and not (root.parent / ".worktrees/project/x").exists()


async def test_a_branch_that_cannot_be_taken_back_is_told_and_known(make_domain, repository, git, wrapper):
    root = repository()
    locks = f'\ncase "$*" in *"update-ref -d"*) touch {root}/.git/packed-refs.lock;; esac'
    fault = at_add(REALLY, 'rm -f "$p"/*', "exit 128") + locks
    with pytest.raises(errors.PathConflict) as caught:
        await make_domain(git_command=wrapper(fault)).add(root, "x")
    assert caught.value.details["left"] == ["refs/heads/x"]
    (root / ".git/packed-refs.lock").unlink()
    added = await make_domain().add(root, "x", new_branch=True)
    assert not added.branch_existed


async def test_a_file_edited_in_a_half_made_worktree_survives_a_cancel(make_domain, repository, tmp_path):
    on = tmp_path / "on"
    root = repository(files={".gitattributes": "*.slow filter=slow\n", "a.txt": "a\n", "b.slow": "b\n"})
    git_config = ["git", "-C", str(root), "config", "filter.slow.smudge", f"touch {on}; sleep 30; cat"]
    subprocess.run(git_config, check=True)
    domain = make_domain(checkout_workers=1)
    task = asyncio.ensure_future(domain.add(root, "x"))
    await until(on.exists)
    place = root.parent / ".worktrees/project/x"
    (place / "a.txt").write_text("mine\n")
    await cancel_once(task, on)
    assert (place / "a.txt").read_text() == "mine\n"


async def test_an_edit_that_is_hidden_from_status_survives_a_cancel(domain, repository, tmp_path):
    root, on = repository(), tmp_path / "on"
    hides = f"git update-index --skip-worktree README.md; echo mine > README.md; touch {on}; sleep 30"
    hook(root, "post-checkout", hides)
    task = asyncio.ensure_future(domain.add(root, "x"))
    await cancel_once(task, on)
    assert (root.parent / ".worktrees/project/x/README.md").read_text() == "mine\n"


async def test_the_same_branch_made_from_the_same_commit_by_somebody_else_is_kept(
    make_domain, repository, git, wrapper, tmp_path
):
    root, on = repository(), tmp_path / "on"
    theirs = f'"$REAL" -C {root} worktree add -q --no-track -b x -- "$p" $("$REAL" -C {root} rev-parse main)'
    fault = at_add(theirs, f"touch {on}", "sleep 30")
    task = asyncio.ensure_future(make_domain(git_command=wrapper(fault)).add(root, "x"))
    await cancel_once(task, on)
    assert git(root.parent / ".worktrees/project/x", "rev-parse", "HEAD") == git(root, "rev-parse", "main")
    assert git(root, "branch", "--list", "x") != ""


async def test_what_somebody_makes_after_a_making_that_was_killed_is_theirs(domain, repository, git):
    root = repository()
    place = root.parent / ".worktrees/project/x"
    sha = git(root, "rev-parse", "main")
    row = made.Made(str(place), str(root / ".git"), "x", True, "main", sha, "making", time.time())
    await made.save(domain.store, row)
    git(root, "worktree", "add", "-q", "-b", "x", str(place))
    added = await domain.add(root, "x")
    assert added.reused and added.branch_existed
    assert not (await domain.listed(root))["x"].made_by_ocman
    git(root, "worktree", "remove", str(place))
    await made.save(domain.store, row)
    again = await domain.add(root, "x")
    assert again.branch_existed and not again.reused


async def test_a_file_dropped_into_a_half_made_worktree_survives_a_cancel(
    make_domain, repository, tmp_path
):
    on = tmp_path / "on"
    root = repository(files={".gitattributes": "*.slow filter=slow\n", "b.slow": "b\n", "README.md": "hello\n"})
    git_config = ["git", "-C", str(root), "config", "filter.slow.smudge", f"touch {on}; sleep 30; cat"]
    subprocess.run(git_config, check=True)
    task = asyncio.ensure_future(make_domain().add(root, "x"))
    await until(on.exists)
    place = root.parent / ".worktrees/project/x"
    (place / "notes").write_text("mine")
    await cancel_once(task, on)
    assert (place / "notes").read_text() == "mine"


async def test_a_branch_that_appears_between_look_and_deed_is_used_not_deleted(
    make_domain, repository, git, wrapper
):
    root = repository()
    fault = f'case "$*" in *"worktree add"*) "$REAL" -C {root} branch x main 2>/dev/null;; esac'
    domain = make_domain(git_command=wrapper(fault))
    added = await domain.add(root, "x")
    assert added.branch_existed and not added.reused
    assert git(added.path, "symbolic-ref", "--short", "HEAD") == "x"


async def test_a_cancelled_add_leaves_nothing(domain, repository, tmp_path):
    root = repository()
    hook(root, "post-checkout", f"touch {tmp_path}/on; sleep 30")
    before = snapshot(root)
    task = asyncio.ensure_future(domain.add(root, "x"))
    await cancel_once(task, tmp_path / "on")
    assert snapshot(root) == before


@pytest.mark.parametrize("step", range(12))
async def test_cancelled_at_any_step_leaves_all_or_nothing(domain, repository, step):
    root = repository()
    before = snapshot(root)
    task = asyncio.ensure_future(domain.add(root, "x"))
    await asyncio.sleep(step * 0.004)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        assert snapshot(root) == before
    else:
        assert (await domain.listed(root))["x"].state == "ok"
    assert (await domain.add(root, "x")).path.endswith("/x")


async def test_a_branch_that_appears_while_an_add_is_cancelled_is_kept(
    make_domain, repository, git, wrapper, tmp_path
):
    root = repository()
    on = tmp_path / "on"
    fault = f'case "$*" in *"worktree add"*) "$REAL" -C {root} branch x main; touch {on}; sleep 30;; esac'
    task = asyncio.ensure_future(make_domain(git_command=wrapper(fault)).add(root, "x"))
    await cancel_once(task, on)
    assert git(root, "rev-parse", "x") == git(root, "rev-parse", "main")


@pytest.mark.parametrize("content", ["", "gitdir: ", "gitdir: {admin}"])
async def test_a_link_that_the_killed_git_left_half_written_goes(make_domain, repository, wrapper, tmp_path, content):
    root, on = repository(), tmp_path / "on"
    before = snapshot(root)
    admin = root / ".git/worktrees/x"
    link = content.format(admin=str(admin)[:-1])
    torn = f'rm -r "$p"/*; rm {admin}/HEAD; echo initializing > {admin}/locked; printf %s "{link}" > "$p"/.git'
    fault = at_add(REALLY, torn, f"touch {on}", "sleep 30")
    task = asyncio.ensure_future(make_domain(git_command=wrapper(fault)).add(root, "x"))
    await cancel_once(task, on)
    assert snapshot(root) == before


async def test_a_lock_that_the_ended_git_left_does_not_keep_its_branch(make_domain, repository, wrapper, tmp_path):
    root = repository()
    before = snapshot(root)
    on, lock = tmp_path / "on", root / ".git/refs/heads/x.lock"
    fault = f'case "$*" in *"worktree add"*) "$REAL" "$@"; touch {lock} {on}; sleep 30;; esac'
    task = asyncio.ensure_future(make_domain(git_command=wrapper(fault)).add(root, "x"))
    await cancel_once(task, on)
    assert snapshot(root) == before and not lock.exists()


async def test_a_worktree_that_another_git_still_makes_is_not_handed_out(domain, repository, git):
    root = repository()
    git(root, "worktree", "add", "-q", "-b", "x", str(root.parent / "elsewhere"))
    (root / ".git/worktrees/elsewhere/locked").write_text("initializing\n")
    with pytest.raises(errors.WorktreeLocked) as caught:
        await domain.add(root, "x")
    assert "still making" in caught.value.message
    (root / ".git/worktrees/elsewhere/locked").unlink()
    assert (await domain.add(root, "x")).reused


async def test_a_branch_that_another_worktree_is_on_meanwhile_is_kept(
    make_domain, repository, git, wrapper, tmp_path
):
    root, on, other = repository(), tmp_path / "on", tmp_path / "other"
    also = f'"$REAL" "$@"; "$REAL" -C {root} worktree add -q --force {other} x; touch {on}; sleep 30'
    fault = f'case "$*" in *"worktree add"*) {also};; esac'
    task = asyncio.ensure_future(make_domain(git_command=wrapper(fault)).add(root, "x"))
    await cancel_once(task, on)
    assert git(other, "rev-parse", "HEAD") == git(root, "rev-parse", "main")


REFS = {
    "loose": [],
    "packed": [("pack-refs", "--all")],
    "packed and moved on": [("pack-refs", "--all"), ("commit", "-q", "--allow-empty", "-m", "later")],
    "with a remote": [
        ("update-ref", "refs/remotes/origin/dev", "HEAD"),
        ("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/dev"),
        ("update-ref", "refs/remotes/origin/fix/a", "HEAD"),
    ],
    "with a remote, packed": [
        ("update-ref", "refs/remotes/origin/dev", "HEAD"),
        ("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/dev"),
        ("pack-refs", "--all"),
    ],
    "neighbours": [
        *(("branch", name) for name in ("fix/b", "FIX", "fixes")),
        ("pack-refs", "--all"),
        ("branch", "fix/c/d"),
    ],
    "no default": [("branch", "-m", "trunk")],
    "a default that dangles": [("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone")],
}  # fmt: skip


@pytest.mark.parametrize("commands", REFS.values(), ids=REFS)
async def test_the_files_of_the_refs_tell_what_git_tells(domain, repository, git, commands):
    root = repository()
    for command in commands:
        git(root, *command)
    there = await domain.resolve(root)
    for branch in ("fix/a", "fix/b", "main", "Fix", "other"):
        told = await refs.read_refs(domain.git, there, branch)
        plain = {name: refs.Commit(one.sha, None) for name, one in told.defaults.items()}
        first = branch.split("/")[0].lower()
        near = {name: sha for name, sha in told.branches.items() if name.split("/")[0].lower() == first}
        seen = refs.glance(there.common_dir, branch)
        assert near.items() <= seen.branches.items()  # git leaves out fix/a where it is asked for Fix
        assert seen == dataclasses.replace(told, defaults=plain, branches=seen.branches)


@pytest.mark.parametrize("odd", ["symbolic branch", "reftable", "rubbish", "very many"])
async def test_files_that_do_not_tell_are_left_to_git(domain, repository, git, monkeypatch, odd):
    root = repository()
    if odd == "symbolic branch":
        git(root, "symbolic-ref", "refs/heads/x/y", "refs/heads/main")
    elif odd == "reftable":
        (root / ".git" / "reftable").mkdir()
    elif odd == "rubbish":
        (root / ".git" / "packed-refs").write_text("rubbish\n")
    else:
        git(root, "pack-refs", "--all")
        monkeypatch.setattr(refs, "_MOST_PACKED", 10)
    assert refs.glance(str(root / ".git"), "x") is None
    if odd != "rubbish":  # git dies of that
        assert (await domain.add(root, "z")).base.ref == "main"


async def test_a_default_whose_commit_is_gone_is_passed_over(domain, repository, git):
    root = repository()
    (root / ".git" / "refs" / "remotes" / "origin").mkdir(parents=True)
    (root / ".git" / "refs" / "remotes" / "origin" / "HEAD").write_text("ref: refs/remotes/origin/main\n")
    (root / ".git" / "refs" / "remotes" / "origin" / "main").write_text("1" * 40 + "\n")
    added = await domain.add(root, "x")
    assert (added.base.ref, added.branch_existed) == ("main", False)
    assert added.base.age_seconds is not None


async def test_progress_tells_how_far_the_checkout_is(domain, repository, monkeypatch):
    monkeypatch.setenv("GIT_PROGRESS_DELAY", "0")
    root = repository(files={f"f{number}": str(number) for number in range(300)})
    hook(root, "post-checkout", "sleep 0.6")
    said: list[tuple[str, float | None]] = []
    await domain.add(root, "x", progress=lambda message, fraction: said.append((message, fraction)))
    assert said[0] == ("Making the worktree", None)
    assert ("Checking out files", 1.0) in said


# --- crashes -----------------------------------------------------------------------------------

ADD_AND_DIE = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from ocman_jupyter.git.command import Git
from ocman_jupyter.git.worktrees import Worktrees
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store

async def main():
    settings = OcmanSettings(data_dir=sys.argv[3], git_command=sys.argv[4])
    worktrees = Worktrees(Git(settings), Store(sys.argv[3] + "/state.db"), settings)
    await worktrees.add(await worktrees.repositories.resolve(sys.argv[2]), "x")

asyncio.run(main())
"""


async def crash(domain, root: Path, command: str, when) -> None:
    """Start an add in another process and kill that process when ``when()`` is true."""
    process = subprocess.Popen(
        [sys.executable, "-c", ADD_AND_DIE, str(PACKAGE), str(root), domain.settings.data_dir, command]
    )
    try:
        await until(when)
    finally:
        process.kill()
        process.wait()


async def until(condition, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        await asyncio.sleep(0.01)


async def test_killed_before_the_checkout_the_next_add_makes_it(domain, repository, wrapper, tmp_path):
    root = repository()
    fault = at_add(f"touch {tmp_path}/on", "exec sleep 0.3")
    await crash(domain, root, wrapper(fault), (tmp_path / "on").exists)
    added = await domain.add(root, "x", new_branch=True)
    assert (added.reused, added.branch_existed, added.base.ref) == (False, False, "main")


async def test_killed_while_git_lives_on_the_next_add_waits_for_it(domain, repository, tmp_path, git):
    root = repository()
    hook(root, "post-checkout", f"touch {tmp_path}/on; sleep 1; touch {tmp_path}/done")
    await crash(domain, root, "git", (tmp_path / "on").exists)
    added = await domain.add(root, "x")
    assert (tmp_path / "done").exists()
    assert not added.reused and not added.branch_existed
    assert git(added.path, "status", "--porcelain") == ""
    assert (await domain.listed(root))["x"].made_by_ocman


@pytest.mark.parametrize("index", [True, False])
async def test_a_half_made_tree_is_completed_and_no_file_of_the_user_is_lost(
    domain, repository, wrapper, tmp_path, git, index
):
    root = repository(
        files={"a.txt": "all of a\n", "b.txt": "all of b\n", "c/d.txt": "d\n", "edited.txt": "old and long\n"}
    )
    fault = at_add(
        REALLY,
        UNFINISHED,
        'touch "$a"/index.lock',
        "true" if index else 'rm "$a"/index',
        'rm -r "$p"/c "$p"/b.txt',
        'printf "all o" > "$p"/a.txt',
        'echo mine | tee "$p"/edited.txt > "$p"/new.txt',
        f"touch {tmp_path}/on",
        "exec sleep 0.3",
    )
    hook(root, "post-checkout", f"echo ran >> {tmp_path}/hooks")
    await crash(domain, root, wrapper(fault), (tmp_path / "on").exists)
    added = await domain.add(root, "x")
    place = Path(added.path)
    assert not added.reused
    assert (place / "a.txt").read_text() == "all of a\n"
    assert (place / "b.txt").read_text() == "all of b\n"
    assert (place / "c" / "d.txt").read_text() == "d\n"
    assert (place / "edited.txt").read_text() == "mine\n"
    assert (place / "new.txt").read_text() == "mine\n"
    assert git(place, "status", "--porcelain") in ("M edited.txt\n?? new.txt", " M edited.txt\n?? new.txt")
    listed = (await domain.listed(root))["x"]
    assert (listed.state, listed.locked, listed.made_by_ocman) == ("ok", False, True)
    assert (tmp_path / "hooks").read_text().count("ran") == 2


# --- odd repositories --------------------------------------------------------------------------


async def test_submodules_and_sparse_trees(domain, repository, git):
    inner, outer = repository("inner"), repository("outer", files={"a/1": "", "b/2": ""})
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    git(outer, "commit", "-q", "-m", "submodule")
    git(outer, "config", "submodule.recurse", "true")
    git(outer, "sparse-checkout", "set", "a")
    added = await domain.add(outer, "x")
    listed = (await domain.listed(outer))["x"]
    assert (listed.state, listed.changes.modified) == ("ok", 0)
    assert Path(added.path, "a", "1").exists()


async def test_a_required_filter_that_fails_is_said_and_undone(domain, repository, git):
    root = repository(files={".gitattributes": "*.bin filter=broken\n", "data.bin": "x"})
    git(root, "config", "filter.broken.smudge", "false")
    git(root, "config", "filter.broken.required", "true")
    before = snapshot(root)
    with pytest.raises(errors.PathConflict) as caught:
        await domain.add(root, "x")
    assert "smudge" in caught.value.details["output"]
    assert snapshot(root) == before


async def test_a_state_file_that_cannot_be_written(domain, repository):
    root = repository()
    before = snapshot(root)
    domain.store.transact(lambda connection: connection.execute("PRAGMA query_only=ON"))
    with pytest.raises(errors.StateUnusable):
        await domain.add(root, "x")
    domain.store.close()
    assert snapshot(root) == before
