"""The sample project: whole, committed, kept, and never put over somebody's own folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from ocman_jupyter.demo import sample
from ocman_jupyter.errors import InvalidFolder


def test_it_is_a_committed_repository_with_ignored_data(tmp_path: Path, git: Callable[..., str]) -> None:
    root = sample.make_sample(tmp_path / "demo")
    assert root == (tmp_path / "demo" / sample.NAME).resolve()
    assert git(root, "status", "--porcelain", "--ignored") == "!! data/"
    assert (root / sample.DATA).read_text() == sample.measurements()
    assert git(root, "rev-list", "--count", "HEAD") == "1"


def test_its_own_tests_pass(tmp_path: Path) -> None:
    root = sample.make_sample(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "unittest", "discover", "tests"], cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_notebook_is_valid_and_its_own_cells_run(tmp_path: Path) -> None:
    root = sample.make_sample(tmp_path)
    notebook = nbformat.read(root / sample.NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    plain = "\n".join(cell for cell in cells if not cell.startswith("%"))
    done = subprocess.run([sys.executable, "-c", plain], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "r2 = 0." in done.stdout
    assert any(cell.startswith("%ocman wt ") for cell in cells)


def test_a_project_that_is_there_is_kept_until_it_is_wanted_fresh(tmp_path: Path) -> None:
    root = sample.make_sample(tmp_path)
    work, worktree = root / "work.py", tmp_path / ".worktrees" / sample.NAME / "idea"
    work.write_text("mine")
    worktree.mkdir(parents=True)
    assert sample.make_sample(tmp_path) == root
    assert work.read_text() == "mine"
    sample.make_sample(tmp_path, fresh=True)
    assert not work.exists()
    assert not worktree.exists()


@pytest.mark.parametrize("fresh", [False, True])
def test_a_folder_of_the_users_own_is_never_touched(tmp_path: Path, fresh: bool) -> None:
    own = tmp_path / sample.NAME / "thesis.tex"
    own.parent.mkdir()
    own.write_text("years of work")
    with pytest.raises(InvalidFolder):
        sample.make_sample(tmp_path, fresh)
    assert own.read_text() == "years of work"


def test_one_that_was_interrupted_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(root: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sample, "_commit", interrupted)
        sample.make_sample(tmp_path)
    assert not (tmp_path / sample.NAME).exists()
    assert (sample.make_sample(tmp_path) / ".git").exists()


def test_the_users_signing_and_hooks_do_not_matter(tmp_path: Path, own_home: Path) -> None:
    hook = tmp_path / "hooks" / "pre-commit"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (own_home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hook.parent}\n[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = /bin/false\n"
    )
    assert (sample.make_sample(tmp_path / "demo") / ".git").exists()
