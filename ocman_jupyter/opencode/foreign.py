"""What others wrote: JSON of OpenCode, of a user's configuration or a damaged record, and addresses of servers.

A field of JSON is read as the type that it should have; what has another is as good as not there.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

MAX_DEPTH = 200
"""Levels of objects and arrays.  OpenCode's have some ten; pydantic writes no more than 255."""

LATEST = 253_402_300_799_000
"""Milliseconds since 1970 that can still be written as a date: the end of the year 9999."""

_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")


def parse(content: str | bytes, parser: Callable[[Any], Any] = json.loads) -> Any:
    """The value in ``content``.  Raises ``ValueError`` where there is none, or one that is nested too deeply."""
    try:
        value = parser(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _may_be_deep(content) and _is_deep(value):
        raise ValueError("nested too deeply")
    return value


def said(content: bytes) -> Any:
    """What OpenCode said, as text that can be written as UTF-8 again.  Raises as `parse` does."""
    text = content.decode("utf-8", "replace")
    value = parse(text)
    # Half of a pair comes only as an escape.
    return _mended(value) if "\\ud" in text or "\\uD" in text else value


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mended(one) for one in value]
    if isinstance(value, dict):
        return {_mended(key): _mended(one) for key, one in value.items()}
    return value


def text(value: Any) -> str | None:
    """A text that says something."""
    return value if isinstance(value, str) and value else None


def texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def an_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def number(value: Any) -> float | None:
    """A number that can be reckoned with and written as JSON."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) < 1e300 and math.isfinite(value) else None


def milliseconds(value: Any) -> int | None:
    """A moment since 1970 that can be written as a date."""
    found = number(value)
    return int(found) if found is not None and 0 <= found <= LATEST else None


def numbers(value: Any) -> dict[str, Any]:
    """The numbers of an object and of the objects in it."""
    return {
        key: numbers(one) if isinstance(one, dict) else one
        for key, one in an_object(value).items()
        if isinstance(one, dict) or number(one) is not None
    }


def _may_be_deep(content: str | bytes) -> bool:
    """Told without a look at the value: nearly all events are small."""
    if isinstance(content, str):
        return content.count("[") + content.count("{") > MAX_DEPTH
    return content.count(b"[") + content.count(b"{") > MAX_DEPTH


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [one for one in level if isinstance(one, (dict, list))]
        if not level:
            return False
        level = [child for one in level for child in (one.values() if isinstance(one, dict) else one)]
    return True


def server_url(text: str) -> str:
    """The address of a server, without a slash at its end, to which paths can be added.

    Raises ``ValueError`` for anything else, and for an address that holds a user's name or password.
    """
    if not re.fullmatch(r"[!-~]+", text):  # urlsplit leaves out line ends
        raise ValueError("not printable ASCII")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or parts.query or parts.fragment or "?" in text or "#" in text:
        raise ValueError("not http://host:port")
    if "@" in parts.netloc or parts.netloc.endswith(":") or parts.port == 0:
        raise ValueError("not http://host:port")
    host = parts.hostname or ""
    if "[" in parts.netloc:
        ipaddress.IPv6Address(host)
    if "%" in host or not ("[" in parts.netloc or _HOST.fullmatch(host)):
        raise ValueError("not the name or number of a host")
    return text.rstrip("/")
