"""What a notebook adds to a prompt."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from traitlets.config import Config

from ocman_jupyter.errors import InvalidRequest
from ocman_jupyter.notebook import context


class Frame:
    """As a data frame looks from outside."""

    shape = (3, 2)
    columns = ["price", "name"]
    dtypes = {"price": "float64", "name": "object"}

    def __repr__(self) -> str:
        return "SECRET DATA"


class Hostile:
    @property
    def shape(self) -> Any:
        raise RuntimeError("boom")

    def __repr__(self) -> str:
        raise RuntimeError("boom")


def test_a_frame_is_described_without_its_data() -> None:
    text = context.describe("df", {"df": Frame()})
    assert "shape: (3, 2)" in text and "price: float64" in text and "name: object" in text
    assert "SECRET" not in text


def test_data_comes_only_when_asked_for_and_is_bounded() -> None:
    assert "SECRET DATA" in context.describe("df", {"df": Frame()}, with_data=True)
    assert len(context.describe("x", {"x": "y" * 100_000}, with_data=True)) < 5000


def test_keys_and_items_are_data() -> None:
    text = context.describe("x", {"x": {"patient-1": 5}})
    assert text.splitlines() == ["`x`: dict", "  length: 1"]
    assert "7" not in context.describe("x", {"x": [7]})


def test_arrays_have_shape_and_dtype() -> None:
    text = context.describe("a", {"a": SimpleNamespace(shape=(2, 3), dtype="int64")})
    assert "shape: (2, 3)" in text and "dtype: int64" in text


def test_functions_have_a_signature() -> None:
    def load(path: str, rows: int = 3) -> None: ...

    assert "signature: load(path: 'str', rows: 'int' = 3)" in context.describe("load", {"load": load})


def test_objects_that_fail_are_described_all_the_same() -> None:
    assert "Hostile" in context.describe("h", {"h": Hostile()}, with_data=True)


def test_many_columns_are_counted() -> None:
    wide = SimpleNamespace(columns=[f"c{i}" for i in range(200)], dtypes=["int"] * 200, shape=(1, 200))
    text = context.describe("w", {"w": wide})
    assert "columns (200)" in text and "and 150 more" in text and len(text.splitlines()) < 60


def test_a_variable_that_is_not_there() -> None:
    with pytest.raises(InvalidRequest, match="no variable"):
        context.describe("nope", {})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{x} and $x", "5 and 5"),
        ("{x + 1}", "6"),
        ("{{x}}", "{x}"),
        ("$$x", "$x"),
        ("{missing} {x}", "{missing} {x}"),
        ('{"a": 1}', '{"a": 1}'),
        ("cost $5", "cost 5"),
    ],
)
def test_names_are_expanded_as_ipython_does_it(text: str, wanted: str) -> None:
    assert context.expand(text, {"x": 5}) == wanted
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    shell.user_ns["x"] = 5
    assert shell.var_expand(text) == wanted
    InteractiveShell.clear_instance()


def test_errors_are_text_without_colours_and_bounded() -> None:
    try:
        raise ValueError("\x1b[31mbad" + "x" * 20_000)
    except ValueError as error:
        text = context.format_error(error)
    assert text is not None and "\x1b" not in text and len(text) <= context.TRACEBACK_CHARACTERS + 1


def test_our_own_errors_are_not_the_notebooks() -> None:
    assert context.format_error(InvalidRequest()) is None
    assert context.format_error(KeyboardInterrupt()) is None
