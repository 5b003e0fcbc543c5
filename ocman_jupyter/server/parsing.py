"""From the bytes of a request to validated records; a wrong one is an `InvalidRequest` naming the field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from ..errors import InvalidRequest
from ..hosts.host import AbsolutePath

Model = TypeVar("Model", bound=BaseModel)

JUPYTERS_OWN = frozenset({"token", "_xsrf", "no_track_activity"})
"""Query parameters that Jupyter reads on every route."""

UNKNOWN = "unknown field"

CACHE_BUSTER = re.compile(r"[0-9]{10,20}")
"""JupyterLab appends ``?<milliseconds>`` to every request that must not be cached."""


class RequestTooLarge(InvalidRequest):
    status = 413
    default_message = "The request body is too large."


# --- queries ---------------------------------------------------------------------------------


def _boolean(value: str) -> bool | str:
    return {"true": True, "false": False}.get(value, value)


def _integer(value: str) -> int | str:
    return int(value) if re.fullmatch(r"[0-9]{1,9}", value) else value


QueryBool = Annotated[bool, BeforeValidator(_boolean)]
QueryInt = Annotated[int, BeforeValidator(_integer)]


class Query(BaseModel):
    """The query of a request: unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class HostQuery(Query):
    host: str | None = Field(default=None, max_length=200)


class DirectoryQuery(HostQuery):
    directory: AbsolutePath


class WorktreesQuery(DirectoryQuery):
    changes: QueryBool = True


class RemovalQuery(HostQuery):
    path: AbsolutePath
    delete_branch: QueryBool = False


class DiffQuery(HostQuery):
    path: AbsolutePath
    against: str = Field(default="base", min_length=1, max_length=4096)


class SessionsQuery(HostQuery):
    directory: AbsolutePath | None = None
    project: str | None = Field(default=None, max_length=1000)


class MessagesQuery(HostQuery):
    limit: QueryInt = Field(default=100, ge=1, le=1000)
    before: str | None = Field(default=None, min_length=1, max_length=200)


class FilesQuery(HostQuery):
    query: str = Field(default="", max_length=200)
    limit: QueryInt = Field(default=50, ge=1, le=200)


def parse_query(model: type[Model], arguments: Mapping[str, Sequence[bytes]]) -> Model:
    """``arguments`` (undecoded values by name) as ``model``.  Raises `InvalidRequest`."""
    values: dict[str, str] = {}
    for name, given in arguments.items():
        if name in JUPYTERS_OWN or (CACHE_BUSTER.fullmatch(name) and not any(given)):
            continue
        if len(given) > 1:
            raise _invalid(name, "is given more than once")
        try:
            values[name] = given[0].decode("utf-8")
        except UnicodeDecodeError:
            raise _invalid(name, "is not UTF-8") from None
    return _validated(model, values)


# --- bodies ----------------------------------------------------------------------------------


def parse_body(model: type[Model], body: bytes) -> Model:
    """The JSON object in ``body`` as ``model``; no body is an empty object.  Raises `InvalidRequest`."""
    try:
        values = from_json(body, allow_inf_nan=False) if body.strip() else {}
    except ValueError as error:
        raise InvalidRequest(f"The body is not valid JSON: {error}.") from None
    if not isinstance(values, dict):
        raise InvalidRequest("The body must be a JSON object.")
    return _validated(model, values)


def parse_message(model: type[Model], message: str | bytes) -> Model:
    """A text message of a WebSocket as ``model``.  Raises `InvalidRequest`."""
    if isinstance(message, bytes):
        raise InvalidRequest("Messages are JSON text, not binary.")
    return parse_body(model, message.encode("utf-8", "surrogatepass"))


def _validated(model: type[Model], values: dict[str, Any]) -> Model:
    for field, text in _texts(values):
        if "\x00" in text:
            raise _invalid(field, "holds a NUL character")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        found = [
            {"field": ".".join(map(str, one["loc"]))[:200], "message": _message(one["type"], one["msg"])}
            for one in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        found.sort(key=lambda one: one["message"] != UNKNOWN)
        raise InvalidRequest(
            f"{found[0]['field'] or 'The request'}: {found[0]['message']}.",
            details={"field": found[0]["field"], "errors": found[:20]},
        ) from None


def _message(kind: str, message: str) -> str:
    return UNKNOWN if kind == "extra_forbidden" else message[:1].lower() + message[1:]


def _invalid(field: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"{field!r} {problem}.", details={"field": field})


def _texts(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Every text in ``values`` (names too) with the dotted name of where it is."""
    texts: list[tuple[str, str]] = []
    waiting: list[tuple[str, Any]] = [("", values)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, str):
            texts.append((place, value))
        elif isinstance(value, dict):
            texts.extend((name, name) for name in value)
            waiting.extend((f"{place}.{name}" if place else name, item) for name, item in value.items())
        elif isinstance(value, list):
            waiting.extend((f"{place}.{number}", item) for number, item in enumerate(value))
    return texts
