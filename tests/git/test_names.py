"""Branch names: git decides which are valid, and slugs are safe folder names."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocman_jupyter.errors import InvalidBranch
from ocman_jupyter.git.names import check_branch, conflict, distinct_slug, slug


@pytest.mark.parametrize(
    ("branch", "folder"),
    [
        ("feature", "feature"),
        ("Feature/Big_Thing", "feature-big_thing"),
        ("a//b", "a-b"),
        ("fix.v1.2", "fix.v1.2"),
        ("-.x.-", "x"),
        ("..", "wt-" + hashlib.sha256(b"..").hexdigest()[:8]),
        ("日本", "wt-" + hashlib.sha256("日本".encode()).hexdigest()[:8]),
        ("é", "wt-" + hashlib.sha256("é".encode()).hexdigest()[:8]),
    ],
)
def test_slug(branch, folder):
    assert slug(branch) == folder


def test_a_long_slug_is_cut_and_told_apart():
    one, two = "x" * 150 + "1", "x" * 150 + "2"
    assert len(slug(one)) <= 96
    assert slug(one) != slug(two)


@given(st.text(min_size=1, max_size=300))
def test_a_slug_is_always_one_safe_folder_name(branch):
    for name in (slug(branch), distinct_slug(branch)):
        assert re.fullmatch(r"[a-z0-9._-]{1,96}", name)
        assert name not in (".", "..", ".git")
        assert name[0] not in "-."


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-x",
        "--detach",
        "-",
        "a..b",
        "x.lock",
        "HEAD",
        "@{-1}",
        "@",
        "a b",
        " a",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "/a",
        "a/",
        "a//b",
        ".a",
        "a/.b",
        "a.",
        "nul\0",
        "new\nline",
        "tab\t",
        "x" * 201,
        "half \ud800",
        "a/" * 400 + "a",
        "\x7f",
        "@{upstream}",
    ],
)
async def test_hostile_names_are_refused(domain, repository, name):
    root = repository()
    with pytest.raises(InvalidBranch):
        await domain.add(root, name)
    with pytest.raises(InvalidBranch):
        await domain.worktrees.plan(await domain.resolve(root), name)
    assert not (root.parent / ".worktrees").exists()


@pytest.mark.parametrize(
    "name", ["é", "a/b/c", "#1", "a'b", 'a"b', "$(x)", "x;y", "1", "a.b", "ünï/日本", "_", "%41"]
)
async def test_odd_but_valid_names_become_branches(domain, repository, git, name):
    root = repository()
    added = await domain.add(root, name)
    assert git(added.path, "symbolic-ref", "HEAD") == f"refs/heads/{name}"


async def test_the_shortcut_for_plain_names_agrees_with_git(domain, repository):
    root = repository()
    for name in ("a", "A_1", "a-b/c_d", "0", "refs/heads/x", "a/HEAD", "_-"):
        done = await domain.git.run("check-ref-format", "--branch", name, cwd=str(root))
        assert done.text == name + "\n"
        assert await check_branch(domain.git, name, str(root)) == name


def test_conflicts_in_both_directions_and_by_case():
    assert conflict("feat", ["feat/x"], False) == "feat/x"
    assert conflict("feat/x", ["feat"], False) == "feat"
    assert conflict("feat/x/y", ["feat"], False) == "feat"
    assert conflict("feature", ["feat"], False) is None
    assert conflict("feat/x", ["feat/y", "feat/x"], False) is None
    assert conflict("Feat", ["feat"], False) is None
    assert conflict("Feat", ["feat"], True) == "feat"
    assert conflict("Feat/x", ["feat"], True) == "feat"
