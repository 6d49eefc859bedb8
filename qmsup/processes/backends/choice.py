"""Which backend a kind of child has."""

from qmsup.processes.backends.backend import Backend
from qmsup.processes.backends.generic import GENERIC
from qmsup.processes.backends.llama_server import LLAMA_SERVER
from qmsup.processes.backends.sd_server import SD_SERVER
from qmsup.spec import Kind

_BACKENDS = {
    Kind.LLAMA_SERVER: LLAMA_SERVER,
    Kind.SD_SERVER: SD_SERVER,
    Kind.GENERIC: GENERIC,
}


def backend_of(kind: Kind) -> Backend:
    """What is known of this kind of program."""
    return _BACKENDS[kind]
