"""Makes the demo's sample project: a small data-science repository with a notebook and ignored data."""

from __future__ import annotations

import asyncio
import json
import platform
import random
import shutil
from pathlib import Path
from typing import Any

from ocman_jupyter.errors import InvalidFolder
from ocman_jupyter.settings import OcmanSettings

NAME = "harvest"
NOTEBOOK = "explore.ipynb"
DATA = "data/yields.csv"
_MARK = "ocman-demo"
"""A file inside ``.git`` that says: made by us, may be made afresh."""

_README = """\
# harvest

How much wheat does a field give, by rain and temperature?  A small project to try ocman_jupyter on.

- `explore.ipynb` – start here
- `src/harvest/` – loads the measurements and fits a line
- `tests/` – `python -m unittest discover tests`
- `data/` – the measurements; git ignores them, as it should with data, and `.worktreeinclude` has them
  copied to each new worktree
"""

_IGNORE = """\
data/
results/
__pycache__/
.ipynb_checkpoints/
.venv/
"""

_PACKAGE = '''\
"""Wheat yields: load the measurements, fit a line, say how good it is."""

from .fit import Line, fit_line
from .load import Measurement, load

__all__ = ["Line", "Measurement", "fit_line", "load"]
'''

_LOAD = '''\
"""Reads the measurements."""

import csv
from pathlib import Path
from typing import NamedTuple


class Measurement(NamedTuple):
    field: str
    rain: float
    temperature: float
    tonnes: float


def load(path: Path) -> list[Measurement]:
    """All measurements of the file.  Reads everything at once: an idea worth a worktree is to stream it."""
    with Path(path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [Measurement(row["field"], *(float(row[name]) for name in ("rain", "temperature", "tonnes")))
            for row in rows]
'''

_FIT = '''\
"""A straight line through the measurements."""

from collections.abc import Sequence
from statistics import linear_regression, mean
from typing import NamedTuple


class Line(NamedTuple):
    slope: float
    intercept: float
    r2: float


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line:
    """Least squares, with the share of the variance that the line explains."""
    slope, intercept = linear_regression(x, y)
    middle = mean(y)
    missed = sum((b - (slope * a + intercept)) ** 2 for a, b in zip(x, y))
    spread = sum((b - middle) ** 2 for b in y)
    return Line(slope, intercept, 1 - missed / spread)
'''

_TEST = """\
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from harvest import fit_line, load  # noqa: E402


class Harvest(unittest.TestCase):
    def test_a_straight_line_is_found(self):
        line = fit_line([1, 2, 3], [3, 5, 7])
        self.assertAlmostEqual(line.slope, 2)
        self.assertAlmostEqual(line.r2, 1)

    def test_the_file_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "yields.csv")
            path.write_text("field,rain,temperature,tonnes\\nnorth,10,20,3.5\\n")
            self.assertEqual(load(path)[0].tonnes, 3.5)


if __name__ == "__main__":
    unittest.main()
"""

_LOOK = """\
import sys
from pathlib import Path

# This checkout's own code, also when the notebook is opened in a worktree.
sys.path.insert(0, str(Path.cwd() / "src"))
from harvest import fit_line, load

measurements = load(Path("data") / "yields.csv")
len(measurements), measurements[0]
"""

_RESULT = """\
line = fit_line([m.rain for m in measurements], [m.tonnes for m in measurements])
print(f"{line.slope:.4f} t per mm of rain, r2 = {line.r2:.2f}")
"""

_INTRO = """\
# Harvest

A small project with one idea to try: *does the loader really have to read everything at once?*

The first two cells are ordinary work. The last ones hand an idea to an agent: it gets a **worktree** of
its own beside this repository, and works there; your checkout stays as it is.
"""

_SCRIPTED = """\
### The demo model

When you have no model configured, the demo brings its own. It is **scripted and offline**: it does not
think, it does what the prompt spells out, one line a step: `RUN bash: <command>`, `READ <file>`,
`WRITE <file>: <text>`, `SAY <text>`. With a real model write what you want in your own words.
"""

