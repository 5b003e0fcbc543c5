"""What every route has in common: login, authorization, parsing, answers and the one error table."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from pydantic import BaseModel
from tornado.web import HTTPError, authenticated

from ..errors import InvalidRequest, NotFound, OcmanError, Unauthorized
from ..hosts.host import Progress, Request
from ..hosts.router import Router
from .backend import Backend
from .encoding import encode
from .parsing import HostQuery, Query, RequestTooLarge, parse_body, parse_query
from .redaction import redact

RESOURCE = "ocman"
"""What the server's authorizer is asked about."""

Action = Literal["read", "write", "execute"]


@dataclass(frozen=True)
class Operation:
    """One verb of one route, as it is served and as openapi.yaml states it."""

    summary: str
    action: Action
    answers: Mapping[int, Any]
    """Type of the answer by status, the usual one first; ``None`` = not JSON."""
    query: type[Query] = Query
    body: type[BaseModel] | None = None
    errors: tuple[type[OcmanError], ...] = field(default=())


def operation(
    action: Action,
    answers: Mapping[int, Any],
    *,
    query: type[Query] = Query,
    body: type[BaseModel] | None = None,
    errors: tuple[type[OcmanError], ...] = (),
) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., Awaitable[None]]]:
    """Make a method one verb of a route.

    The method is called with the parts of the path, then the parsed ``query`` where it has fields, then the
    parsed ``body`` where there is one; what it returns is the answer.  Its docstring is the summary.
    """

    def decorate(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[None]]:
        @authenticated
        @authorized(action=action, resource=RESOURCE)
        @wraps(method)
        async def verb(self: OcmanHandler, *path: str) -> None:
            try:
                if len(self.request.body) > self.backend.settings.max_body_bytes:
                    raise RequestTooLarge(
                        details={
                            "bytes": len(self.request.body),
                            "limit": self.backend.settings.max_body_bytes,
                        }
                    )
                given: list[BaseModel] = []
                asked = parse_query(query, self.request.query_arguments)
                if query.model_fields:
                    given.append(asked)
                if body is not None:
                    given.append(parse_body(body, self.request.body))
                answer = await method(self, *path, *given)
            except OcmanError as error:
                self.answer_error(error)
            except HTTPError:
                raise
            except Exception as error:
                self.log_fault(error)
                self.answer_error(OcmanError(hint="The Jupyter server's log says more."))
            else:
                if not self._finished:
                    self.finish(encode(answer))

        verb.operation = Operation(  # type: ignore[attr-defined]
            summary=(method.__doc__ or method.__name__).strip().splitlines()[0],
            action=action,
            answers=answers,
            query=query,
            body=body,
            errors=errors,
        )
        return verb

    return decorate


class TypedErrors:
    """Mixin: errors of Jupyter and tornado in the shape of ours."""

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        cause = (kwargs.get("exc_info") or (None, None))[1]
        said = cause.log_message if isinstance(cause, HTTPError) else None
        if status_code in (401, 403):
            error: OcmanError = Unauthorized(
                None if said is None else f"The Jupyter server refused the request: {said}"
            )
        elif status_code == 405:
            error = NotFound(f"This address does not know {self.request.method}.")  # type: ignore[attr-defined]
        elif status_code == 404:
            error = NotFound()
        elif status_code < 500:
            error = InvalidRequest(said)
        else:
            error = OcmanError()
        self.answer_error(error, status_code)

    def answer_error(self, error: OcmanError, status: int | None = None) -> None:
        """End the request with ``error``."""
        self.set_status(status or error.status)  # type: ignore[attr-defined]
        self.set_header("Content-Type", "application/json")  # type: ignore[attr-defined]
        self.finish(encode(error.to_json()))  # type: ignore[attr-defined]

    def log_fault(self, error: BaseException) -> None:
        """A fault of ours goes to the log, without secrets."""
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        token = str(self.identity_provider.token or "")  # type: ignore[attr-defined]
        self.log.error(  # type: ignore[attr-defined]
            "ocman: %s %s failed\n%s",
            self.request.method,
            self.request.path,
            redact(text, [token]),  # type: ignore[attr-defined]
        )

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        if value is not None and not isinstance(value, HTTPError):
            self.log_fault(value)

    def update_api_activity(self) -> None:
        with contextlib.suppress(HTTPError):  # a query that is not UTF-8; the request is answered already
            super().update_api_activity()  # type: ignore[misc]


class OcmanHandler(TypedErrors, APIHandler):
    """Base of the REST routes."""

    auth_resource = RESOURCE

    @property
    def backend(self) -> Backend:
        return self.settings["ocman_backend"]

    async def router(self) -> Router:
        return await self.backend.router()

    def progress(self, host: str, directory: str, request_id: str | None = None) -> Progress:
        """Sentences of a long operation, sent to every page as ``progress`` events."""
        return self.backend.hub.progress(host, directory, request_id)


class MissingHandler(OcmanHandler):
    """Any other address below ``api/ocman``."""

    async def prepare(self) -> None:
        await super().prepare()
        if self.request.method == "OPTIONS":
            return
        if not self.current_user:
            raise HTTPError(403)
        self.answer_error(NotFound(f"There is no route {self.request.path!r}."))


def host_of(query: HostQuery, body: Request) -> str | None:
    """The host that a DELETE names, in query or body.  Raises `InvalidRequest` when they differ."""
    if query.host is not None and body.host is not None and query.host != body.host:
        raise InvalidRequest(
            "'host' is not the same in the query and in the body.", details={"field": "host"}
        )
    return query.host if body.host is None else body.host
