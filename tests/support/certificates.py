"""Certificates that a test makes for itself, and servers that have them."""

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from typing_extensions import override

from tests.support.upstreams import Script, Upstream

needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="certificates are made by the program openssl"
)


class Certificate:
    """Of a server that is called `localhost`, and 127.0.0.1; signed by itself.

    Attributes:
        file: the certificate, for those who trust it.
    """

    def __init__(self, folder: Path, names: str) -> None:
        self.file, self._key = folder / "cert.pem", folder / "key.pem"
        line = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
            f" -addext subjectAltName={names} -keyout {self._key} -out {self.file}"
        )
        subprocess.run(line.split(), check=True, capture_output=True, timeout=60)

    def context(self) -> ssl.SSLContext:
        """A server's."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self._key)
        return context


@cache
def certificate(names: str = "DNS:localhost,IP:127.0.0.1") -> Certificate:
    """One for all tests of a process: `names` is what it is good for."""
    return Certificate(Path(mkdtemp(prefix="qmsup-cert-")), names)


class SecureUpstream(Upstream):
    """The same over TLS. Of clients who do not get through the handshake there is no request."""

    def __init__(self, script: Script, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(script)

    @override
    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(20)
        try:
            wrapped = self._context.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        super()._serve(wrapped)


@contextmanager
def secure_upstream(script: Script, served: Certificate | None = None) -> Iterator[SecureUpstream]:
    """A server for as long as the block."""
    server = SecureUpstream(script, (served or certificate()).context())
    try:
        yield server
    finally:
        server.close()
