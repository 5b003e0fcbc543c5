"""Files that a prompt can name: those of the directory, the best first."""

from __future__ import annotations

import os
import time

import pytest

from ocman_jupyter import errors
from ocman_jupyter.git import files


@pytest.fixture
def root(repository):
    return repository(files={"src/loader.py": "1", "src/a b.py": "2", "gone.py": "3", ".gitignore": "*.log\n"})


async def test_tracked_and_untracked_files_but_not_ignored_ones(domain, root, git):
    (root / "new é.py").write_text("n")
    (root / "noise.log").write_text("n")
    (root / "gone.py").unlink()
    with open(os.path.join(os.fsencode(root), b"latin\xe9"), "w") as file:
        file.write("n")
    (root / "inner").mkdir()
    git(root / "inner", "init", "--quiet")
    names = await files.names(domain.git, str(root))
    assert set(names) == {".gitignore", "gone.py", "new é.py", "src/a b.py", "src/loader.py"}
    assert "gone.py" not in files.matching(str(root), names, "", 100)
    assert await files.names(domain.git, str(root / "src")) == ["a b.py", "loader.py"]


async def test_a_conflict_is_one_file(domain, root, git):
    git(root, "checkout", "--quiet", "-b", "other")
    for branch in ("other", "main"):
        git(root, "checkout", "--quiet", branch)
        (root / "src" / "loader.py").write_text(branch)
        git(root, "commit", "--quiet", "-am", branch)
    with pytest.raises(Exception, match="merge"):
        git(root, "merge", "other")
    names = await files.names(domain.git, str(root))
    assert len(names) == len(set(names)) == 4


async def test_names_are_looked_for_up_to_a_number(domain, root, monkeypatch):
    monkeypatch.setattr(files, "MOST", 3)
    assert 3 <= len(await files.names(domain.git, str(root))) <= 4


async def test_outside_of_a_repository(domain, tmp_path):
    with pytest.raises(errors.NotARepository):
        await files.names(domain.git, str(tmp_path))


def test_never_a_path_outside_and_never_a_folder(root, tmp_path):
    (tmp_path / "secret.py").write_text("s")
    (root / "out.py").symlink_to(tmp_path / "secret.py")
    (root / "outside").symlink_to(tmp_path)
    (root / "in.py").symlink_to("src/loader.py")
    (root / "dangling.py").symlink_to("nowhere")
    asked = ["out.py", "outside", "outside/secret.py", "in.py", "dangling.py", "src", "../secret.py"]
    asked += ["/etc/passwd", "a\x00b"]
    assert files.matching(str(root), asked, "", 100) == ["in.py"]


def test_the_best_first():
    names = ["docs/loader/index.md", "src/loader.py", "src/data_loader.py", "l/o/a/d/e/r", "Loader.txt", "other.py"]
    names.append("lxoxaxdxexr")
    assert list(files.ranked(names, "loader")) == [
        "Loader.txt", "src/loader.py", "src/data_loader.py", "docs/loader/index.md", "lxoxaxdxexr", "l/o/a/d/e/r",
    ]  # fmt: skip
    assert list(files.ranked(names, "SRC/lo")) == ["src/loader.py", "src/data_loader.py"]
    assert list(files.ranked(names, "sdl")) == ["src/data_loader.py"]
    assert list(files.ranked(names, "nothing like it")) == []
    assert list(files.ranked(names, "(")) == []
    assert list(files.ranked(names, " "))[0] == "Loader.txt", "without a query the least deep first"
    assert list(files.ranked(["aab"], "ab")) == ["aab"]


def test_the_limit_is_kept(root):
    for number in range(30):
        (root / f"f{number:02}").write_text("")
    names = [f"f{number:02}" for number in range(30)]
    assert files.matching(str(root), names, "f", 7) == names[:7]


def test_a_query_that_is_hard_to_match_takes_no_time():
    names = ["a" * 200 + f"/{number}" for number in range(2000)]
    began = time.monotonic()
    assert list(files.ranked(names, "a" * 199 + "b")) == []
    assert time.monotonic() - began < 5
