"""`control:`: who may control the scheduler over TCP, beside the socket that is always there."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from qmsup.config.addresses import parse_bind
from qmsup.config.problems import Problems
from qmsup.config.section import Section, Text
from qmsup.spec import ControlSpec

_SCHEME = "tcp://"
_MAKE = "make keys with `qmsup keys`"


class CurveSection(Section):
    """Keys; `qmsup keys` makes them."""

    secret_key: Text = Field(default="", description="file of the scheduler's own key")
    clients: Text = Field(default="", description="folder of the public keys of those who may ask")


class ControlSection(Section):
    """Control over TCP."""

    bind: Text = Field(default="", description="tcp://HOST:PORT")
    curve: CurveSection = Field(default_factory=CurveSection, description="its keys")


CONTROL: Mapping[str, type[Section]] = {"control": ControlSection, "control.curve": CurveSection}
"""By place."""


def resolve_control(section: ControlSection | None, problems: Problems) -> ControlSpec | None:
    """What the section says; None = there is no such door."""
    if section is None:
        return None
    _check_bind(section.bind, problems)
    key, clients = Path(section.curve.secret_key), Path(section.curve.clients)
    if not section.curve.secret_key or not section.curve.clients:
        problems.add(("control", "curve"), f"TCP needs keys: write secretKey and clients; {_MAKE}")
    elif not key.is_file():
        problems.add(("control", "curve", "secretKey"), f"there is no file {key}; {_MAKE}")
    elif not clients.is_dir():
        problems.add(
            ("control", "curve", "clients"),
            f"there is no folder {clients}; `qmsup keys NAME --allow {clients}` makes it",
        )
    return ControlSpec(endpoint=section.bind, secret_key=str(key), clients=str(clients))


def _check_bind(bind: str, problems: Problems) -> None:
    place = ("control", "bind")
    if not bind.startswith(_SCHEME):
        problems.add(place, 'write tcp://HOST:PORT, for example "tcp://127.0.0.1:5701"')
        return
    try:
        host, _ = parse_bind(bind.removeprefix(_SCHEME))
    except ValueError as error:
        problems.add(place, f"{error} (after tcp://)")
        return
    if host == "localhost":
        problems.add(place, "write an address of this box, such as 127.0.0.1, in place of its name")
