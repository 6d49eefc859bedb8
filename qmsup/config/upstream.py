"""`upstream:`: which paths under `/upstream/MODEL` load no model."""

from qmsup.config import regexes
from qmsup.config.problems import Problems
from qmsup.config.shape import Shape


def resolve_upstream(shape: Shape, problems: Problems) -> tuple[str, ...]:
    """The expressions, each one that can be looked for."""
    if shape.upstream is None:
        return ()
    for at, pattern in enumerate(shape.upstream.ignore_paths):
        if said := regexes.problem_with(pattern):
            text = f"{said}; write for example \\.(js|css|png)$"
            problems.follow(("upstream", "ignorePaths", at), text)
    return tuple(shape.upstream.ignore_paths)
