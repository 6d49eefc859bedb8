"""Ids of requests."""

import os
from concurrent.futures import ThreadPoolExecutor

from qmsup.listener.request_ids import new_request_id


def test_ids_are_unique_over_threads() -> None:
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: new_request_id(), range(2000)))

    assert len(set(taken)) == len(taken)
    assert all(i.startswith("q-") for i in taken)


def test_a_forked_worker_takes_another_prefix() -> None:
    ours = new_request_id().rsplit("-", 1)[0]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_request_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)

    theirs = os.read(reading, 100).decode()
    os.close(reading)

    assert theirs.rsplit("-", 1)[0] != ours
