"""What a look finds, in a form that reads well in a test."""

from collections.abc import Iterable
from pathlib import Path

from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.finding import Finding
from qmsup.ids import ListenerName, ModelId
from qmsup.spec import Kind, ListenerSpec, ModelSpec, Spec


def box_with(*models: ModelSpec, port: int | None = None, start_port: int = 5800) -> Box:
    """A machine whose configuration has these models, and a listener if it is given a port."""
    main = ListenerName("main")
    listeners = {} if port is None else {main: ListenerSpec(name=main, port=port)}
    spec = Spec(models={m.id: m for m in models}, listeners=listeners, start_port=start_port)
    return Box(config=Path("/etc/qmsup.yaml"), spec=spec)


def model(*argv: str | Path, name: str = "m", kind: Kind = Kind.LLAMA_SERVER) -> ModelSpec:
    """A model with this command."""
    return ModelSpec(id=ModelId(name), argv=tuple(str(word) for word in argv), kind=kind)


def graded(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Of each, its grade and what it is about."""
    return [(str(finding.grade), finding.about) for finding in findings]


def script(path: Path, text: str, *, mode: int = 0o755) -> Path:
    """A program that does this."""
    path.write_text(text)
    path.chmod(mode)
    return path
