"""What messages of the listener protocol are beside their fields."""

from qmsup.ids import ModelId, RequestId, RouteName
from qmsup.wire.listening import Ask, Routed


def test_a_question_that_is_asked_again_says_how_long_it_has_waited_and_is_else_the_same() -> None:
    first = Ask(
        request=RequestId("q-1"),
        model=ModelId("a"),
        streaming=True,
        hold_ms=1,
        patience_ms=2,
        timeout_ms=3,
        conversation="c",
        client="me",
        routed=Routed(route=RouteName("r")),
    )

    again = first.after(1500)

    fields = set(Ask.__struct_fields__)
    assert {f for f in fields if getattr(again, f) != getattr(first, f)} == {"waited_ms"}
    assert again.waited_ms == 1500
