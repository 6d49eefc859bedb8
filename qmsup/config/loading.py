"""From a file to a `Spec`, or to every problem it has."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path as FilePath

from qmsup.config import catalogues, fleet, macros
from qmsup.config.control import resolve_control
from qmsup.config.document import MAX_BYTES, Document, Value, read
from qmsup.config.matrix import resolve_matrix
from qmsup.config.models import loads_are_shown, resolve_models
from qmsup.config.oversize import remark_on_sizes
from qmsup.config.problems import Path, TooManyProblemsError
from qmsup.config.remarks import remark_on
from qmsup.config.shape import Shape
from qmsup.config.theirs import bring_over
from qmsup.config.upstream import resolve_upstream
from qmsup.config.wording import examine, say
from qmsup.errors import ConfigError
from qmsup.spec import OnExit, Spec
from qmsup.units import mib_from_gb, seconds_from_ms

_BYTES_PER_MB = 1024 * 1024
_ROUNDS = 5
_EXAMPLE = 'models: {chat: {cmd: "llama-server -m /models/chat.gguf --port ${PORT}"}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A file that was read.

    Attributes:
        text: what it said then; it may say something else by now.
        remarks: what is no mistake, but should be known, such as what means less here than in llama-swap; a line each.
    """

    path: FilePath
    text: str
    spec: Spec
    remarks: tuple[str, ...] = ()


def load(path: FilePath) -> Spec:
    """The configuration in a file.

    Raises:
        ConfigError: with every problem, one line each: `FILE:LINE: KEY: what is wrong; what to do`.
    """
    return read_file(path).spec


def read_file(path: FilePath) -> Configuration:
    """The configuration in a file, and the very text that it was read from.

    Raises:
        ConfigError: as `load`.
    """
    text = text_of_file(path)
    spec, remarks = parse_and_remark(text, name=str(path))
    return Configuration(path=path, text=text, spec=spec, remarks=remarks)


def text_of_file(path: FilePath) -> str:
    """What a file says.

    Raises:
        ConfigError: it cannot be read, or is no text.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigError((f"{path}: cannot be read: {reason}; name a readable file",)) from error
    except ValueError as error:  # a NUL in the name
        text = f"{str(path)!r}: is no path; name a readable file"
        raise ConfigError((text,)) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError((f"{path}:{line}: is not UTF-8 text; save it as UTF-8",)) from error


def parse(text: str, *, name: str = "config.yaml", env: Mapping[str, str] | None = None) -> Spec:
    """The configuration in a text.

    Args:
        text: YAML.
        name: what errors call it.
        env: for `${env.X}`; None = this process's environment.

    Raises:
        ConfigError: with every problem, one line each, in the order of the file.
    """
    return parse_and_remark(text, name=name, env=env)[0]


def parse_and_remark(
    text: str, *, name: str = "config.yaml", env: Mapping[str, str] | None = None
) -> tuple[Spec, tuple[str, ...]]:
    """As `parse`, with what is to be said about a file that is right: see `Configuration.remarks`.

    Raises:
        ConfigError: as `parse`.
    """
    document = read(text)
    spec = None
    with suppress(TooManyProblemsError):
        spec = _resolve(document, os.environ if env is None else env)
    if spec is None or document.problems.found:
        raise ConfigError(document.problems.lines(name, document.lines))
    return spec, document.problems.told(name, document.lines)


def _resolve(document: Document, env: Mapping[str, str]) -> Spec | None:
    problems = document.problems
    if not isinstance(document.root, dict):
        if not problems.found:
            state = "is empty" if document.root is None else "is no mapping of keys"
            problems.add((), f"{state}; write at least one model, for example `{_EXAMPLE}`")
        return None
    bring_over(document)
    shape = _fit(macros.expand(document, env), document)
    if shape is None:
        return None
    models = resolve_models(shape, problems)
    written = _at(document.root, ("models",))
    names = catalogues.Names(written if isinstance(written, dict) else {}, shape, problems)
    groups = catalogues.resolve_groups(shape, names, problems)
    matrix = resolve_matrix(shape, names, problems)
    scheduler = catalogues.resolve_scheduler(shape.scheduler, names)
    control = resolve_control(shape.control, problems)
    listeners = catalogues.resolve_listeners(shape, names, problems)
    preload = catalogues.resolve_preload(shape, names)
    peers = fleet.resolve_peers(shape, problems)
    hosts = fleet.resolve_hosts(shape, problems)
    routes = fleet.resolve_routes(shape, problems)
    listeners = fleet.with_routes(listeners, shape, problems)
    catalogues.check_loops(models, listeners, problems)
    fleet.check_own_ports(peers, hosts, listeners, problems)
    remark_on(shape, problems)
    spec = Spec(
        models=models,
        groups=groups,
        matrix=matrix,
        listeners=listeners,
        peers=peers,
        hosts=hosts,
        routes=routes,
        scheduler=scheduler,
        control=control,
        vram_budget=mib_from_gb(shape.vram_budget_gb) if shape.vram_budget_gb else None,
        ram_budget=mib_from_gb(shape.ram_budget_gb) if shape.ram_budget_gb else None,
        oom_guard_reserve=mib_from_gb(shape.oom_guard_reserve_gb),
        oom_guard_grace=seconds_from_ms(shape.oom_guard_grace_ms),
        oom_guard_evict=shape.oom_guard_evict,
        start_port=shape.start_port,
        on_exit=OnExit(shape.on_exit),
        list_aliases=shape.include_aliases_in_list,
        send_loading_state=loads_are_shown(shape),
        loading_remarks=shape.loading_remarks,
        max_body=int(shape.max_body_mb * _BYTES_PER_MB),
        scheduler_grace=seconds_from_ms(shape.scheduler_grace_ms),
        shutdown_drain=seconds_from_ms(shape.shutdown_drain_ms),
        preload=preload,
        log_level="warning" if shape.log_level == "warn" else shape.log_level,
        log_format=shape.log_format,
        access_log=shape.access_log,
        looked_at_only=resolve_upstream(shape, problems),
    )
    remark_on_sizes(spec, problems)
    return spec


def _fit(tree: Value, document: Document) -> Shape | None:
    """The document in shape. A wrong key is noted and set aside, so that the rest is examined all the same."""
    for _ in range(_ROUNDS):
        errors = examine(tree)
        if not errors:
            return Shape.model_validate(tree)
        for path, error in errors:
            if error["type"] == "extra_forbidden" or not document.problems.touch(path):
                document.problems.add(path, say(path, error, _at(document.root, path)))
            _set_aside(tree, path)
    return None


def _at(root: Value, path: Path) -> Value:
    for part in path:
        match root:
            case dict() if isinstance(part, str):
                root = root.get(part)
            case list() if isinstance(part, int) and part < len(root):
                root = root[part]
            case _:
                return None
    return root


def _set_aside(tree: Value, path: Path) -> None:
    """Remove a key; an entry of a list takes its list along."""
    while path:
        parent = _at(tree, path[:-1])
        if isinstance(parent, dict) and isinstance(path[-1], str) and path[-1] in parent:
            del parent[path[-1]]
            return
        path = path[:-1]
