"""What a person who writes to a session of this machine can choose from."""

from __future__ import annotations

from ...git import files
from ...opencode.choices import Choices, read_choices
from ..host import Choice, ModelChoice, SessionOptions
from .briefly import Briefly
from .feeds import Feed
from .parts import Parts
from .sessions import Sessions

OPTIONS_SECONDS = 10.0
"""Configuration changes seldom; OpenCode itself reads it once for each directory."""
FILES_SECONDS = 4.0
"""A file that the agent just made is offered after that."""
OPTIONS_KEPT, FILES_KEPT = 50, 4


class Composing:
    """Agents, models, commands and files.  Launches nothing."""

    def __init__(self, parts: Parts, sessions: Sessions) -> None:
        self._parts = parts
        self._sessions = sessions
        self._options: Briefly[SessionOptions] = Briefly(OPTIONS_SECONDS, OPTIONS_KEPT)
        self._files: Briefly[list[str]] = Briefly(FILES_SECONDS, FILES_KEPT)

    async def options(self, session_id: str) -> SessionOptions:
        """Raises `NoSuchSession`, `OpenCodeUnreachable`, and `DirectoryMissing`: a directory that is gone is not
        asked about, since OpenCode would make a context for it."""
        feed, directory = await self._sessions.serving(session_id)
        return await self._options.get((feed.instance.url, directory), lambda: self._ask(feed, directory))

    async def _ask(self, feed: Feed, directory: str) -> SessionOptions:
        await feed.use(directory)
        return _told(await read_choices(feed.client, directory))

    async def files(self, session_id: str, query: str = "", limit: int = 50) -> list[str]:
        """Raises `NoSuchSession`, `DirectoryMissing`.  Asks no OpenCode."""
        _, directory = await self._sessions.workplace(session_id)
        names = await self._files.get(directory, lambda: files.names(self._parts.git, directory))
        return await self._parts.git.disk(files.matching, directory, names, query, limit)

    async def close(self) -> None:
        """Give up what is under way."""
        await self._options.close()
        await self._files.close()


def _told(choices: Choices) -> SessionOptions:
    return SessionOptions(
        agents=[Choice(name=name, description=text) for name, text in choices.agents],
        models=[ModelChoice(id=one, name=name, provider=provider) for one, name, provider in choices.models],
        commands=[Choice(name=name, description=text) for name, text in choices.commands],
        default_model=choices.default_model,
    )
