"""One REST answer as an object, and one that is a list: what all views are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .text import clean, escape, html_table, table

if TYPE_CHECKING:
    from .verbs import Verbs

Json = dict[str, Any]


class Answer:
    """One REST answer.  Fields are attributes; ``data`` is the whole of it."""

    def __init__(self, data: Json, verbs: Verbs | None = None) -> None:
        self.data = data
        self._verbs = verbs

    _how = property(lambda self: "%ocman" if self._verbs is None else self._verbs.how)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name != "data" and name in self.data:
            return self.data[name]
        raise AttributeError(f"{type(self).__name__} has no {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.data})

    def lines(self) -> list[str]:
        """What a person reads, uncleaned."""
        return [f"{key}: {value}" for key, value in self.data.items()]

    def __repr__(self) -> str:
        return clean("\n".join(self.lines()))

    def _repr_html_(self) -> str:
        return "<div>" + "<br>".join(map(escape, self.lines())) + "</div>"


class Rows(Answer):
    """An answer that is a list; ``len``, iteration and ``[index]`` give its objects."""

    key = ""
    head: tuple[str, ...] = ()
    empty = "Nothing."

    def item(self, data: Json) -> Any:
        return data

    def row(self, data: Json) -> tuple[object, ...]:
        return tuple(data.values())

    def notes(self) -> list[str]:
        """Lines under the table."""
        return []

    def _table(self) -> tuple[list[str], list[list[object]]]:
        """Head and rows, without the columns that say nothing."""
        rows = [self.row(data) for data in self.data[self.key]]
        told = [i for i in range(len(self.head)) if any(row[i] not in (None, "") for row in rows)]
        return [self.head[i] for i in told], [[row[i] for i in told] for row in rows]

    def __len__(self) -> int:
        return len(self.data[self.key])

    def __iter__(self) -> Iterator[Any]:
        return (self.item(data) for data in self.data[self.key])

    def __getitem__(self, index: int) -> Any:
        return self.item(self.data[self.key][index])

    def __repr__(self) -> str:
        head, rows = self._table()
        body = table(head, rows) if rows else self.empty.replace("%ocman", self._how)
        return "\n".join([body, *map(clean, self.notes())])

    def _repr_html_(self) -> str:
        head, rows = self._table()
        nothing = escape(self.empty.replace("%ocman", self._how))
        body = html_table(head, rows) if rows else f"<div>{nothing}</div>"
        return body + "".join(f"<div>{escape(note)}</div>" for note in self.notes())
