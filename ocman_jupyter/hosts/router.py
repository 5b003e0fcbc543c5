"""Which host does the work: by explicit id, else by who owns the directory."""

from __future__ import annotations

from ..errors import NoSuchHost
from .host import LOCAL, Host


class Router:
    """Knows the hosts.  An explicit host that is unknown is an error, never a fall-back to this machine."""

    def __init__(self, local: Host) -> None:
        self._hosts = {local.id: local}

    def hosts(self) -> list[Host]:
        """All hosts, this machine first."""
        return list(self._hosts.values())

    def for_host(self, host: str | None) -> Host:
        """The host with this id; ``None`` is this machine.  Raises `NoSuchHost`."""
        try:
            return self._hosts[LOCAL if host is None else host]
        except KeyError:
            raise NoSuchHost(f"There is no host {host!r}.", details={"host": host}) from None

    def for_directory(self, directory: str, host: str | None = None) -> Host:
        """The host that owns ``directory``, an absolute path there."""
        return self.for_host(host)

    async def start(self) -> None:
        for host in self.hosts():
            await host.start()

    async def close(self) -> None:
        for host in self.hosts():
            await host.close()
