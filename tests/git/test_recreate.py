"""A missing worktree is made again only when nothing that git still remembers of it goes with that."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ocman_jupyter import errors
from ocman_jupyter.git import removal

IDENTITY = ("-c", "user.name=T", "-c", "user.email=t@e")


@pytest.fixture
def x(domain, repository, jp_asyncio_loop):
    """A repository and a worktree of it, with two commits of its own."""
    root = repository(files={"a": "1\n", "b": "1\n"})
    place = Path(jp_asyncio_loop.run_until_complete(domain.add(root, "x")).path)
    for name in ("one", "two"):
        (place / name).write_text(name)
        subprocess.run(["git", "-C", place, "add", name], check=True)
        subprocess.run(["git", "-C", place, *IDENTITY, "commit", "-q", "-m", name], check=True)
    return root, place


async def refused(domain, root: Path, branch: str = "x") -> errors.OcmanError:
    """What plan and add both say, having changed nothing."""
    admin = root / ".git" / "worktrees" / "x"
    before = sorted((str(path), path.stat().st_mtime_ns) for path in admin.rglob("*"))
    repository = await domain.resolve(root)
    with pytest.raises(errors.WouldLoseWork) as planned:
        await domain.worktrees.plan(repository, branch)
    with pytest.raises(errors.WouldLoseWork) as caught:
        await domain.worktrees.add(repository, branch)
    assert planned.value.to_json() == caught.value.to_json()
    assert sorted((str(path), path.stat().st_mtime_ns) for path in admin.rglob("*")) == before
    return caught.value


def told(error: errors.OcmanError) -> dict[str, list[str]]:
    return {one["code"]: [item["path"] for item in one["items"]] for one in error.details["reasons"]}


async def test_commits_that_only_its_own_log_remembers(domain, x, git):
    root, place = x
    git(place, "checkout", "-q", "--detach")
    git(place, *IDENTITY, "commit", "-q", "--allow-empty", "-m", "detached work")
    sha = git(place, "rev-parse", "HEAD")
    git(place, "checkout", "-q", "x")
    shutil.rmtree(place)
    error = await refused(domain, root)
    (item,) = told(error)["unreachable_commits"]
    short = item.split(" ")[0]
    assert sha.startswith(short) and item.endswith("detached work")
    assert short in error.hint and f"git -C '{root}' branch NAME SHA" in error.hint
    assert str(place) in error.message and "again" in error.message
    git(root, "branch", "kept", short)  # as the hint says
    assert (await domain.add(root, "x")).recreated
    assert git(root, "rev-parse", "kept") == sha


async def test_a_rebase_under_way(domain, x, git):
    root, place = x
    env = {**os.environ, "GIT_SEQUENCE_EDITOR": "sed -i '1s/pick/edit/'"}
    rebase = ["git", "-C", place, *IDENTITY, "rebase", "-q", "-i", "HEAD~2"]
    subprocess.run(rebase, env=env, check=True, capture_output=True)
    git(place, *IDENTITY, "commit", "-q", "--amend", "-m", "reworked")
    shutil.rmtree(place)
    found = told(await refused(domain, root))
    assert set(found) == {"operation", "unreachable_commits"}
    assert any(item.endswith("reworked") for item in found["unreachable_commits"])


async def test_what_is_only_staged(domain, x, git, tmp_path):
    root, place = x
    (place / "a").write_text("staged\n")
    (place / "new é").write_text("new\n")
    git(place, "add", "a", "new é")
    git(place, "rm", "-q", "b")
    (place / "later").write_text("")
    git(place, "add", "--intent-to-add", "later")  # its content was in the folder
    shutil.rmtree(place)
    error = await refused(domain, root)
    assert told(error) == {"uncommitted": ["a", "new é"]}
    assert "branch NAME" not in error.hint
    repository, worktree = await domain.worktrees.find(str(place))
    _, (patch,) = await removal.remove(
        domain.git,
        domain.store,
        domain.settings,
        repository,
        worktree,
        rescue_to=str(tmp_path / "rescued"),
        rescue=["uncommitted"],
    )
    again = await domain.add(root, "x")
    git(again.path, "apply", patch.to)
    assert (place / "a").read_text() == "staged\n"
    assert (place / "new é").read_text() == "new\n"


async def test_accepted_and_removed_it_is_made_again(domain, x, git):
    root, place = x
    (place / "a").write_text("staged\n")
    git(place, "add", "a")
    shutil.rmtree(place)
    accept = set(told(await refused(domain, root)))
    repository, worktree = await domain.worktrees.find(str(place))
    await removal.remove(domain.git, domain.store, domain.settings, repository, worktree, accept=accept)
    assert Path((await domain.add(root, "x")).path, "a").read_text() == "1\n"


async def test_commits_of_a_branch_that_is_gone_as_well(domain, x, git):
    root, place = x
    shutil.rmtree(place)
    git(root, "update-ref", "-d", "refs/heads/x")
    found = told(await refused(domain, root))
    assert [item.split()[1] for item in found["unreachable_commits"]] == ["two", "one"]


async def test_a_branch_that_moved_on_has_staged_nothing(domain, x, git):
    root, place = x
    shutil.rmtree(place)
    git(root, "update-ref", "refs/heads/x", "main")
    again = await domain.add(root, "x")
    assert again.recreated
    assert not (place / "one").exists()


async def test_of_a_bare_repository(domain, repository, git, tmp_path):
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", repository(), bare], check=True)
    place = Path((await domain.add(bare, "x")).path)
    shutil.rmtree(place)
    assert (await domain.add(bare, "x")).recreated
    (place / "new").write_text("new")
    git(place, "add", "new")
    shutil.rmtree(place)
    with pytest.raises(errors.WouldLoseWork) as caught:
        await domain.add(bare, "x")
    assert told(caught.value) == {"uncommitted": ["new"]}


async def test_repositories_of_submodules(domain, repository, git):
    root, allow = repository("outer"), ("-c", "protocol.file.allow=always")
    git(root, *allow, "submodule", "add", "-q", str(repository("inner")), "sub")
    git(root, "commit", "-q", "-m", "submodule")
    place = Path((await domain.add(root, "x")).path)
    shutil.rmtree(place)
    assert (await domain.add(root, "x")).recreated  # none was checked out
    git(place, *allow, "submodule", "update", "-q", "--init")
    git(place / "sub", *IDENTITY, "commit", "-q", "--allow-empty", "-m", "only here")
    shutil.rmtree(place)
    assert set(told(await refused(domain, root))) == {"unverified"}


async def test_what_cannot_be_looked_at_is_not_thrown_away(domain, x):
    root, place = x
    shutil.rmtree(place)
    (root / ".git" / "worktrees" / "x" / "index").write_bytes(b"rubbish")
    assert set(told(await refused(domain, root))) == {"unverified"}
