"""Several reads at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any


async def together(*reads: Awaitable[Any]) -> list[Any]:
    """All results; the first failure in the order of the arguments, after all have ended."""
    results = await asyncio.gather(*reads, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
