"""Bodies off the wire: bounds, encodings, files."""

import gc
import gzip
import io
import json
import mmap
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd
from typing_extensions import override

from qmsup.listener.body import find_in
from qmsup.listener.relay.order import RelayOrder
from tests.support.listener_app import (
    CHAT,
    SPEC,
    Answer,
    app_of,
    call,
    content,
    environ_of,
    ordered,
    parsed,
    refused,
)

SMALL = b'{"model":"chat","messages":[]}'
LARGE = json.dumps({"model": "chat", "prompt": "ü" * 700_000}, ensure_ascii=False).encode()


def _bare_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


def _zstd_without_size(data: bytes) -> bytes:
    engine = zstd.ZstdCompressor()
    return engine.compress(data) + engine.flush()


class _Broken(io.BytesIO):
    @override
    def read(self, size: int | None = -1, /) -> bytes:
        raise TimeoutError


def test_a_body_passes_unchanged() -> None:
    odd = b' {"messages" : [ ],\n\t"model":"chat", "x":1.50, "x": 1e3}\r\n'

    order = ordered(odd)

    assert order.body == odd
    assert parsed(order.head)[1]["content-length"] == str(len(odd))


def test_a_large_body_waits_in_an_unnamed_file() -> None:
    order = ordered(LARGE)

    assert not isinstance(order.body, bytes)
    assert os.fstat(order.body.fileno()).st_nlink == 0
    assert content(order) == LARGE
    assert parsed(order.head)[1]["content-length"] == str(len(LARGE))


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_a_chunked_body_gets_a_length(body: bytes) -> None:
    order = ordered(io.BytesIO(body))

    line_headers = parsed(order.head)[1]
    assert content(order) == body
    assert line_headers["content-length"] == str(len(body))
    assert "transfer-encoding" not in line_headers


def test_a_large_body_is_searched_for_its_model_and_rewritten() -> None:
    large = LARGE.replace(b'"model": "chat"', b'"model": "renamed"')

    order = ordered(large)

    sent = content(order)
    assert json.loads(sent)["model"] == 'in "side"'
    assert sent == large.replace(b'"renamed"', rb'"in \"side\""')
    assert parsed(order.head)[1]["content-length"] == str(len(sent))


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(
    ("coding", "encode"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("GZIP ", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", _bare_deflate),
        ("zstd", zstd.compress),
        ("Zstd", _zstd_without_size),
        ("identity", bytes),
    ],
)
def test_encoded_bodies_are_decoded(body: bytes, chunked: bool, coding: str, encode) -> None:  # type: ignore[no-untyped-def]  # a table's column
    encoded = encode(body)

    order = ordered(
        io.BytesIO(encoded) if chunked else encoded, headers={"Content-Encoding": coding}
    )

    assert content(order) == body
    headers = parsed(order.head)[1]
    assert "content-encoding" not in headers
    assert headers["content-length"] == str(len(body))


@pytest.mark.parametrize("coding", ["br", "compress", "gzip, gzip", "nonsense\xff"])
def test_other_encodings_are_refused_and_told_what_would_do(coding: str) -> None:
    answer = refused(SMALL, headers={"Content-Encoding": coding})

    assert (answer.status, answer.code) == (415, "unsupported_encoding")
    assert "gzip, deflate or zstd" in answer.error["message"]


@pytest.mark.parametrize(
    "encoded",
    [
        b"no gzip at all",
        gzip.compress(SMALL, mtime=0)[:-9],
        gzip.compress(SMALL, mtime=0)[:5],
        gzip.compress(SMALL, mtime=0) + b"more",
        gzip.compress(LARGE) + b"x",
        gzip.compress(os.urandom(256 * 1024 - 30), 0) + b"x" * 1000,
        b"\x1f",
    ],
)
def test_broken_encodings_are_refused(encoded: bytes) -> None:
    answer = refused(encoded, headers={"Content-Encoding": "gzip"})

    assert (answer.status, answer.code) == (400, "bad_request")


@pytest.mark.parametrize(
    "encoded",
    [
        b"no zstd at all",
        zstd.compress(SMALL)[:-3],
        zstd.compress(SMALL)[:3],
        zstd.compress(SMALL) + b"more",
        zstd.compress(LARGE) + b"x",
        zstd.compress(LARGE, options={zstd.CompressionParameter.checksum_flag: 1})[:-1] + b"x",
        zstd.compress(os.urandom(256 * 1024 - 30)) + b"x" * 1000,
    ],
)
def test_broken_zstd_is_refused(encoded: bytes) -> None:
    answer = refused(encoded, headers={"Content-Encoding": "zstd"})

    assert (answer.status, answer.code) == (400, "bad_request")


def test_a_frame_that_asks_for_much_memory_is_refused() -> None:
    engine = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})

    answer = refused(engine.compress(SMALL) + engine.flush(), headers={"Content-Encoding": "zstd"})

    assert (answer.status, answer.code) == (400, "bad_request")


