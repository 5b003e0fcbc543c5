"""The extension's life: configuration, start, faults of a host, Jupyter's event bus, the end."""

from __future__ import annotations

import asyncio
import logging
import os
import time

import pytest
import yaml

from ocman_jupyter.hosts.router import Router
from ocman_jupyter.server import backend as backends
from ocman_jupyter.server.backend import Backend
from ocman_jupyter.server.bus import COARSE, SCHEMA, SCHEMA_ID
from ocman_jupyter.settings import OcmanSettings
from tests.server.fake_host import FakeMachine
from tests.server.fake_host import session as a_session

LOG = logging.getLogger("test")


async def until(condition, seconds=5):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@pytest.fixture
def ocman_settings():
    return {"launch_timeout": 7.5}


async def test_settings_come_from_the_servers_configuration(extension):
    assert extension.backend.settings.launch_timeout == 7.5


async def test_hosts_are_built_once_and_started_in_the_background(ask, machine, extension):
    assert machine.started == 0  # nothing before it is needed
    await asyncio.gather(*(ask("GET", "asks") for _ in range(10)))
    await until(lambda: machine.started == 1)
    assert len({id(await extension.backend.router()) for _ in range(3)}) == 1


async def test_the_start_hook_of_jupyter_starts_the_hosts(extension, jp_serverapp, machine):
    await extension._start_jupyter_server_extension(jp_serverapp)
    await until(lambda: machine.started == 1)


async def test_a_host_that_does_not_start_stops_nothing_and_is_tried_again(monkeypatch, caplog):
    monkeypatch.setattr(backends, "START_RETRY_SECONDS", 0.05)
    machine = FakeMachine()
    machine.start_fails = RuntimeError("no OPENCODE_SERVER_PASSWORD=hunter2")
    backend = Backend(OcmanSettings(), LOG, lambda settings: Router(machine.host()))
    await backend.router()
    await until(lambda: machine.started >= 2)
    assert "did not start" in caplog.text and "hunter2" not in caplog.text
    machine.start_fails = None
    await backend.close()
    assert machine.closed


async def test_a_router_that_cannot_be_built_is_a_500_and_is_built_by_the_next_request(ask, told, extension):
    build = extension.backend._factory

    def broken(settings):
        raise RuntimeError("disk full")

    extension.backend._factory = broken
    response = await ask("GET", "asks")
    assert (response.code, told(response)["code"]) == (500, "internal")
    extension.backend._factory = build
    assert (await ask("GET", "asks")).code == 200


async def test_a_host_that_does_not_close_does_not_hold_up_the_end(monkeypatch):
    monkeypatch.setattr(backends, "CLOSE_SECONDS", 0.1)
    machine = FakeMachine()

    async def never() -> None:
        await asyncio.sleep(60)

    machine.close = never
    backend = Backend(OcmanSettings(), LOG, lambda settings: Router(machine.host()))
    await backend.router()
    began = time.monotonic()
    await backend.close()
    assert time.monotonic() - began < 5


async def test_coarse_events_are_on_jupyters_own_bus(extension, jp_serverapp, machine):
    heard = []

    async def listen(logger, schema_id, data):
        heard.append(data)

    await extension._start_jupyter_server_extension(jp_serverapp)
    await until(lambda: machine.subscriptions)
    jp_serverapp.event_logger.add_listener(schema_id=SCHEMA_ID, listener=listen)
    machine.tell("session.updated", **a_session("ses_1").model_dump())
    machine.tell("message.updated", session_id="ses_1", message={})
    machine.tell("progress", operation="x", message="y", fraction=None, directory="/r")
    machine.tell("worktree.removed", path="/r/\udcff", repo_root="/r")
    await until(lambda: len(heard) == 2)
    assert [one["type"] for one in heard] == ["session.updated", "worktree.removed"]
    assert heard[0]["host"] == "local" and heard[0]["data"]["id"] == "ses_1"


def test_the_schema_of_the_bus_knows_every_coarse_event():
    schema = yaml.safe_load(SCHEMA.read_text())
    assert schema["$id"] == SCHEMA_ID
    assert set(schema["properties"]["type"]["enum"]) == COARSE


class TestCertificate:
    @pytest.fixture
    def jp_server_config(self, jp_server_config, tmp_path, monkeypatch):
        monkeypatch.delenv("OCMAN_CERTFILE", raising=False)
        jp_server_config["ServerApp"]["certfile"] = str(tmp_path / "mine.pem")
        return jp_server_config

    def test_kernels_are_told_which_certificate_to_trust(self, extension, tmp_path, monkeypatch):
        monkeypatch.setenv("OCMAN_CERTFILE", os.environ["OCMAN_CERTFILE"])  # so that it goes with the test
        assert os.environ["OCMAN_CERTFILE"] == str(tmp_path / "mine.pem")
