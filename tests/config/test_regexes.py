import pytest

from qmsup.config.regexes import problem_with


@pytest.mark.parametrize(
    "pattern",
    [
        "listening on",
        r"^server .* ready$",
        r"(a|b)+c",
        r"(?:a|b)*",
        r"(a+)(b+)c",
        r"([+*])+",
        r"(\+)+",
        r"(a+)?",
        r"(a{3})+",
        r"(a+){2}",
        r"\.(js|css|png)$",
        r"(?P<port>\d+) (?i:ok)",
        r"[]+*(]+",
        r"(foo|far)+",
        r"(-?\d)+",
        r"(?:\s|x)*",
        r"([a-f]|[0-9])+",
        r"(\d{1,3}\.){3}",
        r"(a|aa)b",
        r"(ready|loaded)? in \d+ ms",
        r"(?:^a|\bb)+",
        r"(é|è)+",
        r"([\w-]|\.)+@",
        r"(a|aa){2,9}",
    ],
)
def test_an_expression_that_ends_soon_can_be_used(pattern: str) -> None:
    assert problem_with(pattern) is None


@pytest.mark.parametrize(
    "pattern", [r"(a+)+", r"^(\w*\s?)*$", r"((a+)b)*", r"(?:x(y{2,})z)+", r"((a)*)+", r"(.*a){3,}"]
)
def test_one_that_may_never_end_is_refused(pattern: str) -> None:
    assert "for ever" in str(problem_with(pattern))


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a|aa)+b",
        r"(a|a)*b",
        r"(?i:a|A)+b",
        r"(aa?)+b",
        r"(a{1,2})+b",
        r"((a|aa))+b",
        r"(x(a|aa)|y)+b",
        r"(\w|\d)+b",
        r"(.|a)*b",
        r"(|a)+b",
        r"(a|aa){10,20}b",
        r"(a|aa){40}b",
        r"(a|(?:b))+c",
        r"((a)\2?)+b",
        r"(" + "|".join(f"{a}{b}" for a in "abcdefghijklmno" for b in "abcdefghijklmno") + r")+x",
    ],
)
def test_one_that_repeats_what_fits_in_several_ways_is_refused(pattern: str) -> None:
    assert "have each choice begin otherwise" in str(problem_with(pattern))


@pytest.mark.parametrize("pattern", ["(", "*", "[", "a{99999999999}", r"\8"])
def test_one_that_is_none_is_refused(pattern: str) -> None:
    assert "is no regular expression" in str(problem_with(pattern))
