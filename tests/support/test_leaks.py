import subprocess
import sys
import threading

import pykka

from tests.support import leaks


def test_a_thread_that_keeps_the_process_alive_is_seen_until_it_ends() -> None:
    before = leaks.look(thorough=False)
    go = threading.Event()
    thread = threading.Thread(target=go.wait, name="lingers")
    thread.start()

    assert leaks.look(thorough=False).without(before).threads == {thread}

    go.set()
    assert not leaks.settle(before, thorough=False)


def test_an_actor_is_seen_and_cleared_away() -> None:
    before = leaks.look(thorough=False)
    ref = pykka.ThreadingActor.start()

    left = leaks.look(thorough=False).without(before)

    assert left.actors == {ref.actor_urn}
    left.clear_away()
    assert not leaks.settle(before, thorough=False)


def test_a_child_is_seen_and_cleared_away() -> None:
    before = leaks.look(thorough=False)
    child = subprocess.Popen(["sleep", "60"])

    left = leaks.look(thorough=False).without(before)

    assert [process.pid for process in left.processes] == [child.pid]
    assert "sleep 60" in left.describe()
    left.clear_away()
    child.wait()
    assert not leaks.settle(before, thorough=False)


def test_an_orphan_in_a_session_of_its_own_is_found_by_its_mark() -> None:
    before = leaks.look(thorough=True)
    leave = (
        "import subprocess as s;"
        "print(s.Popen(['sleep','60'],start_new_session=True,stdout=s.DEVNULL).pid)"
    )
    orphan = int(subprocess.check_output([sys.executable, "-W", "ignore", "-c", leave]))

    left = leaks.look(thorough=True).without(before)

    assert orphan in [process.pid for process in left.processes]
    left.clear_away()
    assert not leaks.settle(before, thorough=True)
