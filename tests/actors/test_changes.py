"""What a reload says it changed."""

from dataclasses import replace
from typing import Any

from qmsup.actors.changes import changes
from qmsup.ids import ListenerName, ModelId
from qmsup.spec import GroupSpec, KeySpec, ListenerSpec, ModelSpec, Spec
from qmsup.units import MiB

MAIN = ListenerName("main")


def spec_of(*models: str, **keys: Any) -> Spec:
    keys.setdefault("listeners", {MAIN: ListenerSpec(name=MAIN)})
    specs = [ModelSpec(id=ModelId(model), argv=("x",)) for model in models]
    return Spec(models={spec.id: spec for spec in specs}, **keys)


def with_main(**keys: Any) -> dict[ListenerName, ListenerSpec]:
    return {MAIN: ListenerSpec(name=MAIN, **keys)}


def test_models_come_go_and_change() -> None:
    old, new = spec_of("a", "b", "c"), spec_of("b", "c", "d")
    b = ModelId("b")
    new = replace(new, models={**new.models, b: replace(new.models[b], slots=9)})

    made = changes(old, new, first=old)

    assert (made.added, made.removed, made.changed) == (("d",), ("a",), ("b",))
    assert (made.settings, made.needs_restart) == ((), ())
    assert made.text == "reloaded: added d; removed a; changed b"


def test_settings_have_the_names_of_the_file() -> None:
    old = spec_of("a")
    new = spec_of(
        "a",
        groups=(GroupSpec(id="g", members=(ModelId("a"),)),),
        vram_budget=MiB(9),
        oom_guard_reserve=MiB(9),
        oom_guard_evict=False,
        send_loading_state=True,
        max_body=1,
        listeners=with_main(api_keys=(KeySpec(key="k"),)),
    )

    made = changes(old, new, first=old)

    assert set(made.settings) == {
        "groups",
        "vramBudgetGB",
        "oomGuardReserveGB",
        "oomGuardEvict",
        "sendLoadingState",
        "maxBodyMB",
        "listeners.main",
    }
    assert changes(new, new, first=old).text == "reloaded: nothing changed"


def test_what_needs_a_restart_is_compared_with_what_was_started() -> None:
    other = ListenerName("other")
    first = spec_of("a", listeners={**with_main(), other: ListenerSpec(name=other)})
    late = ListenerName("late")
    new = spec_of(
        "a",
        listeners={**with_main(port=9, workers=7), late: ListenerSpec(name=late)},
        start_port=1,
    )

    made = changes(new, new, first=first)

    assert made.needs_restart == (
        "listeners.main.bind needs a restart",
        "listeners.main.workers needs a restart",
        "listeners.late is new: it needs a restart",
        "listeners.other is gone from the file: its port stays as it was until a restart",
        "startPort needs a restart",
    )
    assert made.settings == ()
