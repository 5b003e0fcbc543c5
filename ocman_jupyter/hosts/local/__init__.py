"""This machine as a host: where what git knows and what OpenCode knows meet."""

from __future__ import annotations

import socket

from ...settings import OcmanSettings
from ..host import LOCAL, Host
from .asks import Asks
from .composing import Composing
from .diffs import Diffs
from .events import Events
from .feed import Feed
from .feeds import Feeds
from .instances import Instances
from .machine import Machine
from .parts import Parts
from .sessions import Sessions
from .warming import Warming
from .worktrees import Worktrees


def local_host(settings: OcmanSettings) -> Host:
    """The services of this machine.  Nothing runs until a service is used or ``start()`` is awaited."""
    parts = Parts.make(settings)
    feeds = Feeds(parts)
    sessions = Sessions(parts, feeds)
    worktrees = Worktrees(parts, feeds, sessions, Warming(parts, feeds))
    composing = Composing(parts, sessions)

    def on_quiet(feed: Feed, directory: str) -> None:
        """The agent's turn ended: its worktree may look different now."""
        if parts.bus.listened:
            feeds.spawn(worktrees.refresh_at(directory))

    feeds.on_quiet = on_quiet

    async def close() -> None:
        await composing.close()
        await feeds.close()
        await parts.close()

    return Host(
        id=LOCAL,
        name=socket.gethostname(),
        machine=Machine(parts),
        instances=Instances(parts, feeds, sessions),
        worktrees=worktrees,
        sessions=sessions,
        diffs=Diffs(parts, sessions),
        composing=composing,
        asks=Asks(feeds),
        events=Events(parts, feeds, sessions, worktrees),
        start=feeds.start,
        close=close,
    )
