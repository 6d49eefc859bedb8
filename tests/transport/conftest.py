from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.transport import context
from qmsup.transport.dealer import DealerSocket
from qmsup.transport.router import RouterSocket


class Net:
    """Sockets of one address, closed after the test."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._open: list[RouterSocket | DealerSocket] = []

    def router(
        self, *, peer_bound: int = 50_000, unread_bound: int = 50_000, largest: int = 1 << 24
    ) -> RouterSocket:
        router = RouterSocket(
            self.endpoint, peer_bound=peer_bound, unread_bound=unread_bound, largest=largest
        )
        self._open.append(router)
        return router

    def dealer(self, identity: bytes) -> DealerSocket:
        dealer = DealerSocket(self.endpoint, identity)
        self._open.append(dealer)
        return dealer

    def close(self) -> None:
        for each in self._open:
            each.close()


@pytest.fixture
def net(places: Path) -> Iterator[Net]:
    made = Net(f"ipc://{places}/s.sock")
    yield made
    made.close()
    context.destroy()