@pytest.mark.parametrize(("coding", "encode"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
def test_a_bomb_goes_off_outside(coding: str, encode: Callable[[bytes], bytes]) -> None:
    bomb = encode(b" " * (64 * 1024 * 1024))

    answer = refused(bomb, headers={"Content-Encoding": coding})

    assert (answer.status, answer.code) == (413, "body_too_large")


def test_a_body_at_the_limit_passes_and_one_beyond_it_does_not() -> None:
    exact = SMALL + b" " * (SPEC.max_body - len(SMALL))

    assert content(ordered(exact)) == exact
    for beyond in (exact + b" ", io.BytesIO(exact + b" ")):
        answer = refused(beyond)
        assert (answer.status, answer.code) == (413, "body_too_large")
        assert "4 MiB" in answer.error["message"]


def test_a_body_too_large_by_its_own_words_is_not_read() -> None:
    source = _Broken()

    answer = refused(b"", headers={"Content-Length": str(10**12)})

    assert answer.status == 413
    assert source.tell() == 0


@pytest.mark.parametrize("length", ["-1", "+5", "1_0", "0x10", "٣", "9" * 40, "five"])
def test_a_length_that_is_no_number_is_refused(length: str) -> None:
    answer = refused(SMALL, headers={"Content-Length": length})

    assert (answer.status, answer.code) == (400, "bad_request")


@pytest.mark.parametrize("sent", [SMALL[:10], b"", LARGE[:2_000_000]])
def test_a_client_that_stops_in_the_middle_gets_no_order(sent: bytes) -> None:
    answer = refused(sent, headers={"Content-Length": str(3_000_000)})

    assert answer.status == 400
    assert f"after {len(sent)} of 3000000 bytes" in answer.error["message"]


@pytest.mark.parametrize("headers", [{}, {"Content-Length": "5"}])
def test_a_connection_that_breaks_in_the_middle_gives_no_order(headers: dict[str, str]) -> None:
    answer = refused(_Broken(), headers=headers)

    assert (answer.status, answer.code) == (400, "bad_request")


class _Trickle(io.BytesIO):
    @override
    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(7, size or 0))


def test_a_body_that_comes_in_drops_is_put_together() -> None:
    environ = environ_of("POST", CHAT, SMALL)
    environ["wsgi.input"] = _Trickle(SMALL)

    result = call(app_of(), environ)

    assert isinstance(result, RelayOrder)
    assert result.body == SMALL

    environ["wsgi.input"] = _Trickle(SMALL[:20])
    answer = call(app_of(), environ)
    assert isinstance(answer, Answer)
    assert f"after 20 of {len(SMALL)} bytes" in answer.error["message"]


def test_the_file_of_a_refused_request_is_given_back() -> None:
    before = set(Path("/proc/self/fd").iterdir())

    answer = refused(LARGE.replace(b'"chat"', b'"nobody"'))
    gc.collect()  # the mapping goes with the error that held it

    assert answer.code == "model_not_found"
    assert set(Path("/proc/self/fd").iterdir()) <= before


@pytest.mark.parametrize("at", [0, 5, 4090, 4096, 20_470, 3_000_000 - 3])
def test_a_large_body_is_looked_through_in_steps(tmp_path: Path, at: int) -> None:
    text = bytearray(b"." * 3_000_000)
    text[at : at + 3] = b"abc"
    (tmp_path / "body").write_bytes(text)
    with (
        (tmp_path / "body").open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        for buffer in (mapped, bytes(text)):
            assert find_in(buffer, b"abc") == find_in(buffer, b"abc", at) == at
            assert find_in(buffer, b"abc", at + 1) == -1