_PROMPT = """\
%%ocman wt stream-rows
READ src/harvest/load.py
WRITE NOTES.md: Rows could be yielded one by one.
"""


def _cell(source: str, kind: str = "code") -> dict[str, Any]:
    lines = source.rstrip().splitlines(keepends=True)
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": lines}
    return {**cell, "execution_count": None, "outputs": []} if kind == "code" else cell


def notebook() -> dict[str, Any]:
    """The notebook that the demo opens."""
    cells = [
        _cell(_INTRO, "markdown"),
        _cell(_LOOK),
        _cell(_RESULT),
        _cell("%load_ext ocman_jupyter"),
        _cell("An idea: a branch, a worktree and a session, in one line.", "markdown"),
        _cell('%ocman wt look-around "RUN bash: pwd"'),
        _cell(_SCRIPTED, "markdown"),
        _cell(_PROMPT),
        _cell("%ocman worktrees"),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"demo-{number}"
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    language = {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": platform.python_version(),
    }
    metadata = {"kernelspec": kernel, "language_info": language}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def measurements(rows: int = 400) -> str:
    """The ignored data: the same on every machine."""
    rng = random.Random(1789)
    lines = ["field,rain,temperature,tonnes"]
    for number in range(rows):
        rain, temperature = rng.uniform(200, 900), rng.uniform(8, 24)
        tonnes = 1.5 + 0.008 * rain - 0.05 * abs(temperature - 16) + rng.gauss(0, 0.6)
        lines.append(f"f{number % 20:02d},{rain:.1f},{temperature:.1f},{tonnes:.3f}")
    return "\n".join(lines) + "\n"


_FILES = {
    "README.md": _README,
    ".gitignore": _IGNORE,
    ".worktreeinclude": "data/\n",
    "src/harvest/__init__.py": _PACKAGE,
    "src/harvest/load.py": _LOAD,
    "src/harvest/fit.py": _FIT,
    "tests/test_harvest.py": _TEST,
}


def make_sample(folder: Path, fresh: bool = False) -> Path:
    """Make the sample project in ``folder`` and return its main checkout.

    A project that is there already is kept as it is, with what was done in it.  ``fresh`` removes it
    first, and its worktrees.  Raises ``InvalidFolder`` when something that we did not make is in the way.
    """
    root = folder.resolve() / NAME
    if root.exists():
        if not (root / ".git" / _MARK).exists():
            raise InvalidFolder(f"{root} is not the demo's own project.", hint="Choose another folder with --folder.")
        if not fresh:
            return root
        shutil.rmtree(root)
        shutil.rmtree(root.parent / ".worktrees" / NAME, ignore_errors=True)
    # Made aside and put in place when it is complete: an interrupted demo starts again from nothing.
    making = root.with_name(f".{NAME}.making")
    shutil.rmtree(making, ignore_errors=True)
    texts = {**_FILES, NOTEBOOK: json.dumps(notebook(), indent=1, sort_keys=True) + "\n", DATA: measurements()}
    for path, text in texts.items():
        target = making / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    asyncio.run(_commit(str(making)))
    (making / ".git" / _MARK).touch()
    making.rename(root)
    return root


async def _commit(root: str) -> None:
    from ocman_jupyter.git.command import Git

    git = Git(OcmanSettings())
    # The user's own signing and hooks have no place in a sample.
    config = {
        "user.name": "Demo", "user.email": "demo@localhost",
        "commit.gpgsign": "false", "core.hooksPath": "/dev/null",
    }  # fmt: skip
    try:
        await git.run("init", "--quiet", "--initial-branch=main", cwd=root, write=True)
        await git.run("add", "--all", cwd=root, write=True)
        message = "Harvest: load, fit, explore"
        await git.run("commit", "--quiet", "--message", message, cwd=root, write=True, config=config)
    finally:
        git.close()
