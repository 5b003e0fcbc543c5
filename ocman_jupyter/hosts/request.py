"""What every request body is held to: known fields, and text that can go on.

It goes on to a URL, a header, a process, the state file.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator
from pydantic_core import PydanticCustomError


class Request(BaseModel):
    """A request body: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    host: str | None = None
    """Absent: the router decides by directory; ``"local"`` or an id: exactly that host."""

    @field_validator("*", mode="before")
    @classmethod
    def _can_go_on(cls, value: Any) -> Any:
        found = fault(value)
        if found:
            raise PydanticCustomError("text", "{fault}", {"fault": found})
        return value


def fault(value: Any) -> str | None:
    """What is wrong with a text, or with one in a list; ``None`` for anything else."""
    if isinstance(value, (list, tuple)):
        return next((found for found in map(fault, value) if found), None)
    if not isinstance(value, str):
        return None
    if "\0" in value:
        return "holds a NUL character"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "is not UTF-8"
    return None
