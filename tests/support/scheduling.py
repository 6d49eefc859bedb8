"""A scheduler on a desk: told events in words, it answers effects in words.

    r1 asks a      -> load a1, loading r1
    a1 ready       -> grant r1
    r1 ends        ->

An ask may say `of=CONVERSATION`, `client=`, `hold=`, `patience=`, `timeout=` (seconds), `streaming`, `tracked`, an end
its outcome; `ready` may say slots, and the context of each.

`a1` is incarnation 1 of model a: numbers grow over all models. Records are left out; ask for them with `records`.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from qmsup.core.scheduling import invariants
from qmsup.core.scheduling.effects import (
    AbortStart,
    Answer,
    ArmWake,
    Cut,
    Effect,
    EndProcess,
    EnsureReady,
    Grant,
    LineMoved,
    ReadMemory,
    Recall,
    Record,
    Refuse,
    Remember,
    Stop,
    TellLoading,
)
from qmsup.core.scheduling.events import (
    AskWithdrawn,
    DrainAsked,
    Event,
    GrantAccepted,
    GrantDeclined,
    LeaseReleased,
    LeaseRenewed,
    LeaseRequested,
    ListenerJoined,
    ListenerLost,
    ListenerSuspected,
    LoadAsked,
    Outcome,
    PinAsked,
    ProcessFailed,
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
    ReleaseAsked,
    RequestAbandoned,
    RequestArrived,
    ShutdownAsked,
    UnloadAsked,
    Woke,
)
from qmsup.core.scheduling.memory_events import (
    CeilingChanged,
    FootprintMeasured,
    MemoryRead,
    MemoryReturned,
)
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.ids import (
    AskId,
    Incarnation,
    LeaseId,
    ListenerName,
    ModelId,
    RequestId,
    WorkerId,
)
from qmsup.spec import GroupSpec, ModelSpec, Pool, SchedulerSpec, Spec
from qmsup.units import MiB, Seconds

WORKER = WorkerId("w1")


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePolicy:
    """Loading t stops what the table says, whether it runs or not."""

    table: Mapping[str, str]
    name: str = "table"

    def eviction_for(self, target: ModelId, running: Sequence[ModelId]) -> tuple[ModelId, ...]:
        return tuple(ModelId(model) for model in self.table.get(target, "").split())

    def likeness(self, target: ModelId) -> Hashable:
        return target


def spec_of(
    models: str,
    *,
    slots: int = 4,
    sizes: Mapping[str, int] | None = None,
    rams: Mapping[str, int] | None = None,
    renders: str = "",
    fits: str = "",
    **others: object,
) -> Spec:
    """Models by name; `sizes` (VRAM) and `rams` in MiB; `renders` names those that make images, `fits` those
    that size themselves.

    Nothing is held, unless `scheduler` says so.
    """
    made = {
        ModelId(name): ModelSpec(
            id=ModelId(name),
            argv=("child",),
            slots=slots,
            est_vram=MiB((sizes or {}).get(name, 0)),
            est_ram=MiB((rams or {}).get(name, 0)),
            renders=name in renders.split(),
            fits_itself=name in fits.split(),
        )
        for name in models.split()
    }
    others.setdefault("scheduler", SchedulerSpec(hold=Seconds(0.0)))
    return replace(Spec(models=made), **others)  # type: ignore[arg-type]


def group(
    name: str,
    members: str,
    *,
    swap: bool = True,
    exclusive: bool = True,
    persistent: bool = False,
    pool: Pool = Pool.VRAM,
) -> GroupSpec:
    """A group by the names of its members."""
    return GroupSpec(
        id=name,
        members=tuple(ModelId(m) for m in members.split()),
        swap=swap,
        exclusive=exclusive,
        persistent=persistent,
        pool=pool,
    )


class Desk:
    """A scheduler, a clock that moves when told, and what was said last."""

    def __init__(
        self,
        spec: Spec,
        *,
        evicts: Mapping[str, str] | None = None,
        first_incarnation: int = 1,
    ) -> None:
        self.scheduler = Scheduler(spec, Incarnation(first_incarnation))
        if evicts is not None:
            self.scheduler.state.policy = TablePolicy(table=evicts)
        self.now = 0.0
        self.effects: list[Effect] = []

    def tell(self, event: Event) -> list[Effect]:
        """Hand over one event, and check every invariant afterwards."""
        self.effects = self.scheduler.handle(event, Seconds(self.now))
        invariants.check(self.scheduler.state, Seconds(self.now))
        assert {effect.cause for effect in self.effects} == {self.scheduler.state.event}
        wakes = [effect for effect in self.effects if isinstance(effect, ArmWake)]
        assert len(wakes) == 1, "one wake for each event"
        assert self.effects[-1] is wakes[0], "the wake comes last"
        return self.effects

    @property
    def wake(self) -> float | None:
        """What the last ArmWake said."""
        last = self.effects[-1]
        assert isinstance(last, ArmWake)
        return last.at

    def say(self, words: str) -> str:
        """One step in words, and what came of it."""
        if words.startswith("at "):
            self.now = float(words[3:])
            return self.told()
        self.tell(event_of(words))
        return self.told()

    def told(self) -> str:
        """The last effects, in words."""
        return ", ".join(text for effect in self.effects if (text := words_of(effect)))

    def records(self) -> list[Record]:
        """The decisions among the last effects."""
        return [effect for effect in self.effects if isinstance(effect, Record)]

    def play(self, story: str) -> None:
        """Say each line's left side; the right side is what must come of it."""
        for line in story.strip().splitlines():
            said, _, wanted = (part.strip() for part in line.partition("->"))
            if not said:
                continue
            if said.startswith("at "):
                said = self._later(float(said[3:]), is_awaited=bool(wanted))
            self.tell(event_of(said))
            told = self.told()
            assert told == wanted, f"{said} at {self.now} -> {told}\nand not -> {wanted}"

    def _later(self, now: float, *, is_awaited: bool) -> str:
        if is_awaited:
            assert self.wake == now, f"at {now} nobody wakes, but at {self.wake}"
        self.now = now
        return "woke"


