"""A real Jupyter server with the extension on it, and a fake host behind it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from ocman_jupyter.hosts.router import Router
from tests.server.fake_host import FakeMachine


@pytest.fixture
def machine() -> FakeMachine:
    """The host behind the server."""
    return FakeMachine()


@pytest.fixture
def ocman_settings() -> dict[str, Any]:
    """Configuration of ``OcmanSettings`` in this test."""
    return {}


@pytest.fixture
def jp_server_config(machine: FakeMachine, ocman_settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "ServerApp": {
            "jpserver_extensions": {"ocman_jupyter": True, "jupyter_server_terminals": False},
            "allow_unauthenticated_access": False,
            "reraise_server_extension_failures": True,
        },
        "OcmanExtension": {"host_factory": lambda settings: Router(machine.host())},
        "OcmanSettings": ocman_settings,
    }


@pytest.fixture
def extension(jp_serverapp: Any) -> Any:
    """The extension on the running server."""
    return jp_serverapp.extension_manager.extension_points["ocman_jupyter"].app


Ask = Callable[..., Awaitable[HTTPResponse]]


@pytest.fixture
def ask(jp_fetch: Any) -> Ask:
    """``await ask("POST", "ensure", {"directory": "/x"})``: the answer, whatever its status."""

    async def fetch(
        method: str, address: str, body: Any = None, raw: bytes | None = None, **more: Any
    ) -> HTTPResponse:
        if raw is None and (body is not None or method in ("POST", "PATCH", "PUT")):
            raw = json.dumps(body if body is not None else {}).encode()
        headers = {"Content-Type": "application/json", **more.pop("headers", {})}
        return await jp_fetch(
            "api",
            "ocman",
            *address.split("/"),
            method=method,
            body=raw,
            raise_error=False,
            allow_nonstandard_methods=True,
            headers=headers,
            **more,
        )

    return fetch


@pytest.fixture
def told() -> Callable[[HTTPResponse], Any]:
    """The JSON of an answer."""

    def read(response: HTTPResponse) -> Any:
        assert response.headers["Content-Type"].startswith("application/json"), response.headers
        return json.loads(response.body)

    return read
