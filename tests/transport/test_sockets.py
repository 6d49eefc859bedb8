"""The two sockets against each other, and against peers that freeze, die and come back."""

import errno
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zmq

from qmsup.transport import context
from qmsup.transport.dealer import DealerSocket
from qmsup.transport.feed import FeedReader, FeedSocket
from qmsup.transport.router import RouterSocket
from qmsup.units import Seconds
from tests.support.descriptors import no_descriptor_left
from tests.transport.conftest import Net

Received = list[tuple[bytes, list[bytes]]]


def received_by(router: RouterSocket, count: int, within: float = 10.0) -> Received:
    """The next `count` multiparts, waited for by the descriptor, as an event loop does."""
    deadline = time.monotonic() + within
    got: Received = []
    while len(got) < count:
        while batch := router.receive():
            got += batch
        left = deadline - time.monotonic()
        assert len(got) >= count or left > 0, f"{len(got)} of {count} came"
        if len(got) < count:
            select.select([router.fileno()], [], [], left)
    return got


def frames_read(dealer: DealerSocket, count: int, within: float = 10.0) -> list[bytes]:
    deadline = time.monotonic() + within
    got = dealer.receive()
    while len(got) < count:
        left = deadline - time.monotonic()
        assert left > 0, f"{len(got)} of {count} came"
        select.select([dealer.fileno()], [], [], left)
        got += dealer.receive()
    return got


def until(happens: Callable[[], bool], within: float = 10.0) -> None:
    deadline = time.monotonic() + within
    while not happens():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_gathered_messages_go_out_before_the_next_wait_in_order_to_each(net: Net) -> None:
    router, one, other = net.router(), net.dealer(b"w-1"), net.dealer(b"w-2")
    for dealer in (one, other):
        dealer.send([b"here"])
    received_by(router, 2)

    told = [(b"w-1", b"a"), (b"w-1", b"b"), (b"w-2", b"c"), (b"w-1", b"d")]
    for receiver, frame in told:
        router.gather(receiver, frame)

    assert frames_read(one, 2) == [b"a", b"b"], "they waited for each other only"
    assert frames_read(other, 1) == [b"c"]
    router.receive()
    assert frames_read(one, 1) == [b"d"]
    router.gather(b"w-1", b"e")
    router.send_gathered()
    assert frames_read(one, 1) == [b"e"], "nor for that, if they are not to"


def test_what_is_gathered_travels_together_and_not_in_any_number(net: Net) -> None:
    router, socket = net.router(), context.current().socket(zmq.DEALER)
    socket.setsockopt(zmq.ROUTING_ID, b"w-1")
    socket.connect(net.endpoint)
    socket.send(b"here")
    received_by(router, 1)

    for number in range(40):
        router.gather(b"w-1", b"%d" % number)
    router.send(b"w-1", b"behind")

    travelled = [socket.recv_multipart() for _ in range(3)]
    socket.close()
    assert [len(multipart) for multipart in travelled] == [32, 8, 1]
    assert [frame for multipart in travelled for frame in multipart] == [
        *(b"%d" % number for number in range(40)),
        b"behind",
    ]


def test_gathered_messages_for_somebody_who_is_gone_are_lost_and_no_others(net: Net) -> None:
    router, dealer = net.router(), net.dealer(b"w-1")
    dealer.send([b"here"])
    received_by(router, 1)

    router.gather(b"nobody", b"a")
    router.gather(b"w-1", b"b")
    router.receive()

    assert frames_read(dealer, 1) == [b"b"]


def test_a_message_and_its_answer(net: Net) -> None:
    router, dealer = net.router(), net.dealer(b"w-1")
    dealer.send([b"ask"])

    assert received_by(router, 1) == [(b"w-1", [b"ask"])]
    assert router.send(b"w-1", b"grant")
    assert frames_read(dealer, 1) == [b"grant"]


def test_several_messages_ride_together(net: Net) -> None:
    router, dealer = net.router(), net.dealer(b"w-1")
    dealer.send([b"done", b"accepted", b"ask"])
    dealer.send([])

    assert received_by(router, 1) == [(b"w-1", [b"done", b"accepted", b"ask"])]


def test_receiving_never_waits(net: Net) -> None:
    router, dealer = net.router(), net.dealer(b"w-1")

    assert router.receive() == []
    assert dealer.receive() == []
    assert not dealer.wait(Seconds(0.0))


def test_a_turn_takes_no_more_than_its_limit(net: Net) -> None:
    router, dealer = net.router(), net.dealer(b"w-1")
    for n in range(10):
        dealer.send([b"%d" % n])
    turns: list[Received] = []

    def all_came() -> bool:
        turns.append(router.receive(limit=4))
        return sum(map(len, turns)) == 10

    until(all_came)

    assert max(map(len, turns)) <= 4
    assert [frames for turn in turns for _, frames in turn] == [[b"%d" % n] for n in range(10)]


def test_waiting_ends_when_something_comes(net: Net) -> None:
    router, dealer = net.router(), net.dealer(b"w-1")
    dealer.send([b"ask"])
    received_by(router, 1)
    router.send(b"w-1", b"grant")

    assert dealer.wait(Seconds(10.0))
    assert dealer.receive() == [b"grant"]


