"""Reads the output of `git diff --raw --numstat --patch -z` as it comes, within limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_SECTION = b"diff --git "
_STARTS = (b"\n" + _SECTION, b"\n* Unmerged path ")
"""What a new file begins with.  A line of a hunk begins with a space, ``+``, ``-`` or ``\\``: it is never one."""
_OVERLAP = max(map(len, _STARTS))
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


@dataclass
class Change:
    """One file, as git names it: raw bytes."""

    letter: str
    """A, C, D, M, R, T, U or X, as in `git diff --raw`."""
    path: bytes
    old_path: bytes | None = None
    """Of a rename."""
    old_mode: str = "000000"
    new_mode: str = "000000"
    old_sha: str = ""
    new_sha: str = ""
    """All zeros where the file in the worktree is not the one that the index knows."""
    additions: int | None = None
    deletions: int | None = None
    binary: bool = False
    patch: bytes | None = None

    @property
    def is_module(self) -> bool:
        """Is it a submodule?"""
        return "160000" in (self.old_mode, self.new_mode)


class DiffReader:
    """Takes the bytes, keeps what is within the limits.

    Parameters
    ----------
    most:
        Files after which nothing more is read: with so many nobody wants the lines counted.
    per_file, in_all:
        Bytes of patches that are kept.
    """

    def __init__(self, most: int, per_file: int, in_all: int) -> None:
        self._most, self._per_file, self._left = most, per_file, in_all
        self.changes: dict[bytes, Change] = {}
        """By path."""
        self.overflow = False
        """There are more files than ``most``; none has lines counted or a patch."""
        self.cut = False
        """There are more patches than ``in_all``."""
        self._buffer = bytearray()
        self._fields = _Fields(self)
        self._by_header: dict[bytes, Change] | None = None
        self._section = bytearray()
        self._large = False

    def take(self, chunk: bytes) -> bool:
        """The next bytes; ``False`` when no more are wanted."""
        self._buffer += chunk
        if self._by_header is None:
            if not self._read_fields():
                return not self.overflow
            self._by_header = {_header(change): change for change in self.changes.values()}
            self._buffer[:0] = b"\n"  # the first section begins like the others
        self._read_patches()
        return not self.cut

    def end(self) -> None:
        """That was all."""
        if self._by_header is not None and not self.cut:
            self._keep(self._buffer)
            self._finish()

    # --- names and counts -----------------------------------------------------------------------

    def _read_fields(self) -> bool:
        """Whether the patches have begun."""
        fields = self._buffer.split(b"\0")
        rest = fields.pop()
        for number, field in enumerate(fields):
            if self._fields.take(bytes(field)):
                self._buffer = bytearray(b"\0".join([*fields[number + 1 :], rest]))
                return True
            if len(self.changes) > self._most:
                self.overflow = True
                return False
        self._buffer = rest
        return False

    # --- patches --------------------------------------------------------------------------------

    def _read_patches(self) -> None:
        while not self.cut:
            starts = [at for start in _STARTS if (at := self._buffer.find(start)) >= 0]
            if not starts:
                # A start may be in the middle of coming.
                keep = max(0, len(self._buffer) - _OVERLAP)
                self._keep(self._buffer[:keep])
                del self._buffer[:keep]
                return
            at = min(starts)
            self._keep(self._buffer[: at + 1])
            self._finish()
            del self._buffer[: at + 1]

    def _keep(self, more: bytes | bytearray) -> None:
        if self._large:
            return
        self._section += more
        if len(self._section) > self._per_file + 4096:  # room for the line that names it
            self._large = True
            del self._section[self._per_file + 4096 :]

    def _finish(self) -> None:
        """A section is complete: whose is it, and is there room for it?"""
        section, large = bytes(self._section), self._large or len(self._section) > self._per_file
        self._section, self._large = bytearray(), False
        header = section.partition(b"\n")[0]
        change = (self._by_header or {}).get(header)
        if change is None or change.binary:
            return
        if large:
            change.patch = None
            return
        if len(section) > self._left:
            self.cut = True
            return
        self._left -= len(section)
        # A file that became a link has two: it goes, and it comes.
        change.patch = (change.patch or b"") + section


class _Fields:
    """The part before the patches: raw records, then the counts, then an empty field."""

    def __init__(self, reader: DiffReader) -> None:
        self._changes = reader.changes
        self._waiting: list[bytes] = []
        self._wanted = 0

    def take(self, field: bytes) -> bool:
        """Whether this was the field that ends it."""
        if self._wanted:
            self._waiting.append(field)
            self._wanted -= 1
            if not self._wanted:
                self._complete(*self._waiting)
            return False
        if not field:
            return True
        self._waiting = [field]
        if field.startswith(b":"):
            self._wanted = 2 if field.rsplit(b" ", 1)[1][:1] in b"RC" else 1
        elif field.endswith(b"\t"):
            self._wanted = 2
        else:
            self._complete(field)
        return False

    def _complete(self, first: bytes, *names: bytes) -> None:
        if first.startswith(b":"):
            self._named(first, *names)
            return
        added, deleted, path = first.split(b"\t", 2)
        change = self._changes.get(names[-1] if names else path)
        if change is None:
            return
        if added == b"-":
            change.binary = True
        else:
            change.additions, change.deletions = int(added), int(deleted)

    def _named(self, record: bytes, *names: bytes) -> None:
        old_mode, new_mode, old_sha, new_sha, letter = record[1:].decode("ascii").split(" ")
        path = names[-1]
        known = self._changes.get(path)
        if known is not None and letter == "U":
            known.letter = "U"
            return
        self._changes[path] = Change(
            letter="U" if known is not None and known.letter == "U" else letter[0],
            path=path,
            old_path=names[0] if letter[0] == "R" else None,
            old_mode=old_mode,
            new_mode=new_mode,
            old_sha=old_sha,
            new_sha=new_sha,
        )


def _header(change: Change) -> bytes:
    """The line that a file's patch begins with, as git writes it with ``core.quotePath=false``."""
    old = change.path if change.old_path is None else change.old_path
    return _SECTION + _quoted(b"a/" + old) + b" " + _quoted(b"b/" + change.path)


def _quoted(path: bytes) -> bytes:
    if not any(byte < 0x20 or byte in (0x22, 0x5C, 0x7F) for byte in path):
        return path
    return b'"' + b"".join(_escaped(path)) + b'"'


def _escaped(path: bytes) -> Iterator[bytes]:
    for byte in path:
        if byte in _ESCAPES:
            yield b"\\" + _ESCAPES[byte].encode()
        elif byte < 0x20 or byte == 0x7F:
            yield b"\\%03o" % byte
        else:
            yield bytes((byte,))
