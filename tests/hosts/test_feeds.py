"""Who is listened to: the instance that is in use, and nobody once this host is closed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter.errors import OpenCodeUnreachable
from ocman_jupyter.hosts.local.feeds import Feeds
from ocman_jupyter.hosts.local.parts import Parts
from ocman_jupyter.opencode.client import OpenCodeClient
from ocman_jupyter.opencode.instances import Instance
from ocman_jupyter.opencode.processes import current
from ocman_jupyter.settings import OcmanSettings
from tests.opencode.conftest import FakeOpenCode, fake, reply  # noqa: F401  a fixture


class Given:
    """The instances, as far as listening goes: the one that is in use."""

    def __init__(self) -> None:
        self.instance: Instance | None = None

    def is_live(self, instance: Instance) -> bool:
        return self.instance is instance

    async def known(self) -> list[Instance]:
        return [self.instance] if self.instance is not None else []

    async def close(self) -> None:
        pass


async def test_an_instance_that_was_given_up_is_not_listened_to_any_more(
    fake: FakeOpenCode, tmp_path: Path, repository: Callable[..., Path], connections_closed: list[Any]  # noqa: F811
) -> None:
    for path in ("/session", "/permission", "/question"):
        fake.answers["GET", path] = reply([])
    fake.answers["GET", "/session/status"] = reply({})
    root = str(repository())
    parts = Parts.make(OcmanSettings(data_dir=str(tmp_path / "data")))
    parts.instances = given = Given()  # type: ignore[assignment]
    process = current(os.getpid())
    assert process is not None

    def instance() -> Instance:
        client = OpenCodeClient(fake.url)
        return Instance(
            f"{root}/.git", root, root, fake.url, 1, process, "user", None, True, "1", None, None, client,
            ("opencode", None))

    feeds = Feeds(parts)
    first = given.instance = instance()
    await feeds.adopt()
    (feed,) = feeds.all()
    await feeds.adopt()
    assert feeds.all() == [feed] and feed.instance is first

    # The same process and address, found again: the client of the one before is closed.
    await first.client.aclose()
    second = given.instance = instance()
    await feeds.adopt()
    (feed,) = feeds.all()
    assert feed.instance is second
    await feed.reread()

    await feeds.close()
    await second.client.aclose()
    third = given.instance = instance()
    await feeds.adopt()
    assert feeds.all() == []
    with pytest.raises(OpenCodeUnreachable):
        await feeds._attach(third, feed.target)
    await parts.close()
