"""What the scheduler actor and the monitor of hosts tell each other."""

from collections.abc import Mapping
from dataclasses import dataclass

from qmsup.core.fleet.sights import Sight
from qmsup.ids import HostName
from qmsup.spec import HostSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchHosts:
    """For the monitor: these are the hosts, from now on."""

    hosts: Mapping[HostName, HostSpec]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSeen:
    """For the scheduler actor: a host was looked at."""

    sight: Sight