def test_a_peer_that_never_was_takes_nothing(net: Net) -> None:
    router = net.router()

    assert not router.send(b"nobody", b"grant")


def test_of_twenty_thousand_messages_each_way_none_is_lost(net: Net) -> None:
    router, dealer = net.router(), net.dealer(b"w-1")
    sent = [b"%d" % n for n in range(20_000)]
    for message in sent:
        dealer.send([message])
    asked = received_by(router, len(sent), within=30.0)
    taken = [router.send(b"w-1", message) for message in sent]

    assert [frames[0] for _, frames in asked] == sent
    assert all(taken)
    assert frames_read(dealer, len(sent), within=30.0) == sent


def test_what_is_sent_to_an_absent_scheduler_arrives_when_it_comes(net: Net) -> None:
    dealer = net.dealer(b"w-1")
    for n in range(100):
        dealer.send([b"%d" % n])

    router = net.router()

    assert [frames[0] for _, frames in received_by(router, 100)] == [b"%d" % n for n in range(100)]


SCHEDULER_THAT_WAITS = """
    import sys, time
    from qmsup.transport.router import RouterSocket
    router = RouterSocket(sys.argv[1])
    while not router.receive():
        time.sleep(0.01)
    print("heard", flush=True)
    time.sleep(60)
"""

WORKER_THAT_GREETS = """
    import sys, time
    from qmsup.transport.dealer import DealerSocket
    from qmsup.units import Seconds
    dealer = DealerSocket(sys.argv[1], b"w-child")
    dealer.send([b"hello"])
    seen = 0
    while dealer.wait(Seconds(60.0)):
        for frame in dealer.receive():
            seen += 1
            if frame == b"count":
                dealer.send([b"%d" % seen])
"""


def started(source: str, net: Net) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", textwrap.dedent(source), net.endpoint]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def killed(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_what_is_sent_between_two_schedulers_reaches_the_second(net: Net) -> None:
    process, dealer = started(SCHEDULER_THAT_WAITS, net), net.dealer(b"w-1")
    with dealer._socket.get_monitor_socket(zmq.EVENT_DISCONNECTED) as noticed:
        try:
            dealer.send([b"hello"])
            assert process.stdout is not None
            assert process.stdout.readline() == b"heard\n"
        finally:
            killed(process)
        assert noticed.poll(10_000), "the worker did not notice"
        dealer._socket.disable_monitor()
    dealer.send([b"ask"])

    second = net.router()

    assert received_by(second, 1) == [(b"w-1", [b"ask"])]
    assert second.send(b"w-1", b"welcome")
    assert frames_read(dealer, 1) == [b"welcome"]


def test_the_socket_file_of_a_killed_scheduler_is_in_nobodys_way(net: Net) -> None:
    dealer = net.dealer(b"w-1")
    process = started(SCHEDULER_THAT_WAITS, net)
    try:
        dealer.send([b"hello"])
        assert process.stdout is not None
        assert process.stdout.readline() == b"heard\n"
    finally:
        killed(process)
    assert Path(net.endpoint.removeprefix("ipc://")).exists()

    router, late = net.router(), net.dealer(b"w-2")
    late.send([b"ask"])

    assert (b"w-2", [b"ask"]) in received_by(router, 1)


def test_a_killed_worker_takes_nothing_more(net: Net) -> None:
    router = net.router()
    process = started(WORKER_THAT_GREETS, net)
    try:
        assert received_by(router, 1, within=30.0) == [(b"w-child", [b"hello"])]
        assert router.send(b"w-child", b"welcome")
    finally:
        killed(process)

    until(lambda: not router.send(b"w-child", b"grant"))


def test_a_frozen_worker_is_cut_off_and_heard_again_when_it_thaws(net: Net) -> None:
    router = net.router()
    process = started(WORKER_THAT_GREETS, net)
    try:
        received_by(router, 1, within=30.0)
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: not router.send(b"w-child", b"grant"))
        os.kill(process.pid, signal.SIGCONT)
        until(lambda: router.send(b"w-child", b"count"))

        assert received_by(router, 1)[0][0] == b"w-child"
    finally:
        killed(process)


def test_a_peer_that_does_not_read_is_bounded(net: Net) -> None:
    # Frozen at once, so the heartbeat has not yet cut it off when the bound is met.
    router = net.router(peer_bound=100)
    process = started(WORKER_THAT_GREETS, net)
    try:
        received_by(router, 1, within=30.0)
        os.kill(process.pid, signal.SIGSTOP)
        taken = sum(router.send(b"w-child", b"x" * 10_000) for _ in range(1000))

        # The bound, and what fits the kernel's buffer on the way.
        assert 100 <= taken < 500
    finally:
        killed(process)


def test_a_flood_gathers_where_it_comes_from(net: Net) -> None:
    router = net.router(unread_bound=100)
    flood = context.current().socket(zmq.DEALER)
    flood.setsockopt(zmq.SNDHWM, 100)
    flood.connect(net.endpoint)
    sent = 0
    while flood.poll(200, zmq.POLLOUT) and sent < 20_000:
        flood.send(bytes(1000), zmq.NOBLOCK)
        sent += 1
    flood.close(linger=0)

    # Both bounds, and what fits the kernel's buffers on the way, and again after it is cut off.
    assert 200 <= sent < 5000
    assert router.receive()


