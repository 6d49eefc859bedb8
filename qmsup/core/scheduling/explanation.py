"""How things stand now, in sentences: what a model does, who waits for it, what would have to stop for it and why."""

from collections.abc import Iterator
from dataclasses import dataclass

from qmsup.core.eviction.reasons import reasons_for
from qmsup.core.scheduling import memory, views, wording
from qmsup.core.scheduling.collisions import locked_out, swaps_against
from qmsup.core.scheduling.events import RequestArrived
from qmsup.core.scheduling.line import Waiter
from qmsup.core.scheduling.records import Model, Swap, SwapPhase
from qmsup.core.scheduling.state import State
from qmsup.ids import ModelId, RequestId
from qmsup.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A model as it stands.

    Attributes:
        about: what it does, and what uses it.
        places: who waits for it in the line.
        joined: requests that wait for its load.
        evicts: what would have to stop if it were loaded now; empty too when it is ready.
        reasons: why those.
        obstacles: what keeps the first who waits, or the next who asks, from being served at once.
    """

    about: tuple[str, ...]
    places: tuple[views.PlaceView, ...]
    joined: tuple[RequestId, ...]
    evicts: tuple[ModelId, ...]
    reasons: tuple[str, ...]
    obstacles: tuple[str, ...]


def of_model(state: State, name: ModelId, now: Seconds) -> Standing:
    """A model that the state knows, as it stands."""
    model = state.models[name]
    evicts: tuple[ModelId, ...] = ()
    reasons: tuple[str, ...] = ()
    if not model.is_ready and model.swap is None:
        beside = state.running_beside(name)
        evicts = state.policy.eviction_for(name, beside)
        reasons = reasons_for(state.policy, name, beside)
    joiners = () if model.swap is None else model.swap.joiners
    return Standing(
        about=tuple(_about(model, now)),
        places=tuple(place for place in views.line(state, now) if place.model == name),
        joined=tuple(w.origin.request for w in joiners if isinstance(w.origin, RequestArrived)),
        evicts=evicts,
        reasons=reasons,
        obstacles=tuple(_obstacles(state, model, evicts, now)),
    )


def of_waiter(state: State, request: RequestId, now: Seconds) -> tuple[str, ...]:
    """Where a request that waits stands, behind whom, and what keeps it; () when it does not wait."""
    waiter = state.waiters.get(request)
    if waiter is None:
        return ()
    model = state.models[waiter.case.model]
    if waiter.joined is not None:
        assert model.swap is not None, "who has joined waits for a swap"
        since = wording.span(Seconds(now - waiter.rank.arrived))
        return (f"has waited {since} for its load: {_swap(model.swap, now)}",)
    return tuple(_in_line(state, waiter, model, now))


def _in_line(state: State, waiter: Waiter, model: Model, now: Seconds) -> Iterator[str]:
    line = views.line(state, now)
    place = state.line.place_of(waiter)
    own = line[place - 1]
    yield (
        f"has waited {wording.span(own.waited)}, at place {place} of {len(line)} now:"
        f" {wording.reason(own.because)} ({own.because})"
    )
    if ahead := [f"{p.request or 'a load'} ({p.model})" for p in line[: place - 1]]:
        yield f"before it in the line: {wording.listed(ahead)}"
    standing = of_model(state, model.id, now)
    yield from standing.obstacles
    yield from standing.reasons


def _about(model: Model, now: Seconds) -> Iterator[str]:
    child, since = model.child, wording.span(Seconds(now - model.since))
    if model.is_ready and child is not None:
        used = f"{len(model.leases)} of {model.limit} places in use"
        yield f"{model.id} has been ready for {since}, at {child.upstream}: {used}"
    elif child is not None:
        yield f"{model.id} has been {child.phase} for {since}"
    elif model.leaving:
        yield f"{model.id} is stopping"
    else:
        yield f"{model.id} is stopped"
    if model.swap is not None:
        yield _swap(model.swap, now)
    if model.leases:
        yield f"in use by {wording.listed(model.leases)}"
    yield from _about_its_end(model, now)
    if (left := model.back_off.left(now)) > 0:
        yield f"its last start failed, and is not tried again for {left:.1f} s"
    if model.back_off.error:
        yield f"the last failure: {model.back_off.error}"


def _about_its_end(model: Model, now: Seconds) -> Iterator[str]:
    """What keeps it, and what may stop it by itself."""
    if model.is_pinned:
        yield f"{model.id} is pinned: nothing stops it but an operator"
    if model.idle is not None and model.idle.is_live:
        yield f"nobody uses it: it is unloaded in {wording.span(Seconds(model.idle.at - now))}"
    if model.is_closing:
        yield f"{model.id} takes no new requests, and stops when it is idle"


def _obstacles(
    state: State, model: Model, evicts: tuple[ModelId, ...], now: Seconds
) -> Iterator[str]:
    if state.is_draining:
        yield "this box is being drained: it takes no more work"
    if model.swap is not None:
        return
    if model.is_ready:
        yield from _of_ready(state, model, now)
    elif state.rendering and not model.spec.renders:
        yield f"{wording.listed(state.rendering)} makes an image or a video"
    for closer in state.closers.named:
        locks_out = state.closers.locks_out(closer, model.id, *evicts, renders=model.spec.renders)
        if closer.case.model != model.id and locks_out:
            yield f"{closer.case.model} comes first: somebody has waited for it long enough"
    if not model.is_ready:
        yield from _of_victims(state, model, evicts, now)


def _of_ready(state: State, model: Model, now: Seconds) -> Iterator[str]:
    if len(model.leases) >= model.limit:
        places = "the one place" if model.limit == 1 else f"all {model.limit} places"
        yield f"{places} of {model.id} {'is' if model.limit == 1 else 'are'} in use"
    for target in locked_out(state) if model.running_spec.renders else ():
        yield f"a load is in the way: {_swap(state.swaps[target], now)}"


def _of_victims(
    state: State, model: Model, evicts: tuple[ModelId, ...], now: Seconds
) -> Iterator[str]:
    for target in swaps_against(state, model, evicts):
        swap = state.swaps[target]
        yield f"a load is in the way: {_swap(swap, now)}"
    for victim in evicts:
        yield from _of_a_victim(state.models[victim], now)
    if (lack := memory.lack_before(state, model, evicts)) is not None:
        yield f"{model.id} needs {lack.need} MiB of GPU memory, and {lack.room} MiB would be free for it"


def _of_a_victim(victim: Model, now: Seconds) -> Iterator[str]:
    if victim.is_kept:
        yield f"{victim.id} would have to stop and is pinned"
    held = Seconds(victim.holds.until - now)
    if leases := victim.leases:
        in_flight = wording.counted(len(leases), "request")
        yield f"{victim.id} would have to stop and has {in_flight} in flight: {wording.listed(leases)}"
    elif held > 0:
        yield f"{victim.id} would have to stop and is held for {wording.span(held)} more"


def _swap(swap: Swap, now: Seconds) -> str:
    since = wording.span(Seconds(now - swap.started))
    if swap.is_aborting:
        return f"a load of {swap.target}, begun {since} ago, is being given up"
    waiting = f"{wording.counted(len(swap.joiners), 'request')} for it"
    if swap.phase is SwapPhase.EVICTING:
        left = wording.listed(sorted(swap.left))
        return (
            f"{swap.target} is to be loaded, begun {since} ago: {left} must stop first; {waiting}"
        )
    if swap.phase is SwapPhase.SETTLING:
        return (
            f"{swap.target} is to be loaded, begun {since} ago:"
            f" GPU memory of what has stopped is on its way back; {waiting}"
        )
    if swap.phase is SwapPhase.LOOKING:
        return (
            f"{swap.target} is to be loaded, begun {since} ago:"
            f" it is being looked whether the GPU has room for it; {waiting}"
        )
    if swap.phase is SwapPhase.RENDERING:
        return (
            f"{swap.target} is to be loaded, begun {since} ago:"
            f" an image or a video that was begun since has to be done first; {waiting}"
        )
    return f"{swap.target} is loading, begun {since} ago; {waiting}"
