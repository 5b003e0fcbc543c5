"""Pays OpenCode's cold start of a new worktree in advance, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Any

from ..errors import NoSuchSession, OcmanError
from .choices import default_models
from .records import WARM_UP_TITLE, SessionRecord

if TYPE_CHECKING:
    from .client import OpenCodeClient

__all__ = ["WARM_UP_TITLE", "sweep", "warm"]


async def warm(client: OpenCodeClient, directory: str) -> None:
    """Make OpenCode load what the first prompt in ``directory`` needs, without calling a model.

    The directory's checkout must be complete: OpenCode keeps the configuration that it sees now.  May be
    cancelled at any time; the throw-away session is deleted also then, and when something fails.  Raises
    what the client raises.
    """
    # A session first: were the directory not what OpenCode takes it for, nothing else would be asked.
    creating = asyncio.ensure_future(client.create_session(directory, WARM_UP_TITLE))
    try:
        session = await asyncio.shield(creating)
    except asyncio.CancelledError:
        # It may be there already: see it through, then delete it.
        await _finish(_delete_created(client, creating))
        raise
    try:
        await _load(client, directory)
        message_id = await client.message_no_reply(session.id, WARM_UP_TITLE)
        # Taking a message back makes the first snapshot of the files, most of the wait in a big repository.
        await client.revert(session.id, message_id)
    finally:
        await _finish(_delete(client, session.id))


async def sweep(client: OpenCodeClient, sessions: Iterable[SessionRecord]) -> int:
    """Delete throw-aways among ``sessions`` that a killed process left behind; returns how many."""
    stale = [session.id for session in sessions if session.title == WARM_UP_TITLE]
    for session_id in stale:
        await _delete(client, session_id)
    return len(stale)


async def _load(client: OpenCodeClient, directory: str) -> None:
    """Providers, agents, commands, tools: each is a cold start that the first prompt would pay."""
    providers = await client.providers(directory)
    await client.agents(directory)
    await client.commands(directory)
    model = next(default_models(providers), None)
    if model is not None:
        await client.tools(directory, model)
    await client.load_location(directory)


async def _delete(client: OpenCodeClient, session_id: str) -> None:
    with contextlib.suppress(NoSuchSession):
        await client.delete_session(session_id)


async def _delete_created(client: OpenCodeClient, creating: Awaitable[SessionRecord]) -> None:
    with contextlib.suppress(OcmanError):
        await _delete(client, (await creating).id)


async def _finish(work: Any) -> None:
    """Let ``work`` end although this task is cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
