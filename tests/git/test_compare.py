"""A worktree compared with where it came from: all of it, in one shape, and nothing is touched."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ocman_jupyter import errors
from ocman_jupyter.git import compare
from ocman_jupyter.git.command import GitFailed
from ocman_jupyter.git.compare import Compare
from ocman_jupyter.git.records import Diff, FileDiff

from .conftest import hook

IDENTITY = ("-c", "user.name=T", "-c", "user.email=t@e")
ENVIRONMENT = {f"GIT_{who}_{what}": "t@e" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture
def diff(domain, tmp_path, monkeypatch):
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr(compare.tempfile, "tempdir", str(private))

    async def ask(path: Path | str, against: str = "base", of: object = None) -> Diff:
        used = of or domain
        return await Compare(used.git, used.worktrees).diff(str(path), against)

    yield ask
    assert list(private.iterdir()) == [], "the private index is gone, whatever happened"


@pytest.fixture
def x(domain, repository, jp_asyncio_loop):
    """A repository and a worktree of it."""
    root = repository(files={"a": "1\n2\n3\n", "sub/b": "b\n", "c": "c\n", ".gitignore": "*.log\n"})
    return root, Path(jp_asyncio_loop.run_until_complete(domain.add(root, "x")).path)


def told(answer: Diff) -> dict[str, FileDiff]:
    assert [one.path for one in answer.files] == sorted((one.path for one in answer.files), key=os.fsencode)
    return {one.path: one for one in answer.files}


def statuses(answer: Diff) -> dict[str, str]:
    return {path: one.status for path, one in told(answer).items()}


def commit(git, place: Path, *paths: str) -> str:
    git(place, "add", "--all", *paths)
    git(place, *IDENTITY, "commit", "--quiet", "--allow-empty", "-m", "more")
    return git(place, "rev-parse", "HEAD")


def state(*roots: Path) -> dict[str, tuple[object, ...]]:
    """Everything below some folders: what, when, and its content."""
    found: dict[str, tuple[object, ...]] = {}
    for root in roots:
        for folder, _, files in os.walk(os.fsencode(root)):
            for name in files:
                path = os.path.join(folder, name)
                info = os.lstat(path)
                content = os.readlink(path) if os.path.islink(path) else Path(os.fsdecode(path)).read_bytes()
                digest = hashlib.sha256(content).hexdigest()
                found[os.fsdecode(path)] = (info.st_ino, info.st_mtime_ns, info.st_mode, digest)
            found[os.fsdecode(folder)] = (os.lstat(folder).st_mtime_ns,)
    return found


@contextlib.contextmanager
def untouched(*roots: Path) -> Iterator[None]:
    before = state(*roots)
    yield
    assert state(*roots) == before


# --- what is told --------------------------------------------------------------------------------


async def test_commits_since_uncommitted_and_untracked_files_are_one_answer(x, diff, git):
    root, place = x
    start = git(root, "rev-parse", "main")
    (place / "a").write_text("1\nTWO\n3\n")
    commit(git, place)
    (place / "c").unlink()
    (place / "sub" / "b").write_text("b\nmore\n")
    (place / "staged").write_text("s\n")
    git(place, "add", "staged")
    (place / "new" / "deep").mkdir(parents=True)
    (place / "new" / "deep" / "file").write_text("n\nn\n")
    (place / "noise.log").write_text("ignored\n")
    answer = await diff(place)
    assert answer.against.model_dump() == {"ref": "main", "sha": start}
    assert answer.truncated is False
    files = told(answer)
    assert {path: (one.status, one.additions, one.deletions) for path, one in files.items()} == {
        "a": ("modified", 1, 1),
        "c": ("deleted", 0, 1),
        "new/deep/file": ("untracked", 2, 0),
        "staged": ("added", 1, 0),
        "sub/b": ("modified", 1, 0),
    }
    assert files["a"].patch == (
        "diff --git a/a b/a\nindex 01e79c3..f8d1f3b 100644\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+TWO\n 3\n"
    ).replace("01e79c3..f8d1f3b", files["a"].patch.splitlines()[1].split()[1])
    assert files["new/deep/file"].patch.endswith("--- /dev/null\n+++ b/new/deep/file\n@@ -0,0 +1,2 @@\n+n\n+n\n")
    assert not any(one.binary or one.notebook or one.old_path for one in files.values())


async def test_nothing_changed_is_nothing_told(x, diff):
    _, place = x
    os.utime(place / "a", (1, 1))  # touched only
    assert (await diff(place)).files == []
    assert (await diff(place, "HEAD")).files == []


async def test_head_is_what_is_not_committed(x, diff, git):
    _, place = x
    (place / "a").write_text("other\n")
    head = commit(git, place)
    (place / "u").write_text("u\n")
    answer = await diff(place, "HEAD")
    assert statuses(answer) == {"u": "untracked"}
    assert answer.against.model_dump() == {"ref": "HEAD", "sha": head}


async def test_renames_by_git_and_by_hand(x, diff, git):
    _, place = x
    body = "".join(f"line {n}\n" for n in range(40))
    (place / "one").write_text(body)
    (place / "two").write_text(body.upper())
    commit(git, place)
    git(place, "mv", "one", "moved one")
    (place / "two").rename(place / "sub" / "two")
    (place / "sub" / "two").write_text(body.upper() + "MORE\n")
    answer = await diff(place, "HEAD")
    assert statuses(answer) == {"moved one": "renamed", "sub/two": "renamed"}
    one, two = answer.files
    assert (one.old_path, one.additions, one.deletions) == ("one", 0, 0)
    assert one.patch.endswith("similarity index 100%\nrename from one\nrename to moved one\n")
    assert (two.old_path, two.additions, two.deletions) == ("two", 1, 0)


@pytest.mark.parametrize(
    "name",
    [
        b'quote"d', b"back\\slash", b"new\nline", b"tab\there", b"bell\a\x7f", b"-option", b"--cached", b"two words ",
        b":(top)magic", b"*", b"caf\xc3\xa9", b"latin\xe9", b"a => b", b"{a => b}", b" b", b"git~1", b"con:",
        b"diff --git a", "\U0001f600".encode(),
    ],
)  # fmt: skip
async def test_names_that_git_quotes(x, diff, git, name):
    _, place = x
    before = b"before " + name
    (place / os.fsdecode(before)).write_text("".join(f"{n}\n" for n in range(30)))
    (place / os.fsdecode(b"kept " + name)).write_text("1\n")
    commit(git, place)
    with open(os.path.join(os.fsencode(place), name), "w") as file:
        file.write("1\n2\n")
    with open(os.path.join(os.fsencode(place), b"kept " + name), "a") as file:
        file.write("2\n")
    os.rename(os.path.join(os.fsencode(place), before), os.path.join(os.fsencode(place), b"sub", name))
    answer = await diff(place, "HEAD")
    assert [(one.status, one.additions, one.deletions) for one in answer.files if one.status != "renamed"] == sorted(
        [("untracked", 2, 0), ("modified", 1, 0)],
        key=lambda one: name if one[0] == "untracked" else b"kept " + name,
    )
    (renamed,) = [one for one in answer.files if one.status == "renamed"]
    shown = name.decode("utf-8", "backslashreplace")
    assert (renamed.path, renamed.old_path) == (f"sub/{shown}", f"before {shown}")
    for one in answer.files:
        assert one.patch.startswith("diff --git "), one
        assert ("+2\n" in one.patch) == (one.status != "renamed")
    answer.model_dump_json()


async def test_a_folder_that_is_called_like_gits_own_is_only_named(x, diff):
    _, place = x
    (place / "sub" / ".GIT").mkdir()
    (place / "sub" / ".GIT" / "config").write_text("x\n")
    (place / "u").write_text("u\n")
    answer = told(await diff(place))
    assert answer["u"].additions == 1
    assert all(one.patch is None for path, one in answer.items() if path != "u")


async def test_links_modes_and_what_became_something_else(x, diff, git):
    _, place = x
    (place / "was file").write_text("text\n")
    (place / "was link").symlink_to("a")
    (place / "folder").mkdir()
    (place / "folder" / "in").write_text("in\n")
    (place / "flat").write_text("flat\n")
    commit(git, place)
    (place / "a").chmod(0o755)
    (place / "link").symlink_to("/etc/passwd")
    (place / "dangling").symlink_to("nowhere")
    (place / "was file").unlink()
    (place / "was file").symlink_to("a")
    (place / "was link").unlink()
    (place / "was link").write_text("file now\n")
    shutil.rmtree(place / "folder")
    (place / "folder").write_text("a file now\n")
    (place / "flat").unlink()
    (place / "flat").mkdir()
    (place / "flat" / "in").write_text("in the folder\n")
    answer = told(await diff(place, "HEAD"))
    assert {path: one.status for path, one in answer.items()} == {
        "a": "modified", "dangling": "untracked", "flat": "deleted", "flat/in": "untracked", "folder": "untracked",
        "folder/in": "deleted", "link": "untracked", "was file": "modified", "was link": "modified",
    }  # fmt: skip
    assert answer["a"].patch == "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n"
    assert (answer["a"].additions, answer["a"].deletions) == (0, 0)
    assert answer["link"].patch.endswith("+/etc/passwd\n\\ No newline at end of file\n")
    assert answer["was file"].patch.count("diff --git a/was file b/was file\n") == 2


async def test_a_link_out_of_the_tree_is_not_followed(x, diff, git, tmp_path):
    _, place = x
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.ipynb").write_text(json.dumps(notebook(cell("secret"))))
    (place / "nb").mkdir()
    (place / "nb" / "secret.ipynb").write_text(json.dumps(notebook(cell("mine"))))
    commit(git, place)
    shutil.rmtree(place / "nb")
    (place / "nb").symlink_to(outside)
    (place / "s.ipynb").symlink_to(outside / "secret.ipynb")
    answer = await diff(place, "HEAD")
    assert statuses(answer) == {"nb": "untracked", "nb/secret.ipynb": "deleted", "s.ipynb": "untracked"}
    assert "print(secret)" not in answer.model_dump_json()


async def test_conflicts(x, diff, git):
    root, place = x
    (place / "keep").write_text("k\n")
    commit(git, place)
    git(place, "checkout", "--quiet", "-b", "other")
    (place / "a").write_text("theirs\n")
    (place / "c").write_text("theirs\n")
    (place / "sub" / "b").unlink()
    commit(git, place)
    git(place, "checkout", "--quiet", "x")
    (place / "a").write_text("ours\n")
    (place / "c").unlink()
    (place / "sub" / "b").write_text("ours\n")
    commit(git, place)
    subprocess.run(["git", "-C", str(place), *IDENTITY, "merge", "other"], capture_output=True)
    (place / "u").write_text("u\n")
    with untouched(root / ".git", place):
        for against in ("HEAD", "base", "other"):
            answer = await diff(place, against)
            files = told(answer)
            assert [files[path].status for path in ("a", "c", "sub/b")] == ["conflicted"] * 3, against
            assert files["u"].status == "untracked"
            assert "+<<<<<<<" in files["a"].patch
            assert files["a"].additions is not None


async def test_binary_files_are_not_told_in_lines(x, diff, git):
    _, place = x
    (place / "old.bin").write_bytes(b"\0" * 100)
    commit(git, place)
    (place / "old.bin").write_bytes(b"\0" * 101)
    (place / "new.bin").write_bytes(b"\0\1\2")
    (place / "latin").write_bytes(b"caf\xe9\n")
    (place / "crlf").write_bytes(b"a\r\nb\r\n")
    (place / "empty").write_text("")
    (place / "no newline").write_text("x")
    answer = told(await diff(place, "HEAD"))
    for name in ("old.bin", "new.bin"):
        one = answer[name]
        assert (one.binary, one.patch, one.additions, one.deletions) == (True, None, None, None)
    assert answer["latin"].patch.endswith("+caf\ufffd\n")
    assert answer["crlf"].patch.endswith("+a\r\n+b\r\n")
    assert (answer["empty"].additions, answer["empty"].binary) == (0, False)
    assert answer["empty"].patch.startswith("diff --git a/empty b/empty\nnew file mode 100644\n")
    assert answer["no newline"].patch.endswith("+x\n\\ No newline at end of file\n")


async def test_the_patches_make_the_tree_of_the_worktree(x, diff, git, tmp_path):
    """The oracle: applied to what it was compared with, they give what is there."""
    root, place = x
    body = "".join(f"line {n}\n" for n in range(50))
    (place / "keep").write_text(body)
    (place / "run").write_text("#!/bin/sh\n")
    (place / "link").symlink_to("a")
    start = commit(git, place)
    git(place, "mv", "keep", "kept")
    (place / "kept").write_text(body.replace("line 7\n", "line seven\n\n"))
    commit(git, place)
    (place / "run").chmod(0o755)
    (place / "link").unlink()
    (place / "link").write_text("a")
    shutil.rmtree(place / "sub")
    (place / "a").write_text("1\n\n\n3")
    (place / "-- a/x").parent.mkdir()
    (place / "-- a/x").write_text("--- a/x\n+++ b/x\ndiff --git a/x b/x\n@@ -1 +1 @@\n")
    (place / 'od"d\tn\\ame').write_text("odd\n")
    (place / "e").write_text("")
    (place / "l2").symlink_to("é")
    answer = await diff(place, start)
    assert answer.against.sha == start
    copy = tmp_path / "copy"
    git(root, "worktree", "add", "--quiet", "--detach", str(copy), start)
    patch = "".join(one.patch for one in answer.files).encode()
    subprocess.run(["git", "-C", str(copy), "apply"], input=patch, check=True)
    subprocess.run(["diff", "-r", "--no-dereference", "-x", ".git", str(copy), str(place)], check=True)
    assert os.access(copy / "run", os.X_OK)


# --- nothing is touched, nothing runs ------------------------------------------------------------


@pytest.mark.parametrize("split", ["false", "true"])
async def test_nothing_of_the_users_is_written(x, diff, git, split):
    root, place = x
    git(root, "config", "core.splitIndex", split)
    git(root, "config", "core.untrackedCache", "true")
    git(place, "status")
    git(place, "update-index", "--split-index" if split == "true" else "--no-split-index")
    (place / "staged").write_text("s\n")
    git(place, "add", "staged")
    (place / "a").write_text("changed\n")
    (place / "new").write_text("n\n")
    (place / "sub" / "b").unlink()
    os.utime(place / "c", (1, 1))  # git would refresh the index
    index = Path(git(place, "rev-parse", "--git-path", "index"))
    shared = set((root / ".git").rglob("sharedindex.*"))
    for path in shared:  # reading one tells git that it is in use, by its time
        os.utime(path)
    before = index.read_bytes(), index.stat().st_mtime_ns
    for against in ("base", "HEAD", "main", str(root)):
        with untouched(place, *(p for p in (root / ".git").iterdir() if p.is_dir() and not shared)):
            assert statuses(await diff(place, against)) == {
                "a": "modified", "new": "untracked", "staged": "added", "sub/b": "deleted",
            }  # fmt: skip
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before
    assert set((root / ".git").rglob("sharedindex.*")) == shared
    assert git(place, "status", "--porcelain") == "M a\nA  staged\n D sub/b\n?? new"  # the first line is stripped


async def test_no_hook_driver_or_monitor_runs(x, diff, git, tmp_path, monkeypatch):
    root, place = x
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $0 >> {ran}\ncat 2>/dev/null\n")
    program.chmod(0o755)
    for name in ("post-index-change", "post-checkout", "pre-commit", "reference-transaction", "fsmonitor-watchman"):
        hook(root, name, f"echo {name} >> {ran}")
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("* diff=planted\n")
    for key in ("diff.external", "diff.planted.command", "diff.planted.textconv", "core.fsmonitor", "core.pager",
                "pager.diff", "core.editor", "interactive.diffFilter"):
        git(root, "config", key, str(program))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    monkeypatch.setenv("GIT_PAGER", str(program))
    monkeypatch.setenv("GIT_DIFF_OPTS", "-u0")
    (place / "a").write_text("1\nTWO\n3\n")
    (place / "new").write_text("n\n")
    answer = told(await diff(place))
    assert not ran.exists(), ran.read_text()
    assert answer["a"].patch.endswith(" 1\n-2\n+TWO\n 3\n")
    assert answer["new"].patch.endswith("+n\n")


async def test_no_object_is_made(x, diff, git):
    root, place = x
    (place / "new").write_text("of no commit\n")
    (place / "nb.ipynb").write_text(json.dumps(notebook(cell("x"))))
    with untouched(root / ".git" / "objects"):
        await diff(place)
        await diff(place, "HEAD")


async def test_what_a_user_configured_does_not_change_the_shape(x, diff, git):
    root, place = x
    body = "".join(f"{n}\n" for n in range(40))
    (place / "long").write_text(body)
    (place / "one").write_text(body.replace("1", "x"))
    commit(git, place)
    (place / "long").write_text(body.replace("\n5\n", "\nfive\n\n").replace("\n9\n", "\nnine\n"))
    (place / "one").rename(place / "two")
    (place / "sub" / "é").write_text("é\n")
    plain = await diff(place, "HEAD")
    order = place.parent / "order"
    order.write_text("two\nsub\n")
    configuration = {
        "diff.noprefix": "true", "diff.mnemonicPrefix": "true", "diff.context": "0", "diff.interHunkContext": "9",
        "diff.renames": "false", "diff.renameLimit": "1", "diff.orderFile": str(order), "diff.relative": "true",
        "diff.submodule": "log", "diff.suppressBlankEmpty": "true", "diff.colorMoved": "zebra", "color.ui": "always",
        "color.diff": "always", "diff.wsErrorHighlight": "all", "core.quotePath": "true", "core.abbrev": "40",
        "diff.ignoreSubmodules": "all", "diff.autoRefreshIndex": "false", "diff.dirstat": "lines",
        "diff.statGraphWidth": "1", "diff.wordRegex": ".", "diff.srcPrefix": "x/", "diff.dstPrefix": "y/",
        "core.bigFileThreshold": "1", "core.pager": "false", "diff.algorithm": "myers",
    }  # fmt: skip
    for key, value in configuration.items():
        git(root, "config", key, value)
    configured = await diff(place, "HEAD")

    def without_index(answer: Diff) -> list[FileDiff]:
        kept = [
            "".join(line for line in one.patch.splitlines(True) if not line.startswith("index "))
            for one in answer.files
        ]
        return [one.model_copy(update={"patch": patch}) for one, patch in zip(answer.files, kept, strict=True)]

    assert without_index(configured) == without_index(plain)
    assert statuses(plain) == {"long": "modified", "sub/é": "untracked", "two": "renamed"}


async def test_a_change_right_after_a_commit_is_seen(x, diff, git):
    """git cannot tell it by time and size: the copy of the index must keep the time of the index."""
    _, place = x
    for number in range(10):
        (place / "racy").write_text(f"{number}\n")
        commit(git, place)
        (place / "racy").write_text(f"{9 - number}\n")
        assert statuses(await diff(place, "HEAD")) == {"racy": "modified"}, number
        (place / "u").write_text("u\n")
        assert statuses(await diff(place, "HEAD")) == {"racy": "modified", "u": "untracked"}, number
        (place / "u").unlink()


async def test_filters_apply_as_in_git_diff(x, diff, git):
    root, place = x
    git(root, "config", "filter.up.clean", "tr a-z A-Z")
    git(root, "config", "filter.up.smudge", "tr A-Z a-z")
    (place / ".gitattributes").write_text("*.up filter=up\n*.txt text eol=crlf\n")
    (place / "f.up").write_text("text\n")
    (place / "f.txt").write_bytes(b"1\r\n")
    commit(git, place)
    os.utime(place / "f.up", (1, 1))
    (place / "f.txt").write_bytes(b"1\r\n2\r\n")
    answer = told(await diff(place, "HEAD"))
    assert list(answer) == ["f.txt"]
    assert answer["f.txt"].patch.endswith(" 1\n+2\n")


# --- what it is compared with --------------------------------------------------------------------


async def test_the_base_where_it_is_now_from_where_they_parted(x, diff, git):
    root, place = x
    start = git(root, "rev-parse", "main")
    (place / "mine").write_text("m\n")
    commit(git, place)
    (root / "theirs").write_text("t\n")
    theirs = commit(git, root)
    answer = await diff(place)
    assert (statuses(answer), answer.against.sha) == ({"mine": "added"}, start)
    git(place, *IDENTITY, "merge", "--quiet", "main", "-m", "merge")
    answer = await diff(place)
    assert (statuses(answer), answer.against.sha) == ({"mine": "added"}, theirs)


async def test_a_base_that_is_gone_is_the_recorded_commit(x, diff, git, domain):
    root, _ = x
    git(root, "branch", "topic")
    place = Path((await domain.add(root, "y", base="topic")).path)
    start = git(root, "rev-parse", "topic")
    git(root, "tag", "topic", commit(git, root))  # would win by its short name
    (place / "mine").write_text("m\n")
    assert (await diff(place)).against.model_dump() == {"ref": "topic", "sha": start}
    git(root, "branch", "-D", "topic")
    git(root, "tag", "-d", "topic")
    answer = await diff(place)
    assert (statuses(answer), answer.against.sha) == ({"mine": "untracked"}, start)


async def test_a_worktree_that_somebody_else_made(x, diff, git, tmp_path):
    root, _ = x
    place = tmp_path / "elsewhere"
    git(root, "worktree", "add", "--quiet", "-b", "theirs", str(place), "main")
    (place / "n").write_text("n\n")
    commit(git, place)
    answer = await diff(place)
    assert (statuses(answer), answer.against.ref) == ({"n": "added"}, "main")


async def test_the_main_checkout(x, diff, git):
    root, _ = x
    (root / "n").write_text("n\n")
    assert statuses(await diff(root)) == {"n": "untracked"}
    assert statuses(await diff(root, "HEAD")) == {"n": "untracked"}


async def test_a_revision(x, diff, git):
    root, place = x
    first = git(root, "rev-parse", "main")
    git(place, "tag", "-a", "v1", "-m", "v1")
    git(root, "update-ref", "refs/remotes/origin/far", first)
    (place / "n").write_text("n\n")
    second = commit(git, place)
    (place / "o").write_text("o\n")
    commit(git, place)
    for name in ("v1", "main", "refs/heads/main", "origin/far", "far", first[:12], first, "HEAD~2", "@~2", "main@{0}"):
        answer = await diff(place, name)
        assert (statuses(answer), answer.against.model_dump()) == (
            {"n": "added", "o": "added"}, {"ref": name, "sha": first},
        ), name  # fmt: skip
    assert (await diff(place, "HEAD^")).against.sha == second
    git(root, "tag", "main", second)
    assert (await diff(place, "main")).against.sha == first, "a branch goes before a tag"


@pytest.mark.parametrize(
    "name",
    [
        "nothing", "-x", "--output=/tmp/owned", "--no-index", "--ext-diff", "-O/etc/passwd", "a..b", "main..x",
        "main...x", "^main", "main x", "main\nx", "HEAD:a", "HEAD^{tree}", "main\x00x", "\udcff", "\ud800", "", " ",
        "@{u}", "refs/heads", "0" * 40, "deadbeef", ":/nope", ":0:a", "main^{commit} x", "é", "x" * 4000, "../x", ".",
        "%(objectname)", "@{99}", "@{-1}",
    ],
)  # fmt: skip
async def test_a_name_that_is_no_commit_is_refused(x, diff, name):
    root, place = x
    with untouched(root / ".git", place), pytest.raises(errors.NoBase) as caught:
        await diff(place, name)
    assert caught.value.details["field"] == "against"
    json.dumps(caught.value.to_json()).encode()
    caught.value.message.encode()
    assert not os.path.exists("/tmp/owned")


async def test_another_worktree_is_compared_by_its_commits(x, diff, git, domain):
    root, place = x
    other = Path((await domain.add(root, "other")).path)
    (other / "theirs").write_text("t\n")
    head = commit(git, other)
    (other / "uncommitted").write_text("u\n")
    git(place, "reset", "--quiet", "--hard", "other")
    (place / "mine").write_text("m\n")
    answer = await diff(place, str(other))
    assert (statuses(answer), answer.against.model_dump()) == (
        {"mine": "untracked"}, {"ref": "other", "sha": head},
    )  # fmt: skip
    link = other.parent.parent / "link"
    link.symlink_to(other)
    assert (await diff(place, str(link))).against.sha == head
    assert (await diff(place, str(root))).against.ref == "main"
    git(other, "checkout", "--quiet", "--detach")
    assert (await diff(place, str(other))).against.ref == str(other)
    shutil.rmtree(other)
    assert (await diff(place, str(other))).against.sha == head, "git still knows its commits"


async def test_a_path_that_is_no_worktree_of_this_repository(x, diff, repository, tmp_path):
    root, place = x
    plain = place.parent / "plain"
    plain.mkdir()
    odd = ("/", "/nowhere", "/\udcff", "/a\x00b", "/\ud800")
    for path in (repository("foreign"), tmp_path, place / "sub", plain, *odd):
        with pytest.raises(errors.NoSuchWorktree) as caught:
            await diff(place, str(path))
        assert caught.value.details["field"] == "against"
        json.dumps(caught.value.to_json()).encode()


async def test_no_history_in_common(x, diff, git):
    root, place = x
    tree = git(root, "rev-parse", "main^{tree}")
    alone = git(root, *IDENTITY, "commit-tree", "-m", "alone", tree)
    with pytest.raises(errors.NoBase) as caught:
        await diff(place, alone)
    assert caught.value.details["field"] == "against"
    git(root, "update-ref", "refs/heads/main", alone)
    git(place, "checkout", "--quiet", "--detach")
    # The base was written anew: where it was when the worktree was made still tells.
    (place / "n").write_text("n\n")
    answer = await diff(place)
    assert (statuses(answer), answer.against.ref) == ({"n": "untracked"}, "main")


# --- odd worktrees -------------------------------------------------------------------------------


async def test_no_such_worktree(x, diff, tmp_path):
    _, place = x
    plain = place.parent / "plain"
    plain.mkdir()
    for path in (tmp_path / "nothing", place / "sub", plain, "relative", "/", "/\udcff", "/a\x00b"):
        with pytest.raises(errors.NoSuchWorktree):
            await diff(path)


async def test_a_directory_that_is_gone_or_has_lost_its_link(x, diff, domain):
    root, place = x
    other = Path((await domain.add(root, "y")).path)
    shutil.rmtree(other)
    with pytest.raises(errors.DirectoryMissing):
        await diff(other)
    (place / ".git").unlink()
    with pytest.raises((errors.DirectoryMissing, errors.NoSuchWorktree)):
        await diff(place)


async def test_before_the_first_commit(diff, git, repository):
    root = repository(commit=False)
    (root / "staged").write_text("s\n")
    git(root, "add", "staged")
    answer = await diff(root)
    assert statuses(answer) == {"README.md": "untracked", "staged": "added"}
    assert answer.against.model_dump() == {"ref": "HEAD", "sha": "4b825dc642cb6eb9a060e54bf8d69288fbee4904"}
    assert (await diff(root, "HEAD")) == answer
    with pytest.raises(errors.NoBase):
        await diff(root, "main")


async def test_a_branch_without_a_commit(x, diff, git):
    _, place = x
    git(place, "checkout", "--quiet", "--orphan", "fresh")
    git(place, "rm", "--quiet", "--cached", "c")
    answer = await diff(place)
    assert statuses(answer) == {".gitignore": "added", "a": "added", "c": "untracked", "sub/b": "added"}
    with pytest.raises(errors.NoBase):
        await diff(place, "main")


async def test_a_detached_head_and_a_rebase(x, diff, git):
    root, place = x
    (place / "n").write_text("n\n")
    commit(git, place)
    git(place, "checkout", "--quiet", "--detach")
    assert statuses(await diff(place)) == {"n": "added"}
    (root / "n").write_text("other\n")
    commit(git, root)
    subprocess.run(["git", "-C", str(place), *IDENTITY, "rebase", "main"], capture_output=True)
    assert statuses(await diff(place)) == {"n": "conflicted"}


async def test_a_bare_repository(x, diff, git, domain, tmp_path):
    root, _ = x
    bare = tmp_path / "bare.git"
    git(root, "clone", "--quiet", "--bare", str(root), str(bare))
    place = Path((await domain.add(bare, "w")).path)
    (place / "n").write_text("n\n")
    commit(git, place)
    (place / "u").write_text("u\n")
    assert statuses(await diff(place)) == {"n": "added", "u": "untracked"}
    with pytest.raises(errors.NoSuchWorktree):
        await diff(bare)


async def test_a_shallow_clone(x, diff, git, domain, tmp_path):
    root, _ = x
    for number in range(3):
        (root / "a").write_text(f"{number}\n")
        commit(git, root)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{root}", str(clone))
    place = Path((await domain.add(clone, "w")).path)
    (place / "n").write_text("n\n")
    commit(git, place)
    assert statuses(await diff(place)) == {"n": "added"}
    (root / "a").write_text("later\n")
    commit(git, root)
    git(clone, "fetch", "--quiet", "--depth=1")
    assert statuses(await diff(place)) == {"n": "added"}, "origin/main has no parents here any more"


async def test_a_sparse_checkout(x, diff, git):
    _, place = x
    git(place, "sparse-checkout", "set", "--cone", "--sparse-index", "other")
    assert not (place / "sub").exists()
    assert (await diff(place)).files == []
    (place / "other").mkdir()
    (place / "other" / "n").write_text("n\n")
    (place / "a").write_text("1\n")
    assert statuses(await diff(place)) == {"a": "modified", "other/n": "untracked"}


async def test_no_index_and_no_checkout(x, diff, git, tmp_path):
    root, _ = x
    place = tmp_path / "empty"
    git(root, "worktree", "add", "--quiet", "--no-checkout", "-b", "e", str(place), "main")
    (place / "n").write_text("n\n")
    answer = await diff(place)
    assert statuses(answer) == {
        ".gitignore": "deleted", "a": "deleted", "c": "deleted", "n": "untracked", "sub/b": "deleted",
    }  # fmt: skip


async def test_files_that_were_only_meant_to_be_added(x, diff, git):
    _, place = x
    (place / "later").write_text("1\n")
    git(place, "add", "--intent-to-add", "later")
    files = told(await diff(place))
    assert (files["later"].status, files["later"].additions) == ("added", 1)


async def test_a_submodule_and_a_repository_inside(x, diff, git, repository):
    root, place = x
    library = repository("library")
    file = ("-c", "protocol.file.allow=always")
    git(place, *file, "submodule", "--quiet", "add", str(library), "lib")
    commit(git, place)
    (place / "inner").mkdir()
    git(place / "inner", "init", "--quiet")
    (place / "inner" / "f").write_text("f\n")
    assert statuses(await diff(place)) == {".gitmodules": "added", "inner/": "untracked", "lib": "added"}
    (place / "lib" / "new").write_text("n\n")
    answer = told(await diff(place, "HEAD"))
    assert (answer["lib"].status, answer["lib"].binary) == ("modified", False)
    assert "-dirty" in answer["lib"].patch
    one = answer["inner/"]
    assert (one.additions, one.patch, one.binary) == (None, None, False)


async def test_what_is_flagged_to_be_left_alone_stays_so(x, diff, git):
    _, place = x
    git(place, "update-index", "--skip-worktree", "c")
    (place / "c").write_text("private\n")
    assert (await diff(place)).files == []


async def test_paths_of_repositories_with_colons_spaces_and_bytes(domain, repository, diff, git):
    root = repository('a: b"\\é')
    place = Path((await domain.add(root, "x")).path)
    (place / "n").write_text("n\n")
    assert statuses(await diff(place)) == {"n": "untracked"}


# --- limits --------------------------------------------------------------------------------------


async def test_a_patch_that_is_too_large_is_left_out_and_its_lines_are_counted(x, diff):
    _, place = x
    (place / "a").write_text("x" * 99 + "\n")
    (place / "big").write_text(("y" * 99 + "\n") * 2500)
    (place / "c").write_text("z\n")
    answer = await diff(place)
    assert answer.truncated is False
    files = told(answer)
    assert (files["big"].patch, files["big"].binary, files["big"].additions) == (None, False, 2500)
    assert files["a"].patch and files["c"].patch


@pytest.mark.parametrize("size", range(190, 210))
async def test_the_limit_of_a_patch_is_exact(x, diff, monkeypatch, size):
    _, place = x
    monkeypatch.setattr(compare, "PATCH", 200)
    (place / "f").write_text("")
    header = len((await diff(place)).files[0].patch + "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+\n")
    (place / "f").write_text("x" * (size - header) + "\n")
    (one,) = (await diff(place)).files
    assert (one.patch is None) == (size > 200)
    if one.patch:
        assert len(one.patch) == size


async def test_all_patches_together(x, diff, monkeypatch):
    _, place = x
    monkeypatch.setattr(compare, "PATCHES", 5000)
    for number in range(30):
        (place / f"f{number:02}").write_text("x" * 400 + "\n")
    answer = await diff(place)
    assert answer.truncated is True
    told_of = [one.patch for one in answer.files]
    assert len(told_of) == 30
    assert all(one.additions == 1 for one in answer.files)
    assert 5 < len([one for one in told_of if one]) < 12
    assert sum(len(one) for one in told_of if one) <= 5000


async def test_many_files_and_the_tracked_ones_first(x, diff, git, monkeypatch):
    _, place = x
    monkeypatch.setattr(compare, "FILES", 20)
    for number in range(30):
        (place / f"A{number:02}").write_text("1\n")
    (place / "sub" / "b").write_text("changed\n")
    (place / "c").unlink()
    answer = await diff(place)
    assert (len(answer.files), answer.truncated) == (20, True)
    assert {"c", "sub/b"} <= set(told(answer))
    assert statuses(answer)["sub/b"] == "modified"
    commit(git, place)
    answer = await diff(place)
    assert (len(answer.files), answer.truncated) == (20, True)
    assert all(one.patch for one in answer.files)


async def test_conflicts_are_found_behind_more_files_than_are_told(x, diff, git, monkeypatch):
    root, place = x
    monkeypatch.setattr(compare, "FILES", 5)
    (root / "a").write_text("theirs\n")
    commit(git, root)
    (place / "a").write_text("ours\n")
    commit(git, place)
    subprocess.run(["git", "-C", str(place), *IDENTITY, "merge", "main"], capture_output=True)
    for number in range(10):
        (place / f"n{number}").write_text("1\n")
    answer = await diff(place)
    assert statuses(answer)["a"] == "conflicted"
    assert answer.truncated is True


async def test_more_files_than_are_worth_counting(x, diff, git, monkeypatch):
    _, place = x
    monkeypatch.setattr(compare, "_NAMED", 50)
    for number in range(100):
        (place / f"f{number:03}").write_text("1\n")
    commit(git, place)
    answer = await diff(place)
    assert answer.truncated is True
    assert len(answer.files) >= 50
    assert {(one.status, one.additions, one.patch) for one in answer.files} == {("added", None, None)}


async def test_large_files_are_not_read(x, diff, git, monkeypatch):
    _, place = x
    monkeypatch.setattr(compare, "_LARGE", 1000)
    monkeypatch.setitem(compare._CONFIG, "core.bigFileThreshold", "1000")
    (place / "tracked.txt").write_text("1\n")
    commit(git, place)
    (place / "tracked.txt").write_text("x\n" * 1000)
    (place / "text.csv").write_text("1,2\n" * 1000)
    (place / "data.bin").write_bytes(b"\0" * 2000)
    (place / "big.ipynb").write_text(json.dumps(notebook(*(cell(f"x{n}") for n in range(100)))))
    with open(place / "hole", "wb") as file:
        file.truncate(1 << 40)  # a terabyte that nobody could read
    files = told(await diff(place, "HEAD"))
    assert {path: one.binary for path, one in files.items()} == {
        "big.ipynb": False, "data.bin": True, "hole": True, "text.csv": False, "tracked.txt": False,
    }  # fmt: skip
    assert {(one.additions, one.patch) for one in files.values()} == {(None, None)}


async def test_untracked_files_are_read_up_to_a_sum(x, diff, monkeypatch):
    _, place = x
    monkeypatch.setattr(compare, "_UNTRACKED", 1000)
    for number in range(5):
        (place / f"f{number}").write_text("x" * 399 + "\n")
    files = told(await diff(place))
    assert [one.additions for one in files.values()] == [1, 1, None, None, None]
    assert {one.status for one in files.values()} == {"untracked"}


async def test_pipes_and_sockets_do_not_hang_it(x, diff):
    _, place = x
    os.mkfifo(place / "pipe")
    os.mkfifo(place / "p.ipynb")
    (place / "a").write_text("changed\n")
    assert statuses(await diff(place)) == {"a": "modified"}


async def test_a_file_that_nobody_may_read_is_only_named(x, diff, monkeypatch):
    _, place = x
    for name in ("secret", "open"):
        (place / name).write_text("s\n")
    may = os.access
    monkeypatch.setattr(compare.os, "access", lambda path, mode: b"secret" not in path and may(path, mode))
    files = told(await diff(place))
    assert {path: one.additions for path, one in files.items()} == {"open": 1, "secret": None}


async def test_a_git_that_stumbles_over_an_agent_at_work_is_asked_again(make_domain, x, diff, wrapper, tmp_path):
    _, place = x
    (place / "n").write_text("n\n")
    once = f'case "$*" in *--raw*) [ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; exit 128; }};; esac'
    assert statuses(await diff(place, of=make_domain(git_command=wrapper(once)))) == {"n": "untracked"}


async def test_a_git_that_fails_is_told_and_leaves_nothing(make_domain, x, diff, wrapper):
    _, place = x
    (place / "n").write_text("n\n")
    broken = make_domain(git_command=wrapper('case "$*" in *--raw*) echo "fatal: broken" >&2; exit 128;; esac'))
    with untouched(place), pytest.raises(GitFailed, match="broken"):
        await diff(place, of=broken)


# --- notebooks -----------------------------------------------------------------------------------


def cell(source: str, identity: str | None = None, kind: str = "code", output: str | None = None) -> dict[str, object]:
    told = {"cell_type": kind, "metadata": {}, "source": f"print({source})\n", "outputs": []}
    if identity:
        told["id"] = identity
    if output is not None:
        told["outputs"] = [{"output_type": "stream", "name": "stdout", "text": output}]
    return told


def notebook(*cells: dict[str, object]) -> dict[str, object]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}


async def test_notebooks_are_compared_by_cells(x, diff, git):
    root, place = x
    (root / "n.ipynb").write_text(json.dumps(notebook(cell("1", "a"), cell("2", "b"), cell("3", "c"))))
    commit(git, root)
    git(place, "merge", "--quiet", "main")
    changed = notebook(cell("1", "a", output="1\n"), cell("3", "c"), cell("4", "d"))
    (place / "n.ipynb").write_text(json.dumps(changed))
    (place / "new.ipynb").write_text(json.dumps(notebook(cell("9", "z"))))
    (place / "broken.ipynb").write_text("{")
    (place / "plain.json").write_text(json.dumps(changed))
    files = told(await diff(place))
    assert {path: one.notebook for path, one in files.items()} == {
        "broken.ipynb": True, "n.ipynb": True, "new.ipynb": True, "plain.json": False,
    }  # fmt: skip
    assert [one.model_dump() for one in files["n.ipynb"].notebook_diff] == [
        {"kind": "modified", "cell_type": "code", "index": 0, "source_patch": None, "outputs_changed": True,
         "metadata_changed": False},
        {"kind": "deleted", "cell_type": "code", "index": 1, "source_patch": "@@ -1,2 +0,0 @@\n-print(2)\n-\n",
         "outputs_changed": False, "metadata_changed": False},
        {"kind": "added", "cell_type": "code", "index": 2, "source_patch": "@@ -0,0 +1,2 @@\n+print(4)\n+\n",
         "outputs_changed": False, "metadata_changed": False},
    ]  # fmt: skip
    assert [one.kind for one in files["new.ipynb"].notebook_diff] == ["added"]
    assert files["broken.ipynb"].notebook_diff is None
    assert files["plain.json"].notebook_diff is None
    commit(git, place)
    again = told(await diff(place))  # now both sides are in commits
    assert again["n.ipynb"].notebook_diff == files["n.ipynb"].notebook_diff
    (place / "n.ipynb").unlink()
    git(place, "mv", "new.ipynb", "moved.ipynb")
    files = told(await diff(place, "HEAD"))
    assert [one.kind for one in files["n.ipynb"].notebook_diff] == ["deleted"] * 3
    assert (files["moved.ipynb"].old_path, files["moved.ipynb"].notebook_diff) == ("new.ipynb", [])


async def test_notebooks_beyond_the_limits_are_not_looked_into(x, diff, git, monkeypatch):
    _, place = x
    monkeypatch.setattr(compare.notebooks, "LARGEST", 500)
    monkeypatch.setattr(compare, "_NOTEBOOKS", 2)
    (place / "large.ipynb").write_text(json.dumps(notebook(*(cell(f"{n}") for n in range(50)))))
    commit(git, place)
    for name in ("a.ipynb", "m.ipynb", "z.ipynb"):
        (place / name).write_text(json.dumps(notebook(cell("1"))))
    files = told(await diff(place))
    assert {path: one.notebook_diff is not None for path, one in files.items()} == {
        "a.ipynb": True, "large.ipynb": False, "m.ipynb": False, "z.ipynb": False,
    }  # fmt: skip
