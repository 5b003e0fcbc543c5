"""The whole of it, for real: a host with the real git, tmux and OpenCode, and the scripted model."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter.demo.model import opencode_environment
from ocman_jupyter.errors import OcmanError
from ocman_jupyter.hosts.host import Host
from ocman_jupyter.hosts.local import local_host
from ocman_jupyter.settings import OcmanSettings


@pytest.fixture
def offline(scripted_model: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of an OpenCode that only knows the scripted model; set for this test."""
    environment = {
        **opencode_environment(scripted_model.url),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return environment


HostMaker = Callable[..., Any]


@pytest.fixture
def running_host(offline: dict[str, str]) -> HostMaker:
    """``async with running_host(binary, directory, **settings) as host``: stops its OpenCode at the end."""

    @asynccontextmanager
    async def make(binary: Path, *directories: Path, started: bool = True, **settings: Any) -> AsyncIterator[Host]:
        host = local_host(OcmanSettings(opencode_command=str(binary), **settings))
        try:
            if started:
                await host.start()
            yield host
        finally:
            for directory in directories:
                with contextlib.suppress(OcmanError):
                    await host.instances.stop(str(directory), force=True)
            await host.close()

    return make


@pytest.fixture(autouse=True)
def all_closed(connections_closed: list[object]) -> None:
    """What is done to OpenCode leaves no connection behind."""
