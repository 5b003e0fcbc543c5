"""Takes secrets out of text that goes to a log."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAMED = re.compile(
    r"""(?ix)
    ( [\w-]* (?: token | passw(?:or)?d | secret | api[_-]?key | authorization | cookie ) [\w-]* ["']?
      \s* [=:] \s* )
    (?: "[^"]*" | '[^']*' | (?: (?: basic | bearer | token ) \s+ )? [^\s,;&)}\]"']+ )
    """
)
_SCHEME = re.compile(r"(?i)\b(basic|bearer|token)\s+[\w+/=.~-]{8,}")
_IN_URL = re.compile(r"(?<=://)[^/\s@]+@")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` without the given ``secrets`` and without what looks like a credential."""
    for secret in secrets:
        if len(secret) > 3:
            text = text.replace(secret, "[secret]")
    text = _IN_URL.sub("[secret]@", text)
    text = _NAMED.sub(r"\1[secret]", text)
    return _SCHEME.sub(r"\1 [secret]", text)
