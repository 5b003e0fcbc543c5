"""Paths compared by their components, shown to people, and what lies there measured."""

from __future__ import annotations

import os
import stat

_CHUNK = 1 << 20


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


def size_of(path: str) -> int | None:
    """Bytes of a file, or of all files in a folder; ``None`` when there is no file.  Raises ``OSError``."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(info.st_mode):
        return info.st_size
    total: int | None = None
    folders = [path]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    total = (total or 0) + entry.stat(follow_symlinks=False).st_size
    return total


def holds_bytes(info: os.stat_result) -> bool:
    """A file or a symbolic link; a socket or pipe holds nothing."""
    return stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)


def same_content(one: str, other: str) -> bool:
    """Do two regular files hold the same bytes?  Read anew each time, unlike ``filecmp``, which goes by times.

    Raises ``OSError``.
    """
    with open(one, "rb", buffering=0) as first, open(other, "rb", buffering=0) as second:
        while True:
            mine, theirs = first.read(_CHUNK), second.read(_CHUNK)
            if mine != theirs:
                return False
            if not mine:
                return True
