"""The verbs, the same with a Jupyter server and without one: answers are the REST contract's JSON in both.

:class:`InProcessClient` asks a ``Host`` in this process, ``rest.RestClient`` a server.  Every method raises
the typed errors of :mod:`ocman_jupyter.errors`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..errors import InvalidRequest, NoSuchHost

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ..hosts.host import Host, Progress
    from .channel import Channel

    Model = TypeVar("Model", bound=BaseModel)

Json = dict[str, Any]


class Client(Protocol):
    """What can be asked.  ``body`` is the request's JSON without what is named beside it."""

    where: str
    """For people: where the work is done."""

    async def capabilities(self) -> Json: ...
    async def doctor(self) -> Json: ...
    async def ensure(self, directory: str, progress: Progress | None = None) -> Json: ...
    async def stop(self, directory: str, force: bool = False) -> Json: ...
    async def restart(
        self, directory: str, force: bool = False, progress: Progress | None = None
    ) -> Json: ...
    async def worktrees(self, directory: str, changes: bool = True) -> Json: ...
    async def create(self, body: Json, progress: Progress | None = None) -> Json: ...
    async def removal(self, path: str, delete_branch: bool = False) -> Json: ...
    async def remove(self, body: Json) -> Json: ...
    async def diff(self, path: str, against: str = "base") -> Json: ...
    async def sessions(self, directory: str) -> Json: ...
    async def create_session(self, body: Json, progress: Progress | None = None) -> Json: ...
    async def session(self, session_id: str) -> Json: ...
    async def messages(self, session_id: str, limit: int = 100) -> Json: ...
    async def todos(self, session_id: str) -> Json: ...
    async def prompt(self, session_id: str, body: Json) -> Json: ...
    async def abort(self, session_id: str) -> Json: ...
    async def asks(self) -> Json: ...
    async def reply(self, ask_id: str, body: Json) -> Json: ...
    def stream(self, session_id: str) -> AsyncIterator[Json]:
        """One session's events, ``{"type", "data"}``: first ``session.updated``, then for ever."""

    def events(self) -> AbstractAsyncContextManager[Channel]:
        """The events of everything."""

    async def close(self) -> None: ...


def request(model: type[Model], body: Json) -> Model:
    """``body`` as a request record; ``InvalidRequest`` names the field that is wrong."""
    from pydantic import ValidationError

    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "request"
        raise InvalidRequest(f"{name}: {first['msg']}", details={"field": name}) from None


def _json(record: BaseModel) -> Json:
    return record.model_dump(mode="json")


class InProcessClient:
    """The host of this process; launch lock, registry and store are shared with every server of the user."""

    where = "in process"

    def __init__(self, host: Host) -> None:
        self._host = host

    async def start(self) -> None:
        """For a process that stays: adopt what runs, and prepare worktrees in the background."""
        await self._host.start()

    async def capabilities(self) -> Json:
        return _json(await self._host.machine.capabilities())

    async def doctor(self) -> Json:
        return {"checks": [_json(check) for check in await self._host.machine.doctor()]}

    async def ensure(self, directory: str, progress: Progress | None = None) -> Json:
        return _json(await self._host.instances.ensure(directory, progress))

    async def stop(self, directory: str, force: bool = False) -> Json:
        await self._host.instances.stop(directory, force)
        return {"stopped": True}

    async def restart(self, directory: str, force: bool = False, progress: Progress | None = None) -> Json:
        return _json(await self._host.instances.restart(directory, force, progress))

    async def worktrees(self, directory: str, changes: bool = True) -> Json:
        return _json(await self._host.worktrees.list(directory, changes))

    async def create(self, body: Json, progress: Progress | None = None) -> Json:
        from ..hosts.host import WorktreeRequest

        wanted = request(WorktreeRequest, body)
        self._check_host(wanted.host)
        if wanted.dry_run:
            return {"plan": _json(await self._host.worktrees.plan(wanted))}
        return _json(await self._host.worktrees.create(wanted, progress))

    async def removal(self, path: str, delete_branch: bool = False) -> Json:
        return _json(await self._host.worktrees.removal(path, delete_branch))

    async def remove(self, body: Json) -> Json:
        from ..hosts.host import RemoveRequest

        return _json(await self._host.worktrees.remove(request(RemoveRequest, body)))

    async def diff(self, path: str, against: str = "base") -> Json:
        return _json(await self._host.diffs.worktree(path, against))

    async def sessions(self, directory: str) -> Json:
        return _json(await self._host.sessions.list(directory))

    async def create_session(self, body: Json, progress: Progress | None = None) -> Json:
        from ..hosts.host import SessionRequest

        return _json(await self._host.sessions.create(request(SessionRequest, body), progress))

    async def session(self, session_id: str) -> Json:
        return _json(await self._host.sessions.get(session_id))

    async def messages(self, session_id: str, limit: int = 100) -> Json:
        return await self._host.sessions.messages(session_id, limit)

    async def todos(self, session_id: str) -> Json:
        return {"todos": await self._host.sessions.todos(session_id)}

    async def prompt(self, session_id: str, body: Json) -> Json:
        from ..hosts.host import PromptRequest

        return {"queued": await self._host.sessions.prompt(session_id, request(PromptRequest, body))}

    async def abort(self, session_id: str) -> Json:
        await self._host.sessions.abort(session_id)
        return {"aborted": True}

    async def asks(self) -> Json:
        return {"asks": [_json(ask) for ask in await self._host.asks.list()]}

    async def reply(self, ask_id: str, body: Json) -> Json:
        from ..hosts.host import ReplyRequest

        await self._host.asks.reply(ask_id, request(ReplyRequest, body))
        return {"replied": True}

    async def stream(self, session_id: str) -> AsyncIterator[Json]:
        events = self._host.events.session(session_id)
        async with aclosing(await events if isawaitable(events) else events) as following:
            async for event in following:
                yield _json(event)

    def events(self) -> AbstractAsyncContextManager[Channel]:
        from .channel import of_host

        return of_host(self._host)

    async def close(self) -> None:
        await self._host.close()

    def _check_host(self, host: str | None) -> None:
        if host not in (None, self._host.id):
            raise NoSuchHost(f'There is no host "{host}" here.')
