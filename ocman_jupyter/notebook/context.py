"""What a notebook adds under a prompt: a description of variables, the last traceback, and expanded names."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidRequest, OcmanError
from .text import clean, one_line

COLUMNS = 50
DATA_CHARACTERS = 4000
TRACEBACK_CHARACTERS = 8000


def expand(text: str, names: Mapping[str, Any]) -> str:
    """``{name}`` and ``$name`` replaced as IPython does it: all of them, or, when one cannot be, none."""
    from IPython.utils.text import DollarFormatter

    try:
        return str(DollarFormatter().vformat(text, args=[], kwargs=dict(names)))
    except Exception:  # IPython's own rule, and a user's expression may raise anything
        return text


def describe(name: str, names: Mapping[str, Any], with_data: bool = False) -> str:
    """What the variable ``name`` is: type, shape, columns, dtypes; never its data unless ``with_data``.

    Raises ``InvalidRequest`` when there is no such variable.
    """
    if name not in names:
        raise InvalidRequest(f'There is no variable "{one_line(name, 40)}" in this notebook.')
    value = names[name]
    kind = type(value)
    lines = [f"`{name}`: {kind.__module__}.{kind.__qualname__}".replace("builtins.", "")]
    shape = _attribute(value, "shape")
    if isinstance(shape, tuple):
        lines.append(f"  shape: {tuple(shape)}")
    elif isinstance(value, (str, bytes, Sequence, Mapping, set, frozenset)):
        lines.append(f"  length: {len(value)}")
    columns, dtypes = _attribute(value, "columns"), _attribute(value, "dtypes")
    if columns is not None and dtypes is not None:
        lines += _columns(columns, dtypes)
    elif (dtype := _attribute(value, "dtype")) is not None:
        lines.append(f"  dtype: {one_line(dtype, 80)}")
    if callable(value) and (signature := _signature(value)):
        lines.append(f"  signature: {name}{signature}")
    if with_data:
        lines += ["  data:", *("    " + line for line in _data(value).splitlines())]
    return "\n".join(lines)


def last_error(remembered: str | None) -> str:
    """The last traceback of the notebook.  Raises ``InvalidRequest`` when there is none."""
    import sys

    text = remembered
    if text is None:
        error = getattr(sys, "last_value", None)
        text = format_error(error) if error is not None else None
    if text is None:
        raise InvalidRequest("No cell of this notebook has failed yet.", hint="Leave --with-error out.")
    return text


def format_error(error: BaseException) -> str | None:
    """A traceback as text, its end when it is long; ``None`` for errors that are not the notebook's own."""
    if isinstance(error, (OcmanError, KeyboardInterrupt, SystemExit)):
        return None
    text = clean("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    # The frames of IPython itself, above the user's cell, say nothing.
    text = re.sub(
        r'  File "[^"]*/IPython/core/interactiveshell\.py".*?\n(?=  File|\S)', "", text, flags=re.DOTALL
    )
    return text if len(text) <= TRACEBACK_CHARACTERS else "…" + text[-TRACEBACK_CHARACTERS:]


def compose(prompt: str, descriptions: Sequence[str], error: str | None) -> str:
    """The prompt with what was asked to be under it."""
    parts = [prompt]
    if descriptions:
        parts.append("Variables in the notebook:\n" + "\n".join(descriptions))
    if error:
        parts.append(f"The last error in the notebook:\n```\n{error.rstrip()}\n```")
    return "\n\n".join(parts)


def _attribute(value: Any, name: str) -> Any:
    try:
        return None if isinstance(value, type) else getattr(value, name, None)
    except Exception:  # a property of a foreign object may do anything
        return None


def _columns(columns: Any, dtypes: Any) -> list[str]:
    try:
        names = list(columns)
        kinds = dtypes if isinstance(dtypes, Mapping) else dict(zip(names, list(dtypes), strict=False))
        lines = [f"  {one_line(column, 60)}: {one_line(kinds[column], 40)}" for column in names[:COLUMNS]]
    except Exception:
        return []
    more = [f"  … and {len(names) - COLUMNS} more columns"] if len(names) > COLUMNS else []
    return [f"  columns ({len(names)}):", *("  " + line for line in lines + more)]


def _signature(value: Any) -> str:
    import inspect

    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""


def _data(value: Any) -> str:
    try:
        text = clean(value if isinstance(value, str) else repr(value))
    except Exception as error:
        return f"(its repr failed: {type(error).__name__})"
    return text if len(text) <= DATA_CHARACTERS else text[:DATA_CHARACTERS] + " …"
