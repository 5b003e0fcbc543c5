"""Ahead, behind and merged: as git counts them, also when a branch was squash-merged, in few processes."""


from __future__ import annotations

import random
from pathlib import Path

import pytest

IDENTITY = ("-c", "user.name=T", "-c", "user.email=t@e")


@pytest.fixture
def commit(git):
    def make(place, name, text, message="change"):
        path = Path(place, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        git(place, "add", "--all")
        git(place, *IDENTITY, "commit", "-q", "-m", message)
        return git(place, "rev-parse", "HEAD")

    return make


async def test_merged_is_yes_after_a_merge_and_no_before_anything_was_done(domain, repository, git, commit):
    root = repository()
    place = (await domain.add(root, "x")).path
    assert (await domain.listed(root))["x"].merged == "no"
    commit(root, "other", "1")
    one = (await domain.listed(root))["x"]
    assert (one.merged, one.ahead, one.behind) == ("no", 0, 1)
    commit(place, "mine", "1")
    one = (await domain.listed(root))["x"]
    assert (one.merged, one.ahead, one.behind) == ("no", 1, 1)
    git(root, *IDENTITY, "merge", "-q", "--no-edit", "x")
    one = (await domain.listed(root))["x"]
    assert (one.merged, one.ahead, one.behind) == ("yes", 0, 2)


LINES = "".join(f"{number}\n" for number in range(40))


@pytest.mark.parametrize("later", ["nothing", "another file", "the same file"])
async def test_squash_merged_work_counts_as_merged(domain, repository, git, commit, later):
    root = repository(files={"a": LINES, "z": "z"})
    place = (await domain.add(root, "x")).path
    commit(place, "a", LINES.replace("5\n", "five\n", 1))
    commit(place, "new", "new\n")
    git(root, *IDENTITY, "merge", "-q", "--squash", "x")
    git(root, *IDENTITY, "commit", "-q", "-m", "squashed")
    if later == "another file":
        commit(root, "b", "later")
    if later == "the same file":
        commit(root, "a", Path(root, "a").read_text() + "end\n")
        commit(root, "new", "newer\n")
    one = (await domain.listed(root))["x"]
    assert (one.merged, one.ahead) == ("squashed", 2)
    commit(place, "more", "not yet merged")
    assert (await domain.listed(root))["x"].merged == "no"


async def test_what_only_looks_like_a_squash_is_not_one(domain, repository, git, commit):
    root = repository(files={"a": LINES, "bin": "\0", "b": "b"})
    places = {
        name: (await domain.add(root, name)).path for name in ("part", "binary", "mode", "undone", "empty")
    }
    commit(places["part"], "a", LINES.replace("5\n", "five\n", 1))
    commit(places["part"], "b", "changed")
    commit(places["binary"], "a", LINES.replace("9\n", "nine\n", 1))
    commit(places["binary"], "bin", b"\0one")
    Path(places["mode"], "b").chmod(0o755)
    git(places["mode"], *IDENTITY, "commit", "-q", "-a", "-m", "mode")
    commit(places["undone"], "a", LINES.replace("7\n", "seven\n", 1))
    git(places["undone"], *IDENTITY, "revert", "--no-edit", "HEAD")
    git(places["empty"], *IDENTITY, "commit", "-q", "--allow-empty", "-m", "empty")
    commit(root, "a", LINES.replace("5\n", "five\n", 1))
    Path(root, "bin").write_bytes(b"\0two")
    commit(root, "a", LINES.replace("9\n", "nine\n", 1))
    listed = await domain.listed(root)
    assert {name: listed[name].merged for name in places} == dict.fromkeys(places, "no")


async def test_a_worktree_is_compared_with_the_base_it_was_made_from(domain, repository, git, commit):
    root = repository()
    git(root, "branch", "develop")
    place = (await domain.add(root, "x", base="develop")).path
    commit(root, "main-only", "1")
    commit(place, "mine", "1")
    one = (await domain.listed(root))["x"]
    assert (one.base.ref, one.ahead, one.behind) == ("develop", 1, 0)
    git(root, "branch", "-f", "develop", "x")
    assert (await domain.listed(root))["x"].merged == "yes"
    git(root, "branch", "-D", "develop")
    assert (await domain.listed(root))["x"].ahead == 1


async def test_unrelated_histories(domain, repository, git, commit):
    root = repository()
    git(root, "checkout", "-q", "--orphan", "other")
    git(root, *IDENTITY, "commit", "-q", "--allow-empty", "-m", "other root")
    git(root, "checkout", "-q", "main")
    git(root, "worktree", "add", "-q", str(root.parent / "other"), "other")
    one = (await domain.listed(root))["other"]
    assert (one.ahead, one.behind, one.merged) == (1, 1, "no")


async def test_counts_are_those_of_git_in_a_tangled_history(domain, repository, git):
    root = repository()
    chance = random.Random(7)
    tree = git(root, "rev-parse", "HEAD^{tree}")
    commits = [git(root, "rev-parse", "HEAD")]
    for number in range(60):
        parents = chance.sample(commits[-8:], k=min(len(commits[-8:]), chance.choice([1, 1, 1, 2])))
        arguments = [word for parent in parents for word in ("-p", parent)]
        commits.append(git(root, *IDENTITY, "commit-tree", tree, *arguments, "-m", str(number)))
    heads = chance.sample(commits, 12)
    git(root, "update-ref", "refs/heads/main", commits[-5])
    for number, head in enumerate(heads):
        git(root, "branch", f"b{number}", head)
        git(root, "worktree", "add", "-q", str(root.parent / f"b{number}"), f"b{number}")
    before = domain.git.started
    listed = await domain.listed(root)
    assert domain.git.started - before <= 3 + 13 + 6
    for number, head in enumerate(heads):
        behind, ahead = git(root, "rev-list", "--left-right", "--count", f"main...{head}").split()
        one = listed[f"b{number}"]
        assert (one.ahead, one.behind) == (int(ahead), int(behind))
        assert (one.merged == "yes") == (int(ahead) == 0)


async def test_a_comparison_is_made_once(domain, repository, git, commit):
    root = repository(files={"a": LINES})
    for name in ("x", "y", "z"):
        commit((await domain.add(root, name)).path, "a", LINES + name)
    commit(root, "a", "1\n" + LINES)
    await domain.listed(root)
    before = domain.git.started
    await domain.listed(root)
    looks = domain.git.started - before
    assert looks <= 3 + 1 + 4  # list, where the bases are now, and a status of each tree that is still young


async def test_paths_that_look_like_patterns(domain, repository, git, commit):
    root = repository(files={"[a]*": LINES, "a": "x"})
    place = (await domain.add(root, "x")).path
    commit(place, "[a]*", LINES.replace("5\n", "five\n", 1))
    git(root, *IDENTITY, "merge", "-q", "--squash", "x")
    git(root, *IDENTITY, "commit", "-q", "-m", "squashed")
    commit(root, "[a]*", Path(root, "[a]*").read_text() + "end\n")
    assert (await domain.listed(root))["x"].merged == "squashed"
