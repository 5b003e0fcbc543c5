"""Which processes count as an OpenCode of a repository."""

from __future__ import annotations

import asyncio
import sys

import pytest

from ocman_jupyter.opencode.discovery import Discovery

from .world import World, wait_for


async def test_callers_at_once_share_one_scan(world: World):
    discovery = Discovery()
    answers = await asyncio.gather(*(discovery.find(str(world.root), lambda path: True) for _ in range(50)))
    assert discovery.scans == 1
    assert all(answer == answers[0] for answer in answers)


async def test_a_caller_that_gives_up_does_not_end_the_scan_of_others(world: World):
    pid = world.user_starts()
    discovery = Discovery()
    first = asyncio.ensure_future(discovery.find(str(world.root), world.target().belongs))
    second = asyncio.ensure_future(discovery.find(str(world.root), world.target().belongs))
    await asyncio.sleep(0)
    first.cancel()
    assert [found.pid for found in await second] == [pid]
    assert discovery.scans == 1


async def test_the_main_checkout_comes_first_then_the_oldest(world: World):
    deep = world.root / "deep"
    deep.mkdir()
    pids = [world.user_starts(place) for place in (deep, world.root, world.root)]
    found = await Discovery().find(str(world.root), world.target().belongs)
    assert [one.pid for one in found] == [pids[1], pids[2], pids[0]]


async def test_belongs_may_wait_and_may_fail(world: World):
    pid = world.user_starts()

    async def belongs(directory: str) -> bool:
        await asyncio.sleep(0)
        return world.target().belongs(directory)

    def broken(directory: str) -> bool:
        raise OSError("gone")

    assert [one.pid for one in await Discovery().find(str(world.root), belongs)] == [pid]
    assert await Discovery().find(str(world.root), broken) == []


async def test_one_that_does_not_listen_is_no_instance(world: World):
    world.behave(deaf=True)
    world.runs(str(world.program), "serve")
    await asyncio.to_thread(wait_for, world.starts)
    assert await Discovery().find(str(world.root), world.target().belongs) == []


@pytest.mark.parametrize("name", ["server", "my-opencode"])
async def test_a_server_of_another_name_is_no_opencode(world: World, name: str):
    other = world.program.rename(world.bin / name)
    world.program = other
    world.user_starts()
    assert await Discovery().find(str(world.root), world.target().belongs) == []


async def test_one_that_runs_through_an_interpreter_is_found(world: World):
    log = world.runs(sys.executable, str(world.program), "serve")
    await asyncio.to_thread(wait_for, lambda: "listening" in log.read_text())
    found = await Discovery().find(str(world.root), world.target().belongs)
    assert [one.pid for one in found] == [world.children[0].pid]