@dataclass(frozen=True, slots=True)
class Story:
    """What is told, and what comes of it, a line each.

    Attributes:
        evicts: what loading each model stops; None = everybody else, as without groups.
        slots: how many requests each model takes at once.
    """

    told: str
    models: str = "a b c"
    evicts: Mapping[str, str] | None = None
    slots: int = 4

    def play(self) -> None:
        """Tell it to a scheduler on a desk."""
        Desk(spec_of(self.models, slots=self.slots), evicts=self.evicts).play(self.told)


def event_of(words: str) -> Event:
    """`r1 asks a`, `a1 ready`, `unload x a b`, …"""
    who, *rest = words.split()
    if who in _COMMANDS:
        return _COMMANDS[who](rest)
    return _VERBS[rest[0]](who, rest[1:])


def _asks(request: str, words: list[str]) -> Event:
    model, *options = words
    given = dict(option.split("=") for option in options if "=" in option)
    return RequestArrived(
        request=RequestId(request),
        listener=WorkerId(given.get("from", WORKER)),
        model=ModelId(model),
        streaming="streaming" in options,
        hold=_seconds(given.get("hold")),
        patience=_seconds(given.get("patience")),
        timeout=_seconds(given.get("timeout")),
        conversation=given.get("of", ""),
        client=given.get("client", ""),
        waited=Seconds(float(given.get("waited", "0"))),
        is_tracked="tracked" in options,
    )


def _seconds(text: str | None) -> Seconds | None:
    return None if text is None else Seconds(float(text))


def _child(name: str) -> tuple[ModelId, Incarnation]:
    model = name.rstrip("0123456789")
    return ModelId(model), Incarnation(int(name[len(model) :]))


def _ready(name: str, words: list[str]) -> Event:
    model, incarnation = _child(name)
    return ProcessReady(
        model=model,
        incarnation=incarnation,
        upstream=f"127.0.0.1:{5800 + incarnation}",
        pid=1000 + incarnation,
        total_slots=int(words[0]) if words else None,
        context=int(words[1]) if len(words) > 1 else None,
    )


def _starting(name: str, _: list[str]) -> Event:
    model, incarnation = _child(name)
    return ProcessStarting(
        model=model, incarnation=incarnation, pid=1000 + incarnation, port=5800 + incarnation
    )


def _gone(name: str, _: list[str]) -> Event:
    model, incarnation = _child(name)
    return ProcessStopped(model=model, incarnation=incarnation)


def _fails(name: str, words: list[str]) -> Event:
    model, incarnation = _child(name)
    return ProcessFailed(
        model=model,
        incarnation=incarnation,
        reason="exited with 1",
        last_lines=" ".join(words),
    )


def _ends(request: str, words: list[str]) -> Event:
    outcome = next((Outcome(word) for word in words if word in set(Outcome)), Outcome.FINISHED)
    return LeaseReleased(lease=LeaseId(request), outcome=outcome, served="unserved" not in words)


