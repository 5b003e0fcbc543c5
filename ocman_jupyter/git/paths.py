"""Paths compared by their components, and shown to people."""

from __future__ import annotations

import os


def is_within(path: str, folder: str) -> bool:
    """Is the real path ``path`` the real folder ``folder`` or inside it?  By components, not by prefix."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def shown(path: str) -> str:
    """``path`` with bytes that are not UTF-8 written as escapes, so that JSON can hold it."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    return path
