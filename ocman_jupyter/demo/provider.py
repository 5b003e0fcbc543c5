"""Whether the user has a model of their own configured for OpenCode."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

KEYS = (
    "ANTHROPIC_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENCODE_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_AI_API_KEY",
    "XAI_API_KEY",
)
"""Variables with which OpenCode finds a provider by itself."""

# Also in JSON with comments; a model that is only commented out does no harm: OpenCode then says so.
_NAMES_A_MODEL = re.compile(r'"(?:model|provider)"\s*:')


def home(variable: str, fallback: str, environ: Mapping[str, str]) -> Path:
    """One of the XDG directories of the user."""
    return Path(environ.get(variable) or Path(environ.get("HOME") or "~").expanduser() / fallback)


def credentials_file(environ: Mapping[str, str]) -> Path:
    """Where OpenCode keeps the keys of providers that the user logged in to."""
    return home("XDG_DATA_HOME", ".local/share", environ) / "opencode" / "auth.json"


def configured_provider(environ: Mapping[str, str] = os.environ) -> str | None:
    """Where a provider is configured, in words for the user; ``None`` when there is none."""
    credentials = credentials_file(environ)
    try:
        if json.loads(credentials.read_text(encoding="utf-8")):
            return str(credentials)
    except (OSError, ValueError):
        pass
    if _NAMES_A_MODEL.search(environ.get("OPENCODE_CONFIG_CONTENT") or ""):
        return "OPENCODE_CONFIG_CONTENT"
    directory = home("XDG_CONFIG_HOME", ".config", environ) / "opencode"
    files = [directory / name for name in ("opencode.json", "opencode.jsonc", "config.json")]
    if given := environ.get("OPENCODE_CONFIG"):
        files.append(Path(given))
    for file in files:
        try:
            if _NAMES_A_MODEL.search(file.read_text(encoding="utf-8")):
                return str(file)
        except (OSError, ValueError):
            continue
    return next((key for key in KEYS if environ.get(key)), None)
