from qmsup.listener.placeholder import LOADING, REMARKS, Placeholder, remark, waiting


def test_a_status_is_told_once() -> None:
    placeholder = Placeholder(remarks=False)

    said = [placeholder.tell(waiting(2), 0.0), placeholder.tell(waiting(2), 1.0)]

    assert said == [b": qm-status: waiting 2\n\n", b""]
    assert placeholder.tell(waiting(1), 2.0) == b": qm-status: waiting 1\n\n"
    assert placeholder.tell(LOADING, 3.0) == b": qm-status: loading\n\n"


def test_silence_is_broken_within_ten_seconds() -> None:
    placeholder = Placeholder(remarks=False)
    placeholder.tell(waiting(2), 100.0)

    assert placeholder.keep_alive(108.0) == b""
    assert placeholder.keep_alive(109.5) == waiting(2)
    assert placeholder.keep_alive(110.5) == b""


def test_remarks_stand_in_for_some_repeats_while_loading_and_never_twice_running() -> None:
    placeholder = Placeholder(remarks=True)
    placeholder.tell(LOADING, 0.0)

    said = [placeholder.keep_alive(10.0 * turn) for turn in range(1, 9)]

    assert said[1::2] == [LOADING] * 4
    assert len({*said[::2]}) == 4
    assert LOADING not in said[::2]


def test_who_waits_in_line_gets_no_jokes() -> None:
    placeholder = Placeholder(remarks=True)
    placeholder.tell(waiting(3), 0.0)

    assert {placeholder.keep_alive(10.0 * turn) for turn in range(1, 9)} == {waiting(3)}


def test_every_word_is_a_comment() -> None:
    for said in (waiting(1), LOADING, *(remark(turn) for turn in range(len(REMARKS)))):
        assert said.startswith(b": ")
        assert said.endswith(b"\n\n")
        assert said.count(b"\n") == 2
        assert said.isascii()
