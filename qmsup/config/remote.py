"""Where servers on other machines are, and which certificates of theirs are trusted."""

import re
from pathlib import Path as FilePath
from urllib.parse import urlsplit

from qmsup.config.addresses import PORT, parse_upstream
from qmsup.config.problems import Path, Problems, shown
from qmsup.spec import ANYONE

_PATH = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*")
EXAMPLE = "write http://HOST:PORT, for example http://10.0.0.2:8080"
_HTTPS = "https://"
_HTTPS_PORT = 443


def parse_remote(url: str, path: Path, problems: Problems) -> tuple[str, str]:
    """`host:port` of a server, and what its paths begin with; empty where it cannot be used.

    Args:
        url: `http://` or `https://`, host, perhaps port and path.
        path: of its key.
        problems: gets what is wrong with it.
    """
    parts = urlsplit(url)
    said = ""
    if not url:
        said = f"is missing; {EXAMPLE}"
    elif parts.query or parts.fragment or not _PATH.fullmatch(parts.path) or PORT in url:
        said = f"holds more than host, port and path; {EXAMPLE}"
    if not said:
        netloc = parts.netloc
        if is_https(url) and netloc.rpartition("]")[2].count(":") == 0:
            netloc = f"{netloc}:{_HTTPS_PORT}"
        scheme = "http" if is_https(url) else parts.scheme
        try:
            whole = parse_upstream(f"{scheme}://{netloc}")
            return whole.removeprefix("http://"), parts.path.rstrip("/")
        except ValueError as error:
            said = f"{error}".replace(f"127.0.0.1:{PORT}", "10.0.0.2:8080")
    problems.follow(path, said)
    return "", ""


def trusted(trust: str, url: str, path: Path, problems: Problems) -> str | None:
    """Whose certificates count, as `PeerSpec.trust` has it.

    Args:
        trust: the key as written; "" = it is not.
        url: of the server.
        path: of the key.
        problems: gets what is wrong with it.
    """
    if not is_https(url):
        if trust:
            problems.follow(path, "has a meaning over https alone; write https, or remove it")
        return None
    if trust == ANYONE:
        problems.remark(
            path, "its certificate is not looked at: anybody on the way can read and change all"
        )
    elif trust and "/" not in trust:
        problems.follow(
            path, f'is a file, written with its folder, or "{ANYONE}"{shown(path, trust)}'
        )
    elif trust and not FilePath(trust).is_file():
        problems.follow(path, f"there is no file {trust}")
    return trust


def is_https(url: str) -> bool:
    """Whether a server is spoken to over TLS."""
    return url.lower().startswith(_HTTPS)
