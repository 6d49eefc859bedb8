"""What the models' programs wrote, as it is read over HTTP and by the command line."""

import subprocess
import sys
from subprocess import PIPE

import pytest
import requests

from tests.support.box import fake, serving, until

pytestmark = pytest.mark.system


def test_logs_are_read_and_followed_while_their_writers_go_on() -> None:
    with serving({"m": fake(), "n": fake("--name beta")}) as box:
        assert box.chat("m").status_code == 200

        assert "listening on http://127.0.0.1:" in requests.get(box.url("/logs"), timeout=9).text
        with requests.get(box.url("/logs/stream/m"), stream=True, timeout=9) as stream:
            lines = stream.iter_lines(decode_unicode=True)
            until(lambda: "listening on" in next(lines))
            assert box.chat("n").status_code == 200  # stops m
            assert box.chat("m").status_code == 200
            until(lambda: "listening on" in next(lines))


def test_the_command_line_follows_all_models() -> None:
    with serving({"m": fake()}) as box:
        (box.folder / "state/logs/no-log.log").mkdir(parents=True)
        command = [sys.executable, "-m", "qmsup", "logs", "-f"]
        with subprocess.Popen(command, env=box.env, stdout=subprocess.PIPE, text=True) as following:
            assert box.chat("m").status_code == 200
            assert following.stdout is not None
            until(lambda: "listening on" in following.stdout.readline())  # type: ignore[union-attr]
            following.kill()


def test_a_log_is_found_by_an_alias_of_its_model_and_waited_for() -> None:
    with serving({"m": {**fake(), "aliases": ["gpt-4o"]}}) as box:
        command = [sys.executable, "-m", "qmsup", "logs", "gpt-4o"]
        follow = [*command, "-f"]
        with subprocess.Popen(follow, env=box.env, stdout=PIPE, stderr=PIPE, text=True) as early:
            assert early.stdout is not None
            assert early.stderr is not None
            assert "waiting for its first start" in early.stderr.readline()
            assert box.chat("gpt-4o").status_code == 200
            until(lambda: "listening on" in early.stdout.readline())  # type: ignore[union-attr]
            early.kill()

        shown = subprocess.run(command, env=box.env, check=True, capture_output=True, text=True)

        assert "listening on" in shown.stdout


def test_a_reader_that_reads_nothing_holds_up_neither_writer_nor_end() -> None:
    with serving({"m": fake("--spam-log 30000000")}) as box:
        streams = [
            requests.get(box.url("/logs/stream/m"), stream=True, timeout=9) for _ in range(3)
        ]

        assert box.chat("m").status_code == 200
        assert box.stop() == 0
        for stream in streams:
            stream.close()
