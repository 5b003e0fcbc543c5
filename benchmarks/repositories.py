"""Makes the repositories that are measured: deterministic content, real commits."""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

_TEXT = """def return self import for in if else not None True False data frame column index value row model
fit predict score train test split load save path open read write numpy pandas figure plot axis label"""
_WORDS = _TEXT.split()


def git(directory: Path, *arguments: str) -> str:
    """Run git in ``directory`` as a person would, with an identity; its output."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", "-C", str(directory), *identity, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def code(rng: random.Random, size: int) -> str:
    """Text like source code, about ``size`` bytes; compresses like source code, too."""
    lines: list[str] = []
    length = 0
    while length < size:
        line = "    " * rng.randint(0, 3) + " ".join(rng.choices(_WORDS, k=rng.randint(3, 9)))
        line += f" = {rng.randint(0, 999_999)}\n"
        lines.append(line)
        length += len(line)
    return "".join(lines)[:size]


def _notebook(rng: random.Random, size: int) -> str:
    """A notebook whose size is mostly figures, as notebooks that were run have them."""
    cells: list[dict] = []
    length = 0
    while length < size:
        image = base64.b64encode(rng.randbytes(min(60_000, max(1_000, (size - length) * 3 // 4)))).decode()
        source = code(rng, 600)
        output = {"output_type": "display_data", "metadata": {}, "data": {"image/png": image}}
        cells.append(
            {
                "cell_type": "code",
                "execution_count": len(cells) + 1,
                "id": f"c{len(cells)}",
                "metadata": {},
                "source": source.splitlines(keepends=True),
                "outputs": [output],
            }
        )
        length += len(image) + len(source) + 200
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def _fill_tiny(root: Path) -> None:
    (root / "README.md").write_text("# tiny\n")
    (root / "analysis.py").write_text("print('hello')\n")


def _fill_files(root: Path, count: int = 5_000, total: int = 100_000_000) -> None:
    rng = random.Random(5000)
    for number in range(count):
        directory = root / f"package{number // 100:02d}" / f"part{number // 20 % 5}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"module{number:04d}.py").write_text(code(rng, total // count))


def _fill_notebooks(root: Path, count: int = 300, total: int = 200_000_000) -> None:
    rng = random.Random(300)
    for number in range(count):
        directory = root / f"experiments{number // 30:02d}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"run{number:03d}.ipynb").write_text(_notebook(rng, total // count))


def _fill_small_files(root: Path) -> None:
    _fill_files(root, 1_000, 2_000_000)


def _fill_light_files(root: Path) -> None:
    _fill_files(root, 5_000, 10_000_000)


KINDS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "tiny": ("tiny (2 files)", _fill_tiny),
    "files": ("5,000 files / 100 MB", _fill_files),
    "notebooks": ("300 notebooks / 200 MB", _fill_notebooks),
    "small-files": ("1,000 files / 2 MB", _fill_small_files),
    "light-files": ("5,000 files / 10 MB", _fill_light_files),
}
"""By name: what people call it, and what fills it."""


def make(kind: str, parent: Path) -> Path:
    """The repository of this kind under ``parent``, made when it is not there yet; its main checkout."""
    root = parent / kind / "main"
    if (root / ".git").exists():
        return root
    root.mkdir(parents=True)
    KINDS[kind][1](root)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", f"{kind} repository")
    # As a clone would have it: one pack, not thousands of loose objects.
    git(root, "gc", "-q")
    return root


def remove_worktree(root: Path, path: Path, branch: str | None = None) -> None:
    """Take a measured worktree away again."""
    git(root, "worktree", "remove", "--force", str(path))
    if branch:
        git(root, "branch", "-q", "-D", branch)
