"""What others wrote: JSON of OpenCode, of a user's configuration or a damaged record, and addresses of servers."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

MAX_DEPTH = 200
"""Levels of objects and arrays.  OpenCode's have some ten; pydantic writes no more than 255."""

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
