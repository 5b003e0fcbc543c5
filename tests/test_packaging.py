"""What is installed: exactly the dependencies that are used, and a wheel with all the parts and no more."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ocman_jupyter

ROOT = Path(__file__).resolve().parents[1]

DISTRIBUTIONS = {
    "IPython": "ipython",
    "filelock": "filelock",
    "httpx": "httpx",
    "httpx_sse": "httpx-sse",
    "inotify_simple": "inotify-simple",
    "ipywidgets": "ipywidgets",
    "jupyter_core": "jupyter_core",
    "jupyter_server": "jupyter_server",
    "psutil": "psutil",
    "pydantic": "pydantic",
    "json5": "json5",
    "tornado": "tornado",
    "traitlets": "traitlets",
    "websocket": "websocket-client",
}
"""Distribution by the module that is imported."""

BROUGHT = {"pydantic_core": "pydantic", "yaml": None, "nbdime": None}
"""Modules that come with another dependency (or, None, that only a developer's script needs, or that are used
where they happen to be installed)."""


def project() -> str:
    return (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def listed(key: str) -> set[str]:
    """Names in a list of requirements in pyproject.toml (Python 3.10 has no TOML parser)."""
    found = re.search(rf"^{key} = \[\n(.*?)^\]", project(), re.S | re.M)
    assert found
    return {re.split(r"[<>=\[;]", one)[0] for one in re.findall(r'"([^"]+)"', found.group(1))}


def imported() -> set[str]:
    names = set()
    for path in (ROOT / "ocman_jupyter").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"ocman_jupyter"}


def test_dependencies_are_what_is_imported():
    used = {DISTRIBUTIONS.get(name, BROUGHT.get(name, name)) for name in imported()} - {None}
    assert used == listed("dependencies")


def test_the_version_is_one():
    assert 'dynamic = ["version"]' in project()
    package = json.loads((ROOT / "labextension" / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == ocman_jupyter.__version__


def test_jupyter_is_told_to_load_the_extension():
    told = json.loads(
        (ROOT / "jupyter-config" / "server-config" / "ocman_jupyter.json").read_text(encoding="utf-8")
    )
    assert told == {"ServerApp": {"jpserver_extensions": {"ocman_jupyter": True}}}
    (point,) = ocman_jupyter._jupyter_server_extension_points()
    assert (point["module"], point["app"].name) == ("ocman_jupyter", "ocman_jupyter")
    (path,) = ocman_jupyter._jupyter_labextension_paths()
    assert path == {"src": "labextension", "dest": "ocman-jupyter"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel of what is here, with the front end that was built."""
    if not (ROOT / "ocman_jupyter" / "labextension" / "static" / "style.js").exists():
        pytest.skip("the front end is not built: pip install -e . builds it")
    pytest.importorskip("hatchling")
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    skipped = shutil.ignore_patterns("node_modules", ".git", "__pycache__", "lib", "test-results", ".*_cache")
    shutil.copytree(ROOT, source, ignore=skipped, symlinks=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (built,) = place.glob("*.whl")
    return zipfile.ZipFile(built)


@pytest.mark.slow
def test_one_wheel_holds_all_the_parts(wheel: zipfile.ZipFile):
    names = set(wheel.namelist())
    data = f"ocman_jupyter-{ocman_jupyter.__version__}.data/data"
    for name in (
        "ocman_jupyter/server/openapi.yaml",
        "ocman_jupyter/server/schemas/event-v1.yaml",
        f"{data}/etc/jupyter/jupyter_server_config.d/ocman_jupyter.json",
        f"{data}/share/jupyter/labextensions/ocman-jupyter/package.json",
        f"{data}/share/jupyter/labextensions/ocman-jupyter/install.json",
    ):
        assert name in names
    (entry,) = [name for name in names if name.endswith("entry_points.txt")]
    assert "ocman-jupyter = ocman_jupyter.cli:main" in wheel.read(entry).decode()
    assert [name for name in names if name.endswith("LICENSE")]


@pytest.mark.slow
def test_the_wheel_holds_no_maps_tests_or_development_bundle(wheel: zipfile.ZipFile):
    names = wheel.namelist()
    assert [name for name in names if name.endswith(".map")] == []
    assert [
        name for name in names if "node_modules" in name or name.startswith(("tests/", "labextension/"))
    ] == []
    scripts = [name for name in names if name.endswith(".js")]
    assert scripts
    for name in scripts:
        assert not re.search(rb"//# sourceMappingURL=\S+\.map\s*$", wheel.read(name)), name