_VERBS: dict[str, Callable[[str, list[str]], Event]] = {
    "asks": _asks,
    "leaves": lambda who, _: RequestAbandoned(request=RequestId(who)),
    "accepts": lambda who, _: GrantAccepted(request=RequestId(who)),
    "declines": lambda who, _: GrantDeclined(request=RequestId(who)),
    "ends": _ends,
    "starting": _starting,
    "ready": _ready,
    "gone": _gone,
    "fails": _fails,
    "joins": lambda who, words: ListenerJoined(
        listener=WorkerId(who), name=ListenerName("main"), pid=77, lends="lends" in words
    ),
    "silent": lambda who, _: ListenerSuspected(listener=WorkerId(who)),
    "lost": lambda who, _: ListenerLost(listener=WorkerId(who)),
    "withdrawn": lambda who, _: AskWithdrawn(ask=AskId(who)),
}


def _lease(words: list[str]) -> Event:
    ask, lease, model, *ttl = words
    return LeaseRequested(
        ask=AskId(ask),
        lease=LeaseId(lease),
        model=ModelId(model),
        owner="tester",
        purpose="a render",
        ttl=Seconds(float(ttl[0]) if ttl else 60.0),
    )


def _reading(words: list[str]) -> Event:
    given = dict(word.split("=") for word in words)
    free = MiB(int(given.pop("free")))
    ceiling, line, ram = (
        MiB(int(given.pop(key))) if key in given else None for key in ("ceiling", "line", "ram")
    )
    held = _held(given)
    return CeilingChanged(ceiling=ceiling, free=free, held=held, shed_line=line, ram_ceiling=ram)


def _held(given: dict[str, str]) -> dict[Incarnation, MiB]:
    return {_child(name)[1]: MiB(int(size)) for name, size in given.items()}


def _back(words: list[str]) -> Event:
    (model, incarnation), returned, free = _child(words[0]), MiB(int(words[1])), MiB(int(words[2]))
    held = _held(dict(word.split("=") for word in words[3:]))
    return MemoryReturned(
        model=model, incarnation=incarnation, returned=returned, free=free, held=held
    )


def _peak(words: list[str]) -> Event:
    (model, incarnation), peak = _child(words[0]), MiB(int(words[1]))
    return FootprintMeasured(model=model, argv=("child",), peak=peak, incarnation=incarnation)


_COMMANDS: dict[str, Callable[[list[str]], Event]] = {
    "reading": _reading,
    "blind": lambda _: CeilingChanged(),
    "looked": lambda _: MemoryRead(),
    "back": _back,
    "peak": _peak,
    "lease": _lease,
    "renew": lambda words: LeaseRenewed(
        ask=AskId(words[0]), lease=LeaseId(words[1]), ttl=Seconds(float(words[2]))
    ),
    "release": lambda words: ReleaseAsked(ask=AskId(words[0]), lease=LeaseId(words[1])),
    "load": lambda words: LoadAsked(ask=AskId(words[0]), model=ModelId(words[1])),
    "unload": lambda words: UnloadAsked(
        ask=AskId(words[0]), models=tuple(ModelId(m) for m in words[1:])
    ),
    "drain": lambda words: UnloadAsked(
        ask=AskId(words[0]), models=tuple(ModelId(m) for m in words[1:]), drain=True
    ),
    "pin": lambda words: PinAsked(ask=AskId(words[0]), model=ModelId(words[1]), is_pinned=True),
    "unpin": lambda words: PinAsked(ask=AskId(words[0]), model=ModelId(words[1]), is_pinned=False),
    "close": lambda words: DrainAsked(ask=AskId(words[0]), is_draining=True),
    "open": lambda words: DrainAsked(ask=AskId(words[0]), is_draining=False),
    "shutdown": lambda _: ShutdownAsked(),
    "woke": lambda _: Woke(),
}


def words_of(effect: Effect) -> str:
    """An effect in words; "" for a Record, for Remember and for ArmWake."""
    match effect:
        case Grant(request=request):
            words = f"grant {request}"
        case TellLoading(requests=requests):
            words = ", ".join(f"loading {request}" for request in requests)
        case Refuse() | Cut():
            word = "refuse" if isinstance(effect, Refuse) else "cut"
            words = f"{word} {effect.request} {effect.refusal.code}"
        case LineMoved():
            words = " ".join(f"{request} at {place}" for request, place in effect.places)
        case EnsureReady() | Stop() | AbortStart():
            words = f"{_ORDERS[type(effect)]} {effect.model}{effect.incarnation}"
        case Answer():
            word = "done" if effect.refusal is None else effect.refusal.code
            words = f"answer {effect.ask} {word}"
        case Recall():
            words = f"recall {effect.listener}"
        case EndProcess() | ReadMemory():
            words = "end" if isinstance(effect, EndProcess) else "read"
        case Record() | Remember() | ArmWake():
            words = ""
        case _:
            assert_never(effect)
    return words


_ORDERS: dict[type, str] = {EnsureReady: "load", Stop: "stop", AbortStart: "abort"}
