"""`requests` with certificates that count as the configuration says: real servers over TLS."""

import pytest
import requests

from qmsup.spec import ANYONE
from qmsup.upstream.trust import context_of
from qmsup.upstream.trusting import Trusting, cause_of
from tests.support.certificates import certificate, needs_openssl, secure_upstream
from tests.support.upstreams import plain, saying

pytestmark = needs_openssl


def _get(where: str, trust: str) -> int:
    with requests.Session() as session:
        session.trust_env = False
        session.mount("https://", Trusting(context_of(trust)))
        return session.get(f"https://{where}/x", timeout=20).status_code


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
@pytest.mark.parametrize("by_file", [True, False])
def test_who_is_trusted_is_asked(*, by_file: bool) -> None:
    with secure_upstream(saying(plain(b"{}"))) as server:
        assert _get(server.where, str(certificate().file) if by_file else ANYONE) == 200


def test_who_is_not_is_not_and_it_is_told_why() -> None:
    with (
        secure_upstream(saying(plain(b"{}"))) as server,
        pytest.raises(requests.exceptions.SSLError) as caught,
    ):
        _get(server.where, "")

    assert "not trusted (self-signed certificate)" in cause_of(caught.value)
    assert server.requests == []


def test_what_is_not_of_tls_has_a_word_all_the_same() -> None:
    assert cause_of(requests.exceptions.SSLError("whatever")) == "TLS failed"
