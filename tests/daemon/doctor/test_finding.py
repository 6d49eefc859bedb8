"""What a look yields."""

from qmsup.daemon.doctor.finding import Check, Finding, Grade


def test_a_check_makes_findings_of_its_kind() -> None:
    check = Check("ports")

    assert check.ok("80", "free") == Finding(
        check="ports", about="80", grade=Grade.OK, says="free", do=""
    )
    assert check.warn("80", "hm", "look").grade is Grade.WARN
    assert check.bad("80", "no", "run").do == "run"
