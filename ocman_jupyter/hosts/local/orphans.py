"""Sessions that OpenCode made after their create had given up on them, in worktrees that were taken back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from typing import TYPE_CHECKING

from ...errors import NoSuchSession, OcmanError
from ...git.paths import is_within
from ...opencode.permissions import session_rules
from ...opencode.records import SessionRecord

if TYPE_CHECKING:
    from .feed import Feed
    from .parts import Parts

log = logging.getLogger(__name__)


async def drop_orphans(parts: Parts, feed: Feed) -> None:
    """Delete what nobody was told of and nobody can use."""
    try:
        taken = await parts.taken_back.of(feed.instance.identity)
        for record in [one for one in feed.records() if one.directory in taken]:
            if await _is_orphan(parts, feed, record, since=taken[record.directory]):
                with contextlib.suppress(NoSuchSession):
                    await feed.client.delete_session(record.id)
                feed.deleted(record.id)
    except OcmanError as error:
        log.info("a session without a directory may be left in %s: %s", feed.instance.root, error)


async def _is_orphan(parts: Parts, feed: Feed, record: SessionRecord, since: float) -> bool:
    """Whether nobody but that create can have made it.

    What ocman makes has its rules, and a note once anybody is told of it.
    """
    return (
        record.created >= int(since * 1000)
        and is_within(record.directory, feed.worktrees_root)
        and all(rule in record.permission for rule in session_rules(feed.worktrees_root))
        and not await asyncio.to_thread(os.path.lexists, record.directory)
        and await is_unclaimed(parts, feed, record)
    )


async def is_unclaimed(parts: Parts, feed: Feed, record: SessionRecord) -> bool:
    """Whether nobody was told of a session and nothing was done in it.  Raises as ``OpenCodeClient.messages``."""
    return (
        record.parent_id is None
        and feed.status(record.id) == "idle"
        and await parts.notes.get(record.id) is None
        and not (await feed.client.messages(record.id, limit=1)).messages
    )
