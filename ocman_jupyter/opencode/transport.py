"""How a request to OpenCode is made: connections, deadlines, and what each failure means."""

from __future__ import annotations

import asyncio
import base64
import errno
import importlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from .. import errors
from .foreign import objects, said, server_url

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

MAX_TEXT = 2000
"""Characters of an unwelcome answer that are kept in the error."""
MAX_ANSWER = 128 * 2**20
"""Bytes of one answer: several times what a page of a thousand long messages takes."""
CONNECT_TIMEOUT = 5.0


class ConnectionRefused(errors.OpenCodeUnreachable):  # type: ignore[misc,valid-type]
    """Nothing listens there: the instance is dead."""


class Unsure(errors.OpenCodeUnreachable):  # type: ignore[misc,valid-type]
    """No answer in time, a reset, or a 5xx to a probe: it may well be alive, so nothing is done about it."""


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    content: bytes
    headers: Mapping[str, str]

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")


class Transport:
    """Requests to one server: pooled connections, basic auth, a deadline (seconds) for each.

    Raises ``InvalidRequest`` for an address, a name or a password that no request can be made of.
    """

    def __init__(self, url: str, password: str | None, username: str, timeout: float) -> None:
        try:
            self.url = server_url(url)
        except ValueError as error:
            raise errors.InvalidRequest(
                f"url: this is not the address of a server ({error}).",
                hint="An address looks like http://127.0.0.1:4096; a password is given beside it.",
                details={"field": "url"},
            ) from None
        self.timeout = timeout
        self._headers = {"accept": "application/json", "accept-encoding": "identity"}
        self._secrets: tuple[str, ...] = ()
        if password:
            token = base64.b64encode(_sendable(username, "username") + b":" + _sendable(password, "password")).decode()
            self._headers["authorization"] = f"Basic {token}"
            # As it is, as JSON writes it, and as it is sent; a short one may be a part of a longer one.
            written = {password, json.dumps(password)[1:-1], json.dumps(password, ensure_ascii=False)[1:-1], token}
            self._secrets = tuple(sorted(written, key=len, reverse=True))
        self._pool: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None
        self._closed = False

    async def aclose(self) -> None:
        """Close all connections for good; a later call finds nobody listening."""
        self._closed = True
        sessions, self._pool, self._fresh = (self._pool, self._fresh), None, None
        for session in sessions:
            if session is not None:
                await session.close()

    @asynccontextmanager
    async def stream(self, path: str, silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a stream.  Raises :class:`Unsure` when it breaks or is silent for ``silence`` s."""
        aiohttp = await _aiohttp()
        request = f"GET {path}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=silence)
        headers = {"accept": "text/event-stream"}
        try:
            async with self._session(fresh=True).get(
                self._address(path), headers=headers, timeout=timeout, allow_redirects=False
            ) as response:
                if response.status != 200:
                    raise self._failure(await _answer(response, request), request, probe=True)
                yield _chunks(response, request)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise _unreachable(error, request) from error

    def _address(self, path: str, query: Mapping[str, str] | None = None) -> URL:
        from yarl import URL

        # Encoded by us: nothing may be taken for a path's or a query's own syntax.
        asked = f"?{urlencode(query, errors='replace')}" if query else ""
        return URL(self.url + path + asked, encoded=True)

    def _session(self, fresh: bool = False) -> aiohttp.ClientSession:
        import aiohttp

        if self._closed:
            raise ConnectionRefused("This OpenCode is not talked to any more.", details={"url": self.url})
        session = self._fresh if fresh else self._pool
        if session is None:
            # OpenCode drops a connection that was idle for 10 s: let go of it well before.
            connector = (
                aiohttp.TCPConnector(limit=0, force_close=True)
                if fresh
                else aiohttp.TCPConnector(limit=0, keepalive_timeout=5.0)
            )
            # What is small when it is sent could be anything when it is unpacked.
            session = aiohttp.ClientSession(
                connector=connector, headers=self._headers, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
            if fresh:
                self._fresh = session
            else:
                self._pool = session
        return session

    async def call(self, method: str, path: str, **options: Any) -> Any:
        answer = await self.exchange(method, path, **options)
        return self.json(answer, f"{method} {path}")

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        directory: str | None = None,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        timeout: float | None = None,
        probe: bool = False,
        fresh: bool = False,
        session_id: str | None = None,
        ask_id: str | None = None,
    ) -> Answer:
        aiohttp = await _aiohttp()
        deadline = self.timeout if timeout is None else timeout
        headers = {}
        if directory is not None:
            headers["x-opencode-directory"] = quote(utf8(directory), safe="/")
        content: bytes | None = None
        if body is not None:
            # Lone surrogates cannot be encoded; escaped they are valid JSON.
            content = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        request = f"{method} {path}"
        limits = aiohttp.ClientTimeout(total=deadline, sock_connect=min(deadline, CONNECT_TIMEOUT))
        try:
            async with self._session(fresh).request(
                method,
                self._address(path, query),
                headers=headers,
                data=content,
                timeout=limits,
                allow_redirects=False,
            ) as response:
                answer = await _answer(response, request)
        except (asyncio.TimeoutError, TimeoutError):
            raise Unsure(
                "OpenCode did not answer in time; it was left alone.",
                details={"request": request, "seconds": deadline},
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(error, request) from error
        if not 200 <= answer.status < 300:
            raise self._failure(answer, request, probe, session_id, ask_id)
        return answer

    def _failure(
        self,
        answer: Answer,
        request: str,
        probe: bool = False,
        session_id: str | None = None,
        ask_id: str | None = None,
    ) -> errors.OcmanError:
        status = answer.status
        details = {"status": status, "text": self._told(answer.text), "request": request}
        if status == 401:
            return errors.OpenCodeNeedsPassword(details={"url": self.url})
        if status == 404 and ask_id:
            return errors.NotFound("This ask was answered already, or is gone.", details={"id": ask_id})
        if status == 404 and session_id:
            return errors.NoSuchSession(details={"id": session_id})
        if status == 409 and session_id:
            return errors.SessionBusy(details={"id": session_id})
        if probe and status >= 500:
            return Unsure("OpenCode answered with an error; it was left alone.", details=details)
        return errors.OpenCodeError(details=details)

    def json(self, answer: Answer, request: str) -> Any:
        if not answer.content:
            return None
        try:
            return said(answer.content)
        except ValueError:
            raise self.odd(request, answer.text) from None

    def an_object(self, request: str, body: Any) -> dict[str, Any]:
        if not isinstance(body, dict):
            raise self.odd(request, body)
        return body

    def a_list(self, request: str, body: Any) -> list[dict[str, Any]]:
        """Its items that are objects."""
        if not isinstance(body, list):
            raise self.odd(request, body)
        return objects(body)

    def odd(self, request: str, body: Any) -> errors.OcmanError:
        """The error of a 2xx that does not hold what it should."""
        text = body if isinstance(body, str) else json.dumps(body)
        return errors.OpenCodeError(
            "OpenCode's answer was empty or not understood.",
            details={"status": 200, "text": self._told(text), "request": request},
        )

    def _told(self, text: str) -> str:
        """What may be told of an answer: its beginning, and no secret."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text[:MAX_TEXT]


_loaded: list[ModuleType] = []


async def _aiohttp() -> ModuleType:
    """Loading it takes a tenth of a second, which is not the event loop's."""
    if not _loaded:
        # Also where another thread is loading it: this waits until all of it is there.
        _loaded.append(await asyncio.to_thread(importlib.import_module, "aiohttp"))
    return _loaded[0]


async def _chunks(response: aiohttp.ClientResponse, request: str) -> AsyncIterator[bytes]:
    import aiohttp

    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
        raise _unreachable(error, request) from error


def utf8(directory: str) -> str:
    """``directory``, if OpenCode can be told of it: its JSON is UTF-8."""
    try:
        directory.encode()
    except UnicodeEncodeError:
        raise errors.InvalidFolder(
            "OpenCode cannot work in a directory whose name is not UTF-8.",
            details={"path": directory.encode(errors="surrogateescape").decode(errors="replace")},
        ) from None
    if "\0" in directory:
        raise errors.InvalidFolder("A directory's name cannot hold a NUL.")
    return directory


def _sendable(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise errors.InvalidRequest(
            f"{field}: OpenCode's {field} is not UTF-8.",
            hint=f"Set OPENCODE_SERVER_{field.upper()} to other characters, for OpenCode too.",
            details={"field": field},
        ) from None


async def _answer(response: aiohttp.ClientResponse, request: str) -> Answer:
    """The whole answer.  Raises ``OpenCodeError`` when it is too large to be held."""
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_ANSWER:
            raise errors.OpenCodeError(
                f"OpenCode's answer to {request} is larger than {MAX_ANSWER // 2**20} MiB; it was not read.",
                details={"status": response.status, "request": request, "limit": MAX_ANSWER},
            )
    return Answer(response.status, b"".join(chunks), response.headers)


def _unreachable(error: Exception, request: str) -> errors.OcmanError:
    """The refusal or the doubt that a failed exchange means."""
    import aiohttp

    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
        return ConnectionRefused("No OpenCode listens there.", details={"request": request})
    return Unsure(
        "OpenCode did not answer; it was left alone.",
        details={"request": request, "reason": type(error).__name__},
    )
