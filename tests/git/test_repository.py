"""Any path inside a repository leads to its main checkout; what is remembered is checked."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from ocman_jupyter.errors import NoCommits, NoSuchDirectory, NotARepository


async def test_every_path_inside_leads_to_the_main_checkout(domain, repository, git, tmp_path):
    root = repository(files={"src/deep/a.py": ""})
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "-b", "x", str(linked))
    link = tmp_path / "link"
    link.symlink_to(root / "src")
    for place in (
        root,
        root / "src" / "deep",
        f"{root}/",
        f"{root}/src/../src",
        link,
        root / ".git",
        root / ".git" / "refs",
        linked,
        linked / "src",
        root / ".git" / "worktrees" / "linked",
    ):
        found = await domain.resolve(place)
        assert (found.root, found.common_dir, found.bare) == (str(root), str(root / ".git"), False), place
        assert found.worktrees_root == str(root.parent / ".worktrees" / root.name)
    assert (await domain.resolve(linked / "src")).toplevel == str(linked)
    assert (await domain.resolve(root / ".git")).toplevel == str(root)


async def test_no_worktree_nests_in_a_worktree(domain, repository):
    root = repository()
    first = await domain.add(root, "one")
    second = await domain.add(first.path, "two")
    assert Path(second.path).parent == Path(first.path).parent


async def test_a_bare_repository_is_known_from_its_folder_and_its_worktrees(
    domain, repository, git, tmp_path
):
    root = repository()
    bare = tmp_path / "shared.git"
    git(tmp_path, "clone", "-q", "--bare", str(root), str(bare))
    linked = tmp_path / "linked"
    git(bare, "worktree", "add", "-q", str(linked), "main")
    for place in (bare, linked, bare / "refs"):
        found = await domain.resolve(place)
        assert (found.root, found.bare, found.name) == (str(bare), True, "shared"), place
        assert found.worktrees_root == str(tmp_path / ".worktrees" / "shared")
    added = await domain.add(bare, "idea")
    assert added.path == str(tmp_path / ".worktrees" / "shared" / "idea")
    listed = await domain.listed(bare)
    assert set(listed) == {"linked", "idea"}
    assert not any(one.is_main for one in listed.values())


async def test_a_bare_git_folder_inside_its_project(domain, repository, git, tmp_path):
    root = repository()
    git(tmp_path, "clone", "-q", "--bare", str(root), str(tmp_path / "project" / ".git"))
    found = await domain.resolve(tmp_path / "project" / ".git")
    assert found.worktrees_root == str(tmp_path / ".worktrees" / "project")


async def test_a_submodule_is_a_repository_of_its_own(domain, repository, git):
    inner, outer = repository("inner"), repository("outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    found = await domain.resolve(outer / "sub")
    assert (found.root, found.bare) == (str(outer / "sub"), False)
    assert found.worktrees_root == str(outer / ".worktrees" / "sub")
    git(outer / "sub", "worktree", "add", "-q", "-b", "x", str(outer.parent / "sub-x"))
    assert (await domain.resolve(outer.parent / "sub-x")).root == str(outer / "sub")
    names = await domain.listed(outer / "sub")
    assert names["sub"].is_main and names["sub"].state == "ok"


async def test_a_separate_git_directory(domain, tmp_path, git):
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "store"), str(tmp_path / "checkout"))
    found = await domain.resolve(tmp_path / "checkout")
    assert (found.root, found.common_dir) == (str(tmp_path / "checkout"), str(tmp_path / "store"))


@pytest.mark.parametrize("name", ["two words", "é and ü", "new\nline", "quote'\"$(x)", "-dash"])
async def test_names_with_odd_characters(domain, repository, name):
    root = repository(name)
    found = await domain.resolve(root)
    assert (found.root, found.name) == (str(root), name)
    added = await domain.add(root, "feature")
    assert added.path == str(root.parent / ".worktrees" / name / "feature")
    assert (await domain.listed(root))["feature"].state == "ok"
    assert (await domain.resolve(added.path)).root == str(root)


async def test_what_is_no_repository(domain, tmp_path):
    with pytest.raises(NotARepository):
        await domain.resolve(tmp_path)
    (tmp_path / "file").touch()
    for place in (tmp_path / "gone", tmp_path / "file", "relative", "nul\0", "half \ud800 pair"):
        with pytest.raises(NoSuchDirectory):
            await domain.resolve(place)


async def test_a_look_that_failed_is_not_remembered(domain, repository, git, tmp_path):
    place = tmp_path / "later"
    place.mkdir()
    with pytest.raises(NotARepository):
        await domain.resolve(place)
    git(place, "init", "-q")
    assert (await domain.resolve(place)).root == str(place)


async def test_a_cancelled_look_is_not_remembered(make_domain, repository, wrapper, tmp_path):
    root = repository()
    domain = make_domain(git_command=wrapper(f"[ -e {tmp_path}/go ] || sleep 30"))
    task = asyncio.ensure_future(domain.resolve(root))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (tmp_path / "go").touch()
    assert (await domain.resolve(root)).root == str(root)


async def test_a_warm_answer_starts_no_process_and_is_checked(domain, repository, git):
    root = repository(files={"sub/a.txt": ""})
    await domain.resolve(root / "sub")
    before = domain.git.started
    await domain.resolve(root / "sub")
    assert domain.git.started == before
    git(root / "sub", "init", "-q")
    assert (await domain.resolve(root / "sub")).root == str(root / "sub")
    shutil.rmtree(root / "sub" / ".git")
    shutil.rmtree(root / ".git")
    with pytest.raises(NotARepository):
        await domain.resolve(root / "sub")


async def test_a_repository_that_was_replaced_is_looked_at_anew(domain, repository, git, tmp_path):
    root = repository()
    before = await domain.resolve(root)
    root.rename(tmp_path / "moved")
    with pytest.raises(NoSuchDirectory):
        await domain.resolve(root)
    assert (await domain.resolve(tmp_path / "moved")).common_dir != before.common_dir


async def test_a_link_to_the_worktrees_that_is_pointed_elsewhere_is_seen(domain, repository, tmp_path):
    root = repository()
    link = root.parent / ".worktrees" / root.name
    link.parent.mkdir()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        assert (await domain.resolve(root)).worktrees_root == str(tmp_path / name)


@pytest.mark.parametrize("part", ["objects", "refs", "HEAD"])
async def test_a_damaged_repository_is_not_answered_from_memory(domain, repository, part):
    root = repository()
    await domain.resolve(root)
    (root / ".git" / part).rename(root / "elsewhere")
    with pytest.raises(NotARepository):
        await domain.resolve(root)


@pytest.mark.parametrize("part", ["HEAD", "commondir"])
async def test_a_worktree_whose_admin_folder_is_damaged_is_not_answered_from_memory(domain, repository, part):
    root = repository()
    added = await domain.add(root, "x")
    await domain.resolve(added.path)
    (root / ".git/worktrees/x" / part).unlink()
    with pytest.raises(NotARepository):
        await domain.resolve(added.path)


async def test_a_link_that_is_written_anew_in_place_is_seen(domain, repository, git):
    """The file system may give the number of a file that went to the one that came."""
    root, other = repository(), repository("other")
    place = root.parent / "place"
    git(root, "worktree", "add", "-q", "-b", "x", str(place))
    git(other, "worktree", "add", "-q", "-b", "y", str(root.parent / "elsewhere"))
    assert (await domain.resolve(place)).root == str(root)
    number = (place / ".git").stat().st_ino
    (place / ".git").write_text((root.parent / "elsewhere" / ".git").read_text())
    assert (place / ".git").stat().st_ino == number
    assert (await domain.resolve(place)).root == str(other)


async def test_a_folder_that_lost_its_git_file_is_not_taken_for_the_repository_around_it(
    domain, repository, git
):
    outer = repository("outer")
    root = outer / "nested"
    git(outer, "init", "-q", "--initial-branch=main", str(root))
    git(root, "-c", "user.name=T", "-c", "user.email=t@e", "commit", "-q", "--allow-empty", "-m", "1")
    added = await domain.add(root, "lost")
    await domain.resolve(added.path)
    os.unlink(Path(added.path) / ".git")
    with pytest.raises(NotARepository) as caught:
        await domain.resolve(added.path)
    assert "worktree repair" in caught.value.hint
    assert (await domain.listed(root))["lost"].state == "not_a_worktree"


async def test_worktrees_that_another_tool_keeps_inside_the_repository_are_found(domain, repository, git):
    root = repository(files={"src/a.py": ""})
    git(root, "worktree", "add", "-q", "-b", "x", str(root / ".worktrees" / "feature"))
    found = await domain.resolve(root / ".worktrees" / "feature" / "src")
    assert (found.root, found.toplevel) == (str(root), str(root / ".worktrees" / "feature"))


async def test_no_commits(domain, repository):
    root = repository(commit=False)
    found = await domain.resolve(root)
    with pytest.raises(NoCommits):
        await domain.worktrees.repositories.require_commits(found)
    for options in ({}, {"base": "main"}, {"base": "HEAD"}):
        with pytest.raises(NoCommits):
            await domain.worktrees.add(found, "feature", **options)
    assert not (root.parent / ".worktrees").exists()
