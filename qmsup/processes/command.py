"""What exactly is run for a model: arguments, environment and the address it will answer on."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import urlsplit

from qmsup.errors import ChildError, key_text
from qmsup.processes.backends.choice import backend_of
from qmsup.processes.child import NONCE_VARIABLE
from qmsup.processes.records import digest_of
from qmsup.spec import Kind, ModelSpec, Spec

_PORT = "${PORT}"
_ANY_PORT = "1"
_SCRUBBED_PREFIXES = (
    "LLAMA_ARG_",  # become arguments of every child
    "LLAMA_LOG_",  # turn the log elsewhere, or its lines into others
    "LLAMA_SERVER_",  # mark a child of llama-server's own router, which ends with its stdin
    "AIP_",  # change port and paths of every child
    "LISTEN_",  # systemd's sockets for us
    "GUNICORN_",
    "SUPERVISOR_",
)
_SCRUBBED = ("LLAMA_API_KEY", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")
"""LLAMA_API_KEY silently turns authentication on."""
_ELSEWHERE = frozenset(("docker", "podman", "nerdctl", "ssh", "kubectl", "systemd-run"))
"""Programs that have others do the work, outside of their own session."""
_LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One start, spelled out.

    Attributes:
        host, port: where the child will answer.
        proves_port: its port must turn out to belong to one of its processes.
        stop_argv: what to run in place of TERM, but for the child's pid; empty = TERM.
        command: a digest of what is started.
        est_vram: what it is charged, in MiB.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    host: str
    port: int
    nonce: str
    proves_port: bool
    stop_argv: tuple[str, ...] = ()
    command: str = ""
    est_vram: int = 0

    @property
    def upstream(self) -> str:
        """The address as `host:port`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def fixed_port(spec: ModelSpec) -> int | None:
    """The port that the operator chose; None where qmsup picks one at each start.

    Raises:
        ChildError: the upstream is no `http://host:port`.
    """
    if _PORT not in spec.upstream:
        return _address(spec.upstream, spec)[1]
    if spec.kind is Kind.LLAMA_SERVER and "--port" in spec.argv[:-1]:
        word = spec.argv[spec.argv.index("--port") + 1]
        return int(word) if word.isdigit() else None
    return None


def has_fixed_port(spec: ModelSpec) -> bool:
    """Whether another port cannot be tried."""
    try:
        return fixed_port(spec) is not None
    except ChildError:  # told when the child is to be started
        return True


def named_ports(spec: Spec) -> set[int]:
    """The ports that a configuration names for listeners and models: none of them is to be picked for another model."""
    named = {listener.port for listener in spec.listeners.values()}
    for model in spec.models.values():
        with contextlib.suppress(ChildError):  # told when the child is to be started
            port = fixed_port(model)
            if port is not None:
                named.add(port)
    return named


def is_answered_here(spec: ModelSpec) -> bool:
    """Whether the address that the model is to answer on is this machine's own.

    Raises:
        ChildError: the upstream is no `http://host:port`.
    """
    return _address(spec.upstream, spec)[0] in _LOOPBACK


def works_elsewhere(spec: ModelSpec) -> bool:
    """Whether the program has the work done outside of its own session, perhaps among other files."""
    return bool(spec.argv) and PurePath(spec.argv[0]).name in _ELSEWHERE


def launch(spec: ModelSpec, port: int, *, nonce: str, base: Mapping[str, str]) -> Launch:
    """Spell out a start on a port.

    Args:
        spec: the model.
        port: what `${PORT}` stands for.
        nonce: the proof that the process is ours, new for each start.
        base: our own environment, which is scrubbed of what would change a child unasked.

    Raises:
        ChildError: the command is empty, or the upstream is no `http://host:port`.
    """
    if not spec.argv:
        message = f"models.{key_text(spec.id)}.cmd is empty: give the program to run"
        raise ChildError(message)
    argv = tuple(word.replace(_PORT, str(port)) for word in spec.argv)
    host, answering_port = _address(spec.upstream.replace(_PORT, str(port)), spec)
    added = backend_of(spec.kind).added_arguments(argv, spec.env, port, spec.slots)
    return Launch(
        argv=argv + added,
        env=_environment(spec, port, nonce=nonce, base=base),
        host=host,
        port=answering_port,
        nonce=nonce,
        # What takes a command of its own to be stopped (docker behind a script) is not among the child's processes.
        proves_port=host in _LOOPBACK and not works_elsewhere(spec) and not spec.stop_argv,
        stop_argv=tuple(word.replace(_PORT, str(port)) for word in spec.stop_argv),
        command=digest_of(spec),
        est_vram=spec.est_vram,
    )


def _environment(
    spec: ModelSpec, port: int, *, nonce: str, base: Mapping[str, str]
) -> dict[str, str]:
    kept = {
        key: value
        for key, value in base.items()
        if key not in _SCRUBBED and not key.startswith(_SCRUBBED_PREFIXES)
    }
    # The order in which nvidia-smi numbers the cards; CUDA's own puts the fastest first.
    kept.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    for entry in spec.env:
        key, _, value = entry.partition("=")
        kept[key] = value.replace(_PORT, str(port))
    kept[NONCE_VARIABLE] = nonce
    return kept


def _address(upstream: str, spec: ModelSpec) -> tuple[str, int]:
    try:
        parts = urlsplit(upstream.replace(_PORT, _ANY_PORT))
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        message = f"models.{key_text(spec.id)}.proxy: {spec.upstream!r} is no address: write http://127.0.0.1:${{PORT}}"
        raise ChildError(message)
    return host, port
