"""The metrics that `/metrics` shows: their names are a contract, each is told here and nowhere else."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a metric's numbers are."""

    COUNT = "count"
    """Grows, until the scheduler is started anew."""
    GAUGE = "gauge"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: without the prefix `qmsup_`.
        bounds: of a spread, in seconds.
    """

    name: str
    kind: Kind
    tells: str
    labels: tuple[str, ...] = ()
    bounds: Sequence[float] = ()


WAITS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
FIRST_BYTES = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
LOADS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
TURNS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 1.0)

REQUESTS = Metric(
    "requests_total",
    Kind.COUNT,
    "Requests that are over, by the HTTP status of the answer; 499: the client left before there was one.",
    ("model", "listener", "code"),
)
INFLIGHT = Metric("inflight", Kind.GAUGE, "Uses of a model now.", ("model",))
LINE_LENGTH = Metric("line_length", Kind.GAUGE, "Requests and loads that wait in the line.")
QUEUE_WAIT = Metric(
    "queue_wait_seconds",
    Kind.SPREAD,
    "From a request's arrival to its grant, loads included.",
    ("model",),
    WAITS,
)
SWAP = Metric(
    "swap_seconds",
    Kind.SPREAD,
    "From the decision to load a model until it is ready, what has to stop for it included.",
    ("model",),
    LOADS,
)
LOAD = Metric(
    "load_seconds",
    Kind.SPREAD,
    "From the start of a model's program until it is ready.",
    ("model",),
    LOADS,
)
SWAPS = Metric(
    "swaps_total",
    Kind.COUNT,
    "Loads that were decided on; the reason is `fits`, or the policy that made room.",
    ("model", "reason"),
)
EVICTIONS = Metric(
    "evictions_total",
    Kind.COUNT,
    "Models that were told to stop: for another (the policy that chose it), or ttl, memory, config, unload.",
    ("model", "reason"),
)
ABORTED_LOADS = Metric(
    "aborted_loads_total", Kind.COUNT, "Loads that were given up since nobody waited any more."
)
HOLDS = Metric("holds_active", Kind.GAUGE, "Idle models kept for a client that may come back.")
LEASES = Metric(
    "leases_active",
    Kind.GAUGE,
    "Uses of models now: `request`, or what a job said of itself.",
    ("purpose",),
)
MODEL_STATE = Metric(
    "model_state", Kind.GAUGE, "1 for the state that it is in.", ("model", "state")
)
VRAM = Metric(
    "vram_bytes",
    Kind.GAUGE,
    "GPU memory; the ceiling is what all models may use of all GPUs together.",
    ("gpu", "kind"),
)
RAM = Metric("ram_bytes", Kind.GAUGE, "The machine's memory.", ("kind",))
FOOTPRINT = Metric(
    "footprint_bytes", Kind.GAUGE, "GPU memory that a model takes.", ("model", "kind")
)
TOKENS = Metric(
    "tokens_total",
    Kind.COUNT,
    "As the answers told them: `in`, of prompts, cached ones included; `out`.",
    ("model", "direction"),
)
TTFT = Metric(
    "ttft_seconds",
    Kind.SPREAD,
    "From a streaming request's arrival to the first bytes of its answer, its wait included.",
    ("model",),
    FIRST_BYTES,
)
CHILD_EXITS = Metric(
    "child_exits_total",
    Kind.COUNT,
    "Ends of models' programs: stopped, failed_to_start, or crashed.",
    ("model", "reason"),
)
EPOCH = Metric("scheduler_epoch", Kind.GAUGE, "How many schedulers this state folder has had.")
HANDLE = Metric("handle_seconds", Kind.SPREAD, "Time to decide what one event means.", (), TURNS)
HOST_UP = Metric("host_up", Kind.GAUGE, "Whether a host can be used.", ("host",))
SHARED_STATE_UP = Metric(
    "shared_state_up", Kind.GAUGE, "Whether state that is shared with other boxes can be reached."
)

METRICS = (
    REQUESTS,
    INFLIGHT,
    LINE_LENGTH,
    QUEUE_WAIT,
    SWAP,
    LOAD,
    SWAPS,
    EVICTIONS,
    ABORTED_LOADS,
    HOLDS,
    LEASES,
    MODEL_STATE,
    VRAM,
    RAM,
    FOOTPRINT,
    TOKENS,
    TTFT,
    CHILD_EXITS,
    EPOCH,
    HANDLE,
    HOST_UP,
    SHARED_STATE_UP,
)
