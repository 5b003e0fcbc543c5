"""The floors of docs/architecture: who may import whom, and who alone may do what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "ocman_jupyter"
ROOT = Path(__file__).resolve().parents[1] / PACKAGE

FLOORS = {
    "errors": 1,
    "settings": 1,
    "store": 1,
    "git": 2,
    "opencode": 2,
    "projects": 2,
    "hosts": 3,
    "notebook": 4,
    "agents": 4,
    "server": 5,
    "cli": 5,
    "demo": 5,
    "setup": 5,
    "__main__": 5,
}

BESIDE = {("store", "errors"), ("__main__", "cli"), ("cli", "setup"), ("cli", "demo"), ("demo", "setup")}
"""The state file has an error of its own; the shell command is made of the others on its floor."""

MODULES = sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py" or path.parent != ROOT)


def name_of(path: Path) -> str:
    """Dotted name of a module below the package: ``git.command``."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module: str) -> str:
    return module.split(".")[0]


def imports(path: Path) -> Iterator[str]:
    """Full names of all that a module imports, wherever the import stands, except for type checking only."""
    here = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: -node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from .. import errors` imports a module, `from ..errors import X` a name of one.
            yield from (f"{module}.{alias.name}" for alias in node.names)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Line and value of every string in a module that is not a docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs:
            yield node.lineno, node.value


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_only_from_floors_below(path: Path) -> None:
    part = part_of(name_of(path))
    assert part in FLOORS, f"{part} has no floor in FLOORS"
    for imported in imports(path):
        if not imported.startswith(f"{PACKAGE}."):
            continue
        other = part_of(imported.removeprefix(f"{PACKAGE}."))
        if other in (part, "__version__"):
            continue
        assert FLOORS.get(other, 99) < FLOORS[part] or (part, other) in BESIDE, (
            f"{name_of(path)} (floor {FLOORS[part]}) imports {imported} (floor {FLOORS.get(other)})"
        )


@pytest.mark.parametrize(
    "path", [path for path in MODULES if FLOORS.get(part_of(name_of(path)), 5) < 5], ids=name_of
)
def test_no_jupyter_server_below_the_faces(path: Path) -> None:
    below_notebook = FLOORS[part_of(name_of(path))] < 4
    for imported in imports(path):
        top = imported.split(".")[0]
        assert top not in ("jupyter_server", "tornado"), f"{name_of(path)} imports {imported}"
        if below_notebook:
            assert top not in ("IPython", "ipywidgets", "ipykernel"), f"{name_of(path)} imports {imported}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_one_module_starts_git(path: Path) -> None:
    if name_of(path) == "git.command":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.List) and node.elts:
            first = node.elts[0]
            argv = isinstance(first, ast.Constant) and first.value == "git"
            assert not argv, f"{name_of(path)}:{node.lineno} has a git argv of its own"
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            started = node.args[0].value
            called = ast.unparse(node.func)
            starts = called.endswith(("create_subprocess_exec", "create_subprocess_shell", "Popen", "system"))
            git = starts and re.match(r"git\b", str(started))
            assert not git, f"{name_of(path)}:{node.lineno} starts git"
    if part_of(name_of(path)) != "demo":
        assert not {one.split(".")[0] for one in imports(path)} & {"git", "pygit2", "dulwich"}


OPENCODE_PATHS = re.compile(
    r"/(global/(health|event|config)|session/status|experimental/|instance/dispose|permission/|question/)"
)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_one_module_knows_the_paths_of_opencode(path: Path) -> None:
    if name_of(path) == "opencode.client":
        return
    for line, text in texts(path):
        assert not OPENCODE_PATHS.search(text), f"{name_of(path)}:{line} knows {text!r}"


def test_the_package_itself_imports_nothing_heavy() -> None:
    """`import ocman_jupyter` must be quick: everything else is imported where it is used."""
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
            heavy = {"httpx", "pydantic", "psutil", "tornado", "jupyter_server", "IPython"}
            assert not names & heavy, f"line {node.lineno}"


def test_no_module_is_too_long_to_have_one_reason() -> None:
    long = {name_of(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: lines for name, lines in long.items() if lines > 500} == {}