def test_of_what_travels_together_only_so_much_is_read(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    router = net.router()
    flood = context.current().socket(zmq.DEALER)
    flood.setsockopt(zmq.ROUTING_ID, b"flood")
    flood.connect(net.endpoint)
    flood.send_multipart([b"x"] * 10_000)
    flood.send(b"last")

    [(_, frames), last] = received_by(router, 2)

    assert len(frames) == 4096
    assert last == (b"flood", [b"last"])
    assert caplog.messages == ["peer.too_much_at_once"]
    flood.close(linger=0)


def test_what_is_too_much_to_travel_together_travels_in_parts(net: Net) -> None:
    router, dealer = net.router(), net.dealer(b"w-1")
    sent = [b"%d" % n for n in range(2500)]

    dealer.send(sent)

    parts = [frames for _, frames in received_by(router, 3)]
    assert [len(frames) for frames in parts] == [1000, 1000, 500]
    assert [frame for frames in parts for frame in frames] == sent


def test_a_turn_takes_few_of_those_that_are_full(net: Net) -> None:
    router, dealer = net.router(), net.dealer(b"w-1")
    dealer.send([b"x"] * 20_000)
    sizes = list[int]()
    while sum(sizes) < 20_000:
        if batch := router.receive():
            sizes.append(sum(len(frames) for _, frames in batch))

    assert max(sizes) <= 9000


def test_who_sends_a_message_that_is_too_large_is_cut_off_alone(net: Net) -> None:
    router = net.router(largest=1000)
    large, small = net.dealer(b"large"), net.dealer(b"small")
    large.send([bytes(2000)])
    small.send([bytes(1000)])

    assert received_by(router, 1) == [(b"small", [bytes(1000)])]
    assert router.receive() == []


def test_a_second_connection_of_one_peer_replaces_the_first(net: Net) -> None:
    router, old = net.router(), net.dealer(b"w-1")
    old.send([b"hello"])
    received_by(router, 1)

    new = net.dealer(b"w-1")
    new.send([b"hello again"])

    assert received_by(router, 1) == [(b"w-1", [b"hello again"])]
    assert router.send(b"w-1", b"welcome")
    assert frames_read(new, 1) == [b"welcome"]


@pytest.mark.parametrize("make", [RouterSocket, lambda e: DealerSocket(e, b"w-1")])
def test_a_path_too_long_for_a_socket_is_named(make: Callable[[str], object]) -> None:
    endpoint = f"ipc:///tmp/{'x' * 120}"

    with pytest.raises(OSError, match="x" * 120):
        make(endpoint)


def test_a_missing_folder_is_named(net: Net) -> None:
    with pytest.raises(OSError, match="no/such/folder"):
        RouterSocket("ipc://no/such/folder/s.sock")


def test_a_closed_context_is_replaced_by_a_new_one(net: Net) -> None:
    before = context.current()
    assert context.current() is before

    context.destroy()
    context.destroy()

    assert before.closed
    assert not context.current().closed


def context_of_child(reply: "multiprocessing.SimpleQueue[bool]", inherited: int) -> None:
    reply.put(id(context.current()) == inherited)
    context.destroy()


def test_a_forked_child_makes_a_context_of_its_own() -> None:
    fork = multiprocessing.get_context("fork")
    reply = fork.SimpleQueue()
    child = fork.Process(target=context_of_child, args=(reply, id(context.current())))
    child.start()
    child.join(10)

    assert child.exitcode == 0
    assert reply.get() is False
    reply.close()


@pytest.mark.parametrize("opened", [RouterSocket, FeedSocket])
@pytest.mark.parametrize("left", [1, 2, 3])
def test_with_too_few_descriptors_left_the_error_names_the_address_too(
    opened: type[RouterSocket | FeedSocket], left: int, places: Path
) -> None:
    context.current().socket(zmq.PAIR).close()  # ZeroMQ's own threads are there before
    with (
        no_descriptor_left(but=left),
        pytest.raises(OSError, match=f"Too many open files: 'ipc://{places}/s'"),
    ):
        opened(f"ipc://{places}/s")


@pytest.mark.parametrize(
    "opened",
    [
        lambda endpoint: DealerSocket(endpoint, b"w"),
        lambda endpoint: FeedReader(endpoint, ["model."]),
        RouterSocket,
        FeedSocket,
    ],
    ids=["dealer", "reader", "router", "feed"],
)
def test_without_a_descriptor_left_there_is_an_error_that_names_the_address(
    opened: Callable[[str], object], places: Path
) -> None:
    context.current().socket(zmq.PAIR).close()  # ZeroMQ's own threads are there before
    with no_descriptor_left(), pytest.raises(OSError, match=f"{places}/s") as caught:
        opened(f"ipc://{places}/s")

    assert caught.value.errno == errno.EMFILE
    context.destroy()
