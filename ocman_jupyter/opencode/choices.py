"""What a prompt can be given to: the agents, models and commands that an OpenCode has in a directory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .foreign import text

if TYPE_CHECKING:
    from .client import OpenCodeClient


@dataclass(frozen=True)
class Choices:
    """As people are shown them, in OpenCode's order."""

    agents: list[tuple[str, str | None]]
    """Name and description."""
    models: list[tuple[str, str, str]]
    """``provider/model``, its name, and the name of its provider."""
    commands: list[tuple[str, str | None]]
    """Name and description."""
    default_model: str | None
    """``provider/model``."""


async def read_choices(client: OpenCodeClient, directory: str) -> Choices:
    """Ask for all of it at once.  Makes the directory's context.  Raises what the client raises."""
    agents, providers, commands, config = await asyncio.gather(
        client.agents(directory), client.providers(directory), client.commands(directory), client.config(directory)
    )
    models = list(_models(providers))
    return Choices(
        agents=[_named(one) for one in agents if _is_primary(one)],
        models=models,
        commands=[_named(one) for one in commands if isinstance(one.get("name"), str)],
        default_model=_default(config, providers, {one[0] for one in models}),
    )


def _is_primary(agent: dict[str, Any]) -> bool:
    """Whether a person can choose it: no subagent, and none that OpenCode keeps for itself."""
    return isinstance(agent.get("name"), str) and agent.get("mode") != "subagent" and not agent.get("hidden")


def _named(told: dict[str, Any]) -> tuple[str, str | None]:
    return told["name"], text(told.get("description"))


def _models(providers: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    listed = providers.get("providers")
    for provider in listed if isinstance(listed, list) else ():
        known = provider.get("models") if isinstance(provider, dict) else None
        for model, told in known.items() if isinstance(known, dict) else ():
            name = told.get("name") if isinstance(told, dict) else None
            identity = str(provider.get("id"))
            yield f"{identity}/{model}", text(name) or model, text(provider.get("name")) or identity


def _default(config: dict[str, Any], providers: dict[str, Any], known: set[str]) -> str | None:
    """The configured model, else the first provider's own."""
    configured = config.get("model")
    if isinstance(configured, str) and configured in known:
        return configured
    return next((one for one in default_models(providers) if one in known), None)


def default_models(providers: dict[str, Any]) -> Iterator[str]:
    """``provider/model`` of each provider's own default, in OpenCode's order."""
    defaults = providers.get("default")
    for provider, model in defaults.items() if isinstance(defaults, dict) else ():
        if provider and text(model):
            yield f"{provider}/{model}"
