"""Servers on other machines, and which certificates of theirs are trusted."""

from pathlib import Path

import pytest

from qmsup.config.problems import Problems
from qmsup.config.remote import is_https, parse_remote, trusted
from qmsup.spec import ANYONE

_URL, _TRUST = ("hosts", "a", "url"), ("hosts", "a", "trust")

ADDRESSES = {
    "http://far": ("far:80", ""),
    "https://far": ("far:443", ""),
    "HTTPS://far/": ("far:443", ""),
    "https://[::1]": ("[::1]:443", ""),
    "https://[::1]:8443/a/b/": ("[::1]:8443", "/a/b"),
    "https://10.0.0.2:9": ("10.0.0.2:9", ""),
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_where_a_server_is(url: str) -> None:
    problems = Problems()

    assert parse_remote(url, _URL, problems) == ADDRESSES[url]
    assert problems.found == []


@pytest.mark.parametrize(
    "url",
    ["", "ftp://x", "https://", "https://u:p@x", "https://x?a", "https://x:0", "x", "http://a b"],
)
def test_what_is_no_server_is_told(url: str) -> None:
    problems = Problems()

    assert parse_remote(url, _URL, problems) == ("", "")
    assert [problem.path for problem in problems.found] == [_URL]


def test_a_server_in_plain_http_needs_no_trust() -> None:
    problems = Problems()

    assert trusted("", "http://x", _TRUST, problems) is None
    assert trusted("/etc/hosts", "http://x", _TRUST, problems) is None
    assert "over https alone" in problems.found[0].text


def test_whose_certificates_count() -> None:
    problems = Problems()

    assert trusted("", "https://x", _TRUST, problems) == ""
    assert trusted(__file__, "https://x", _TRUST, problems) == __file__
    assert (problems.found, problems.remarks) == ([], [])
    assert trusted(ANYONE, "https://x", _TRUST, problems) == ANYONE
    assert "not looked at" in problems.remarks[0].text


@pytest.mark.parametrize(
    ("trust", "said"),
    [
        ("anybody", 'is a file, written with its folder, or "anyone", not "anybody"'),
        ("/nowhere/ca.pem", "there is no file /nowhere/ca.pem"),
        ("/", "there is no file /"),
    ],
)
def test_what_cannot_be_trusted(trust: str, said: str) -> None:
    problems = Problems()

    trusted(trust, "https://x", _TRUST, problems)

    assert [problem.text for problem in problems.found] == [said]
    assert not Path(trust).is_file()


def test_https_is_known_however_it_is_written() -> None:
    assert [is_https(url) for url in ("https://x", "HTTPS://x", "http://x", "")] == [
        True,
        True,
        False,
        False,
    ]
