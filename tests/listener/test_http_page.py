"""The page of what a port serves names it all."""

import re

import pytest

from qmsup.errors import Code, status_of
from qmsup.listener.cors import EXPOSED
from qmsup.listener.routes import LOOKED_AT, RELAYED
from tests.support.tree import ROOT

PAGE = (ROOT / "deploy" / "HTTP.md").read_text()
NAMED = set(re.findall(r"`(?:GET |POST )?([^`]+)`", PAGE))


@pytest.mark.parametrize("path", sorted({*RELAYED, *LOOKED_AT}))
def test_a_path_is_named_in_the_spelling_it_is_known_by(path: str) -> None:
    plain = path.rstrip("/")
    with_version = "/v1/" + plain.removeprefix("/v/").lstrip("/")

    assert NAMED & {plain, with_version}


@pytest.mark.parametrize("code", Code)
def test_a_code_stands_in_the_line_of_its_status(code: Code) -> None:
    assert any(
        line.startswith(f"| {status_of(code)} |") and f"`{code}`" in line
        for line in PAGE.splitlines()
    )


def test_the_headers_that_pages_of_a_browser_may_read_are_named() -> None:
    assert {name.strip() for name in EXPOSED.split(",")} - NAMED <= {"Location"}
