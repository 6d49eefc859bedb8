"""Which servers are believed, and how it is told that one is not."""

import os
import ssl

import pytest

from qmsup.spec import ANYONE
from qmsup.upstream.trust import context_of, distrust
from tests.support.certificates import certificate, needs_openssl


def test_the_systems_certificates_count_unless_others_are_named() -> None:
    context = context_of("")

    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


@needs_openssl
def test_of_a_file_its_certificates_alone_count() -> None:
    context = context_of(str(certificate().file))

    assert len(context.get_ca_certs()) == 1
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_of_anyone_nothing_is_looked_at() -> None:
    context = context_of(ANYONE)

    assert context.verify_mode is ssl.CERT_NONE
    assert not context.check_hostname


@pytest.mark.parametrize("trust", ["/nowhere/ca.pem", os.devnull, __file__])
def test_what_holds_no_certificate_is_an_error(trust: str) -> None:
    with pytest.raises(OSError, match=r".*"):
        context_of(trust)


def _tls(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


SAID: list[tuple[OSError, str]] = [
    (ssl.SSLEOFError(8, "EOF"), "does it speak https?"),
    (ConnectionResetError(104, "reset"), "does it speak https?"),
    (_tls("WRONG_VERSION_NUMBER"), "write http in place of https"),
    (_tls("TLSV1_ALERT_PROTOCOL_VERSION"), "TLS failed (TLSV1_ALERT_PROTOCOL_VERSION)"),
    (OSError(113, "No route to host"), "No route to host"),
]


@pytest.mark.parametrize(("error", "said"), SAID)
def test_what_went_wrong_is_told_to_whoever_can_do_something(error: OSError, said: str) -> None:
    assert said in distrust(error)
