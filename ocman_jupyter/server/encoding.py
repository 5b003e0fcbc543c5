"""Records as JSON bytes."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_json


def encode(value: Any) -> bytes:
    """``value`` (a record, or JSON-ready data that may hold records) as JSON."""
    try:
        return to_json(value, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeEncodeError):
        # A path whose bytes are not UTF-8: its lone surrogates travel escaped.
        return json.dumps(value, default=lambda record: record.model_dump()).encode()
