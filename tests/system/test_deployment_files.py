"""Files that are shipped for others' programs, checked by those programs."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.support.box import Box, fake, serving, until
from tests.support.servers import free_port
from tests.support.streams import RawStream

pytestmark = pytest.mark.system

_DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize(
    "unit", ["qmsup.service", "qmsup-scheduler.service", "qmsup-listener@.service"]
)
def test_a_unit_is_one_that_systemd_understands(unit: str, tmp_path: Path) -> None:
    for shipped in (_DEPLOY / "systemd").iterdir():
        text = shipped.read_text().replace("/opt/qmsup/.venv/bin/qmsup", sys.executable)
        (tmp_path / shipped.name).write_text(text.replace("User=qmsup", "User=root"))
    named = unit.replace("@.", "@main.")

    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", named],
        cwd=tmp_path,
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    about_ours = [line for line in ran.stderr.splitlines() if "qmsup" in line]
    assert about_ours == []


@contextmanager
def _nginx(box: Box, folder: Path) -> Iterator[int]:
    port = free_port()
    site = (_DEPLOY / "nginx" / "qmsup.conf").read_text()
    site = site.replace("127.0.0.1:8080", f"127.0.0.1:{box.ports['main']}")
    site = site.replace("listen 8443;", f"listen 127.0.0.1:{port};")
    conf = folder / "nginx.conf"
    conf.write_text(
        f"""
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log warn; worker_processes 1;
events {{}}
http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
{site} }}
"""
    )
    with subprocess.Popen(["nginx", "-c", str(conf), "-p", str(folder)]) as process:
        try:
            yield port
        finally:
            process.terminate()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_behind_nginx_tokens_come_as_they_are_made_and_a_wait_is_shown(tmp_path: Path) -> None:
    models = {"chat": fake("--name chat --event-interval 0.1 --load-seconds 1.5")}
    with serving(models, sendLoadingState=True) as box, _nginx(box, tmp_path) as port:
        until(lambda: _is_listening(port))
        front = Box(box.folder, {"main": port}, box.process, box.env)
        with RawStream(front, "chat", max_tokens=30) as stream:
            seen = stream.until_seen(b": qm-status: loading")
            assert b"chat0" not in seen
            seen = stream.until_seen(b"chat2 ")
            assert b"[DONE]" not in seen  # it was not kept until all of it was there
            stream.until_seen(b"[DONE]", within=30)
        with RawStream(front, "chat", max_tokens=1000) as stream:
            stream.until_seen(b"chat2 ")
        until(lambda: box.model("chat")["inflight"] == 0)  # who left was noticed through nginx


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_behind_nginx_websockets_pass_and_nobody_is_an_operator(tmp_path: Path) -> None:
    with serving({"chat": fake("--name chat")}) as box, _nginx(box, tmp_path) as port:
        until(lambda: _is_listening(port))
        front = Box(box.folder, {"main": port}, box.process, box.env)
        with socket.create_connection(("127.0.0.1", port), 20) as wire:
            head = "GET /upstream/chat/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
            wire.sendall(f"{head}Upgrade: websocket\r\n\r\n".encode())
            assert wire.recv(65536).startswith(b"HTTP/1.1 101")
            wire.sendall(b"hello")
            assert wire.recv(65536) == b"hello"

        assert requests.get(front.url("/v1/models"), timeout=20).status_code == 200
        assert requests.post(front.url("/api/models/unload"), timeout=20).status_code == 401
        assert requests.get(front.url("/unload"), timeout=20).status_code == 401


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
