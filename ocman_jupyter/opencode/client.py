"""The one place that knows OpenCode's URLs, JSON and versions (made for and tried on 1.17 and 1.18)."""

from __future__ import annotations

import base64
import json
import logging
import mimetypes
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from .. import errors
from . import foreign
from .records import Page, Place, SessionRecord
from .transport import CONNECT_TIMEOUT, ConnectionRefused, Transport, Unsure, utf8

__all__ = ["ConnectionRefused", "OpenCodeClient", "Unsure", "closed_on_failure"]

log = logging.getLogger(__name__)

TURN_TIMEOUT = 24 * 3600.0
"""Seconds for the calls that answer only when the agent's turn is over."""
EVERYTHING = 100_000
"""OpenCode lists 100 sessions unless it is told otherwise."""


class OpenCodeClient:
    """Talks to one OpenCode server.  Raises ``InvalidRequest`` for an odd address, name or password.

    Every call has a deadline (seconds) and raises :class:`ConnectionRefused`, :class:`Unsure`,
    ``OpenCodeNeedsPassword`` (401), ``NoSuchSession`` (404 of a session), ``SessionBusy`` (409), or
    ``OpenCodeError`` with ``details`` ``{"status", "text", "request"}``.  Use it from one event loop.

    ``directory`` arguments are absolute paths.  They travel percent-encoded in a header: in the query
    OpenCode decodes them twice, so that ``a%41`` becomes ``aA``.
    """

    def __init__(
        self, url: str, password: str | None = None, username: str = "opencode", timeout: float = 30.0
    ) -> None:
        self._http = Transport(url, password, username, timeout)
        self.url = self._http.url
        self.username = username
        self._version = ""
        self._warned = False

    def __repr__(self) -> str:
        return f"OpenCodeClient({self.url!r})"

    async def aclose(self) -> None:
        """Close all connections for good; a later call finds nobody listening."""
        await self._http.aclose()

    # --- the process and its directories -----------------------------------------------------

    async def health(self, timeout: float = 1.0, fresh: bool = True) -> str:
        """Version of a server that answers.

        ``fresh``: asked on a new connection, because the first one to a new screen form may hang.
        """
        body = await self._http.call("GET", "/global/health", timeout=timeout, probe=True, fresh=fresh)
        if not isinstance(body, dict) or body.get("healthy") is not True or not isinstance(body.get("version"), str):
            raise errors.OpenCodeError("What answers there is not an OpenCode.", details={"url": self.url})
        self._version = body["version"]
        return self._version

    async def path(self, directory: str | None = None, timeout: float | None = None) -> Place:
        """Where the server (without ``directory``) or a directory is.  Makes the directory's context."""
        body = await self._object("/path", directory=directory, timeout=timeout, probe=True)
        if not isinstance(body.get("worktree"), str):
            raise self._http.odd("GET /path", body)
        return Place(body["worktree"], str(body.get("directory") or ""))

    async def config(self, directory: str | None = None, timeout: float | None = None) -> dict[str, Any]:
        """The configuration that holds in a directory.  Makes its context."""
        return await self._object("/config", directory=directory, timeout=timeout, probe=True)

    async def dispose(self, directory: str) -> None:
        """Free the context of a directory; the next call about it makes a new one."""
        await self._http.call("POST", "/instance/dispose", directory=directory)

    async def providers(self, directory: str) -> dict[str, Any]:
        """``{"providers": […], "default": {provider: model}}``."""
        return await self._object("/config/providers", directory=directory)

    async def agents(self, directory: str) -> list[dict[str, Any]]:
        return await self._list("/agent", directory=directory)

    async def commands(self, directory: str) -> list[dict[str, Any]]:
        return await self._list("/command", directory=directory)

    async def tools(self, directory: str, model: str) -> list[dict[str, Any]]:
        """Tools as ``model`` (``provider/model``) gets to see them."""
        chosen = _model(model)
        return await self._list(
            "/experimental/tool",
            directory=directory,
            query={"provider": chosen["providerID"], "model": chosen["modelID"]},
        )

    async def load_location(self, directory: str) -> None:
        """Have 1.17 load what the first prompt in a directory waits for (2 to 5 s); later versions load it anew."""
        version = self._version or await self.health(CONNECT_TIMEOUT)
        if version.startswith("1.17."):
            await self._http.call("GET", "/api/location", directory=directory)

    # --- sessions ----------------------------------------------------------------------------

    async def create_session(
        self,
        directory: str,
        title: str | None = None,
        permission: Sequence[Mapping[str, str]] | None = None,
        parent_id: str | None = None,
    ) -> SessionRecord:
        """Open a session.  OpenCode takes a wrong or missing directory too: compare the record's."""
        body: dict[str, Any] = {}
        if title is not None:
            body["title"] = title
        if permission:
            body["permission"] = [dict(rule) for rule in permission]
        if parent_id is not None:
            body["parentID"] = parent_id
        return SessionRecord.from_json(await self._http.call("POST", "/session", directory=directory, body=body))

    async def session(self, session_id: str) -> SessionRecord:
        return SessionRecord.from_json(await self._session("GET", session_id))

    async def sessions(self, directory: str) -> list[SessionRecord]:
        """All sessions of the project that ``directory`` is in, subagents' and archived ones included.

        Clones of a repository share a project: sort out by each record's directory.
        """
        body = await self._list(
            "/session", directory=directory, query={"scope": "project", "limit": str(EVERYTHING)}
        )
        return self._records(body)

    async def children(self, session_id: str) -> list[SessionRecord]:
        """Sessions of the subagents that this one called."""
        body = await self._list(_session_path(session_id, "/children"), session_id=session_id)
        return self._records(body)

    def _records(self, body: list[dict[str, Any]]) -> list[SessionRecord]:
        """One that nothing can be done with must not take the others along."""
        records = []
        for item in body:
            try:
                records.append(SessionRecord.from_json(item))
            except errors.OpenCodeError:
                if not self._warned:
                    log.warning("%s lists a session that was not understood; it is left out.", self.url)
                self._warned = True
        return records

    async def rename(self, session_id: str, title: str) -> SessionRecord:
        return SessionRecord.from_json(await self._session("PATCH", session_id, body={"title": title}))

    async def set_permission(self, session_id: str, rules: Sequence[Mapping[str, str]]) -> SessionRecord:
        """Append session rules (they cannot be taken back); they hold from the next turn."""
        body = {"permission": [dict(rule) for rule in rules]}
        return SessionRecord.from_json(await self._session("PATCH", session_id, body=body))

    async def move(self, session_id: str, directory: str) -> None:
        """Let a session go on in another directory."""
        await self._http.call(
            "POST",
            "/experimental/control-plane/move-session",
            session_id=session_id,
            body={"sessionID": session_id, "destination": {"directory": utf8(directory)}},
        )

    async def delete_session(self, session_id: str) -> None:
        """Delete.  A running one must be aborted first, else it stays busy for ever."""
        await self._session("DELETE", session_id)

    async def fork(self, session_id: str, message_id: str | None = None) -> SessionRecord:
        """A copy of the messages before ``message_id`` (all without it).  Session rules are not copied."""
        body = {"messageID": message_id} if message_id else {}
        return SessionRecord.from_json(await self._session("POST", session_id, "/fork", body=body))

    async def message(self, session_id: str, message_id: str) -> dict[str, Any]:
        """``{"info", "parts"}`` of one message."""
        return await self._object(
            _session_path(session_id, f"/message/{_part(message_id)}"), session_id=session_id
        )

    async def messages(self, session_id: str, limit: int | None = None, before: str | None = None) -> Page:
        """The newest ``limit`` messages (``None`` or 0 = all), oldest first.

        ``before``: the page's ``next``, or the id of the message that the page is to end before.  Raises
        ``InvalidRequest`` when it is neither.
        """
        query = {"limit": str(limit)} if limit else {}
        if before:
            query = {"limit": str(limit or 100), "before": await self._cursor(session_id, before)}
        path = _session_path(session_id, "/message")
        try:
            response = await self._http.exchange("GET", path, query=query, session_id=session_id)
        except errors.OpenCodeError as error:
            if before and error.details.get("status") == 400:
                raise errors.InvalidRequest(
                    "`before` is not a place in this session.", details={"before": before}
                ) from error
            raise
        body = self._http.json(response, f"GET {path}")
        messages = [
            {**item, "info": foreign.an_object(item.get("info")), "parts": foreign.objects(item.get("parts"))}
            for item in self._http.a_list(f"GET {path}", body)
        ]
        return Page(messages, response.headers.get("x-next-cursor") or None)

    async def _cursor(self, session_id: str, before: str) -> str:
        """OpenCode pages by id *and* time of a message: a bare id has its time looked up."""
        if not before.startswith("msg"):
            return before
        try:
            info = (await self.message(session_id, before)).get("info") or {}
            cursor = {"id": info["id"], "time": info["time"]["created"]}
        except (errors.NoSuchSession, errors.OpenCodeError, KeyError, TypeError) as error:
            raise errors.InvalidRequest(
                "`before` is not a message of this session.", details={"before": before}
            ) from error
        return base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode().rstrip("=")

    async def todos(self, session_id: str) -> list[dict[str, Any]]:
        return await self._list(_session_path(session_id, "/todo"), session_id=session_id)

    # --- work --------------------------------------------------------------------------------

    async def prompt(
        self,
        session_id: str,
        text: str,
        files: Sequence[str] = (),
        agent: str | None = None,
        model: str | None = None,
    ) -> None:
        """Send a prompt and return at once; behind a running turn it is queued.

        ``files`` are absolute paths.  OpenCode takes an unknown agent or model, or a file that is not there,
        and says so by a ``session.error`` event only; an unknown model then stays the session's.
        """
        await self._session("POST", session_id, "/prompt_async", body=_prompt(text, files, agent, model))

    async def message_no_reply(self, session_id: str, text: str) -> str:
        """Put a message into a session without any answer; returns its id."""
        body = {**_prompt(text), "noReply": True}
        answer = await self._session("POST", session_id, "/message", body=body)
        info = answer.get("info") if isinstance(answer, dict) else None
        if not isinstance(info, dict) or not isinstance(info.get("id"), str):
            raise self._http.odd(f"POST /session/{session_id}/message", answer)
        return info["id"]

    async def shell(self, session_id: str, command: str, agent: str = "build") -> None:
        """Run the user's own shell command (no permission rule looks at it); returns when it ended.

        Raises ``SessionBusy``.
        """
        await self._session(
            "POST", session_id, "/shell", body={"agent": agent, "command": command}, timeout=TURN_TIMEOUT
        )

    async def command(self, session_id: str, name: str, arguments: str = "") -> None:
        """Run a slash command; returns when its turn is over.  Raises ``NotFound`` for an unknown one."""
        try:
            await self._session(
                "POST",
                session_id,
                "/command",
                body={"command": name, "arguments": arguments},
                timeout=TURN_TIMEOUT,
            )
        except errors.OpenCodeError as error:
            # An unknown command is a bare 500.
            session = await self.session(session_id)
            known = {foreign.text(item.get("name")) for item in await self.commands(session.directory)}
            if name in known:
                raise
            raise errors.NotFound("There is no such command.", details={"name": name}) from error

    async def summarize(self, session_id: str, model: str) -> None:
        """Compact a session with ``model`` (``provider/model``); returns when it is done."""
        await self._session("POST", session_id, "/summarize", body=_model(model), timeout=TURN_TIMEOUT)

    async def revert(self, session_id: str, message_id: str) -> None:
        """Take back a message and the file changes since."""
        await self._session("POST", session_id, "/revert", body={"messageID": message_id})

    async def abort(self, session_id: str) -> None:
        await self._session("POST", session_id, "/abort")

    # --- asks and status: OpenCode answers these for one directory ------------------------------

    async def statuses(self, directory: str) -> dict[str, dict[str, Any]]:
        """``{session id: {"type": "busy"|"retry", …}}`` of the sessions of a directory that are not idle."""
        return await self._object("/session/status", directory=directory)

    async def permissions(self, directory: str) -> list[dict[str, Any]]:
        """Pending permission asks of a directory."""
        return await self._list("/permission", directory=directory)

    async def questions(self, directory: str) -> list[dict[str, Any]]:
        """Pending questions of a directory."""
        return await self._list("/question", directory=directory)

    async def reply_permission(
        self, session_id: str, ask_id: str, directory: str, reply: str, message: str | None = None
    ) -> None:
        """Answer ``once``, ``always`` or ``reject``.  Raises ``NotFound`` when it was answered elsewhere.

        A plain ``reject`` ends the turn; with a message the agent reads it and goes on.
        """
        if message is None:
            # This route finds the ask by its session, wherever that works now.
            await self._http.call(
                "POST",
                f"{_session_path(session_id)}/permissions/{_part(ask_id)}",
                body={"response": reply},
                ask_id=ask_id,
            )
        else:
            await self._http.call(
                "POST",
                f"/permission/{_part(ask_id)}/reply",
                directory=directory,
                body={"reply": reply, "message": message},
                ask_id=ask_id,
            )

    async def reply_question(self, ask_id: str, directory: str, answers: Sequence[Sequence[str]]) -> None:
        """Answer with labels, one list per question.  Raises ``NotFound`` when it was answered elsewhere."""
        await self._http.call(
            "POST",
            f"/question/{_part(ask_id)}/reply",
            directory=directory,
            body={"answers": [list(labels) for labels in answers]},
            ask_id=ask_id,
        )

    async def reject_question(self, ask_id: str, directory: str) -> None:
        await self._http.call("POST", f"/question/{_part(ask_id)}/reject", directory=directory, ask_id=ask_id)

    def events(self, silence: float = 30.0) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The bytes of ``/global/event``: server-sent events of every directory.

        Raises :class:`Unsure` when the connection breaks or nothing comes for ``silence`` seconds (OpenCode
        sends a heartbeat every 10).
        """
        return self._http.stream("/global/event", silence)

    async def _session(
        self, method: str, session_id: str, rest: str = "", body: Any = None, timeout: float | None = None
    ) -> Any:
        return await self._http.call(
            method, _session_path(session_id, rest), body=body, timeout=timeout, session_id=session_id
        )

    async def _object(self, path: str, **options: Any) -> dict[str, Any]:
        return self._http.an_object(f"GET {path}", await self._http.call("GET", path, **options))

    async def _list(self, path: str, **options: Any) -> list[dict[str, Any]]:
        return self._http.a_list(f"GET {path}", await self._http.call("GET", path, **options))


@asynccontextmanager
async def closed_on_failure(client: OpenCodeClient) -> AsyncIterator[OpenCodeClient]:
    """A client that nobody gets to close when what is done here fails or is cancelled."""
    try:
        yield client
    except BaseException:
        await client.aclose()
        raise


def _part(identity: str) -> str:
    """``identity`` as one part of a path; what is not UTF-8 becomes one that nothing has."""
    return quote(identity, safe="", errors="replace")


def _session_path(session_id: str, rest: str = "") -> str:
    if not session_id.startswith("ses"):  # OpenCode answers 400 to these
        raise errors.NoSuchSession(details={"id": session_id})
    return f"/session/{_part(session_id)}{rest}"


def _model(name: str) -> dict[str, str]:
    provider, _, model = name.partition("/")
    if not provider or not model:
        raise errors.InvalidRequest("A model is named `provider/model`.", details={"model": name})
    return {"providerID": provider, "modelID": model}


def _prompt(text: str, files: Sequence[str] = (), agent: str | None = None, model: str | None = None) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for path in files:
        guess = mimetypes.guess_type(path)[0] or ""
        mime = guess if guess.startswith("image/") or guess == "application/pdf" else "text/plain"
        parts.append(
            {
                "type": "file",
                "mime": mime,
                "filename": PurePosixPath(path).name,
                "url": "file://" + quote(utf8(path)),
            }
        )
    body: dict[str, Any] = {"parts": parts}
    if agent:
        body["agent"] = agent
    if model:
        body["model"] = _model(model)
    return body
