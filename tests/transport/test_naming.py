"""A socket's file is removed under it: who is connected stays so, and who is not finds the way again."""

from pathlib import Path

import pytest

from qmsup.transport.dealer import DealerSocket
from qmsup.transport.router import RouterSocket
from tests.transport.test_sockets import frames_read, received_by


def test_it_is_found_again_and_nobody_is_cut_off(places: Path) -> None:
    path = places / "scheduler.sock"
    router, before = RouterSocket(f"ipc://{path}"), DealerSocket(f"ipc://{path}", b"before")
    before.send([b"here"])
    received_by(router, 1)

    assert router.name_again() is False
    for turn in range(2):
        path.unlink()
        assert router.name_again() is True

        after = DealerSocket(f"ipc://{path}", b"after-%d" % turn)
        after.send([b"there"])
        assert received_by(router, 1) == [(b"after-%d" % turn, [b"there"])]
        router.send(b"before", b"still")
        assert frames_read(before, 1) == [b"still"]
        after.close()

    before.close()
    router.close()


def test_one_that_is_shut_for_a_moment_is_left_alone(places: Path) -> None:
    path = places / "scheduler.sock"
    router = RouterSocket(f"ipc://{path}")
    aside = path.rename(f"{path}.shut")

    assert router.name_again() is False

    assert not path.exists()
    aside.unlink()
    router.close()


def test_without_the_folder_it_is_an_error_and_the_connections_stay(places: Path) -> None:
    path = places / "run" / "scheduler.sock"
    path.parent.mkdir()
    router, peer = RouterSocket(f"ipc://{path}"), DealerSocket(f"ipc://{path}", b"peer")
    peer.send([b"here"])
    received_by(router, 1)
    path.unlink()
    path.parent.rmdir()

    with pytest.raises(OSError, match=r"scheduler\.sock"):
        router.name_again()

    peer.send([b"still here"])
    assert received_by(router, 1) == [(b"peer", [b"still here"])]
    peer.close()
    router.close()
