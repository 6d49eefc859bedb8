"""One entry of `models:`: what it means, and what is wrong with it."""

import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from qmsup.config import commands, regexes
from qmsup.config.addresses import HIGHEST_PORT, PORT, parse_upstream
from qmsup.config.filters import names_of, resolve_filters
from qmsup.config.model_shape import CapabilitiesSection, ModelSection
from qmsup.config.problems import Path, Problems, shown
from qmsup.config.shape import Shape
from qmsup.errors import key_text
from qmsup.ids import ModelId
from qmsup.spec import Abilities, Kind, ModelSpec
from qmsup.units import Seconds, mib_from_gb

_LOCAL = f"http://127.0.0.1:{PORT}"
_LOG = "log:"
_STATUS = "status:"
_STATUS_AND_PATH = re.compile(r"[2-5][0-9]{2} /[!-~]*")
_CHECK_PATH = re.compile(r"/[!-~]*")
_LONGEST_FILE_NAME = 240
_RENDERED = frozenset({"image", "video"})
_EXAMPLE = "llama-server -m /models/chat.gguf --port ${PORT}"


def resolve_models(shape: Shape, problems: Problems) -> dict[ModelId, ModelSpec]:
    """Every model, in the order of the file. Those that cannot work are in `problems`."""
    if not (shape.models or shape.peers or shape.hosts):
        example = f'models: {{chat: {{cmd: "{_EXAMPLE}"}}}}'
        problems.follow(("models",), f"no model is configured; write for example `{example}`")
    for name in shape.models:
        _check_name(name, ("models", name), problems)
    _check_aliases(shape.models, problems)
    return {
        ModelId(name): _Model(name, section, shape, problems).spec()
        for name, section in shape.models.items()
    }


def loads_are_shown(shape: Shape) -> bool:
    """Whether clients of any model are told how they wait."""
    return shape.send_loading_state or any(m.send_loading_state for m in shape.models.values())


def _abilities(section: CapabilitiesSection) -> Abilities:
    return Abilities(
        takes=tuple(section.in_),
        gives=tuple(section.out),
        tools=section.tools,
        reranker=section.reranker,
        context=section.context,
    )


def _check_name(name: str, path: Path, problems: Problems) -> None:
    if not name.isprintable() or name != name.strip():
        problems.add(path, "a name has no line breaks, control characters or blanks at its ends")
    elif len(quote(name, safe="")) > _LONGEST_FILE_NAME:  # its log file is called after it
        problems.add(path, f"the name is too long; at most {_LONGEST_FILE_NAME} plain characters")


def _check_aliases(models: Mapping[str, ModelSection], problems: Problems) -> None:
    owners: dict[str, str] = {}
    for name, model in models.items():
        for alias, path in _aliases(name, model):
            owner = owners.setdefault(alias, name)
            if not alias:
                problems.follow(path, "is empty; write a name or remove the entry")
            elif alias in models and alias != name:
                problems.follow(
                    path, f"{key_text(alias)} is the name of a model; choose another alias"
                )
            elif owner != name:
                text = f"{key_text(alias)} is an alias of model {key_text(owner)} already; keep one"
                problems.follow(path, text)
            else:
                _check_name(alias, path, problems)


def _aliases(name: str, model: ModelSection) -> Iterator[tuple[str, Path]]:
    """A model's other names, each once, and where they stand; those of its filters are aliases too."""
    path: Path = ("models", name)
    told: set[str] = set()
    for at, alias in enumerate(model.aliases):
        if alias not in told:
            yield alias, (*path, "aliases", at)
        told.add(alias)
    for alias, written in names_of(model.filters, name):
        if alias not in told and alias != name:
            yield alias, (*path, "filters", "setParamsByID", written)


