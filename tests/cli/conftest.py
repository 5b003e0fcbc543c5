"""The fake host of the notebook's tests, and the command in this process and in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter import cli
from ocman_jupyter.notebook import api
from tests.notebook.fake import FakeHost, install

ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHost]:
    """What the command works on."""
    monkeypatch.setattr(api, "in_process", api.in_process)
    yield install()
    api.DESK.use(None)


Answer = tuple[int, str, str]


@pytest.fixture
def ocman(fake: FakeHost, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """``ocman("wt", "fix")``: exit code, stdout, stderr of the command over the fake host."""

    def run(*words: str) -> Answer:
        capsys.readouterr()
        code = cli.main(words)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


@pytest.fixture
def command() -> Callable[..., subprocess.Popen[str]]:
    """``command("wt", "fix", fake="…")``: the command as a process; ``fake`` is code for a fake host."""

    def start(*words: str, fake: str | None = None, **options: Any) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "ocman_jupyter", *words]
        if fake is not None:
            code = f"import sys\nfrom tests.notebook.fake import install\nfake = install()\n{fake}\n"
            code += "from ocman_jupyter.cli import main\nsys.exit(main(sys.argv[1:]))"
            argv = [sys.executable, "-c", code, *words]
        env = {**os.environ, "PYTHONPATH": ROOT, **options.pop("env", {})}
        return subprocess.Popen(
            argv, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )

    return start
