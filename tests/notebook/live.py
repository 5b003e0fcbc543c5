"""A project with a real OpenCode, for tests that run the command or a kernel as a process of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from ocman_jupyter.demo.model import opencode_environment
from ocman_jupyter.errors import OcmanError
from ocman_jupyter.hosts.local import local_host
from ocman_jupyter.settings import OcmanSettings

ROOT = Path(__file__).parents[2]


@contextmanager
def live_project(root: Path, model: str, binary: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment in which ``root``'s OpenCode knows the scripted model; it is stopped at the end."""
    for name, value in opencode_environment(model).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    try:
        yield
    finally:
        asyncio.run(_stop(root))


async def _stop(root: Path) -> None:
    host = local_host(OcmanSettings.load())
    with suppress(OcmanError):
        await host.instances.stop(str(root), force=True)
    await host.close()


def instances(root: Path) -> list[psutil.Process]:
    """OpenCode servers at work in the project."""
    found = []
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error, OSError):
            name = process.info["name"] or ""
            if (
                name.startswith("opencode")
                and process.cwd() == str(root)
                and "attach" not in process.cmdline()
            ):
                found.append(process)
    return found