class _Model:
    def __init__(self, name: str, section: ModelSection, shape: Shape, problems: Problems) -> None:
        self._name = name
        self._section = section
        self._shape = shape
        self._problems = problems

    def spec(self) -> ModelSpec:
        section, shape = self._section, self._shape
        argv = self._argv()
        kind = Kind(section.kind) if section.kind else commands.guess_kind(argv)
        self._check_env()
        said = section.concurrency_limit or commands.slots(argv, section.env, kind)
        timeout = section.health_check_timeout or shape.health_check_timeout
        # As in llama-swap's files, 0 is no grace of its own.
        grace = section.unload_timeout or shape.unload_timeout
        return ModelSpec(
            id=ModelId(self._name),
            argv=argv,
            kind=kind,
            name=section.name,
            description=section.description,
            aliases=tuple(a for a, _ in _aliases(self._name, section) if a != self._name),
            unlisted=section.unlisted,
            env=tuple(section.env),
            stop_argv=self._stop_argv(),
            upstream=self._upstream(argv),
            ready_check=self._ready_check(kind),
            start_timeout=Seconds(timeout),
            stop_grace=Seconds(grace),
            ttl=Seconds(shape.global_ttl if section.ttl < 0 else section.ttl),
            slots=said or commands.DEFAULT_SLOTS[kind],
            slots_from_child=said is None,
            queue_max=section.queue_max,
            est_vram=mib_from_gb(section.est_vram_gb),
            est_ram=mib_from_gb(section.est_ram_gb),
            fits_itself=commands.fits_itself(argv, section.env, kind),
            renders=kind is Kind.SD_SERVER or not _RENDERED.isdisjoint(section.capabilities.out),
            use_model_name=section.use_model_name or None,
            filters=resolve_filters(section.filters, self._name, self._problems),
            abilities=_abilities(section.capabilities),
            metadata=self._metadata(),
            send_loading_state=self._shows_loading(),
        )

    def _wrong(self, key: str, text: str) -> None:
        self._problems.follow(("models", self._name, key), text)

    def _shows_loading(self) -> bool:
        said = self._section.send_loading_state
        return (
            said
            if said is not None
            else self._shape.send_loading_state or not loads_are_shown(self._shape)
        )

    def _metadata(self) -> str:
        try:
            return (
                json.dumps(self._section.metadata, allow_nan=False)
                if self._section.metadata
                else ""
            )
        except ValueError:
            self._wrong("metadata", "holds a number that JSON cannot; write a finite one")
            return ""

    def _argv(self) -> tuple[str, ...]:
        cmd = self._section.cmd
        try:
            argv = commands.split(cmd)
        except ValueError as error:
            self._wrong("cmd", f"cannot be split: {str(error).lower()}; close it, or escape it")
            return ()
        if not argv:
            state = "holds comments only" if cmd.strip() else "is missing"
            self._wrong("cmd", f"{state}; write the command, for example {_EXAMPLE}")
        elif not argv[0]:
            self._wrong("cmd", "starts with an empty word; write the program first")
        self._remark_on_shell("cmd", argv)
        return argv

    def _stop_argv(self) -> tuple[str, ...]:
        try:
            argv = commands.split(self._section.cmd_stop)
        except ValueError as error:
            self._wrong("cmdStop", f"cannot be split: {str(error).lower()}; close it, or escape it")
            return ()
        self._remark_on_shell("cmdStop", argv)
        return argv

    def _remark_on_shell(self, key: str, argv: tuple[str, ...]) -> None:
        if told := commands.meant_for_a_shell(argv):
            self._problems.remark(("models", self._name, key), told)

    def _upstream(self, argv: tuple[str, ...]) -> str:
        proxy = self._section.proxy
        if not proxy:
            return self._own_address(argv)
        if PORT in proxy and argv and not commands.gets_port(argv, self._section.env):
            self._wrong("proxy", f"uses {PORT}, but cmd does not; write it in both or in none")
        try:
            return parse_upstream(proxy)
        except ValueError as error:
            self._wrong("proxy", str(error))
            return _LOCAL

    def _own_address(self, argv: tuple[str, ...]) -> str:
        """Where the command listens when nobody said: the port of its own arguments, else the one it is given."""
        port = commands.own_port(argv)
        if (
            port is not None
            and re.fullmatch(r"[1-9][0-9]{0,4}", port)
            and int(port) <= HIGHEST_PORT
        ):
            return f"http://127.0.0.1:{port}"
        if argv and not commands.gets_port(argv, self._section.env):
            # It may know of a port all the same; llama-swap's own example has such a model.
            text = f"holds no {PORT}; write it where the port belongs, or set proxy to where it listens"
            self._problems.remark(("models", self._name, "cmd"), text)
        return _LOCAL

    def _ready_check(self, kind: Kind) -> str:
        check = self._section.check_endpoint
        if not check:
            return commands.READY_CHECK[kind]
        if check.startswith(_LOG):
            self._check_pattern(check.removeprefix(_LOG))
        elif check.startswith(_STATUS):
            if not _STATUS_AND_PATH.fullmatch(check.removeprefix(_STATUS)):
                told = shown(("checkEndpoint",), check)
                text = f"names no status and path; write for example status:401 /v1/models{told}"
                self._wrong("checkEndpoint", text)
        elif check not in ("none", "tcp") and not _CHECK_PATH.fullmatch(check):
            told = shown(("checkEndpoint",), check)
            self._wrong(
                "checkEndpoint",
                f"must be a path like /health, or none, tcp, status:CODE PATH or log:REGEX{told}",
            )
        return check

    def _check_pattern(self, pattern: str) -> None:
        said = regexes.problem_with(pattern) if pattern else "lacks what to look for"
        if said:
            self._wrong("checkEndpoint", f"log: {said}; write for example log:listening on")

    def _check_env(self) -> None:
        for at, entry in enumerate(self._section.env):
            if entry.find("=") < 1:
                self._problems.follow(("models", self._name, "env", at), "must be KEY=value")
