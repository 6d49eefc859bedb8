"""Keys that are known and not built yet: refused, so that nobody believes in a setting that does nothing.

Whoever builds one removes its line here and adds its field in `shape`.
"""

from qmsup.config.problems import Path

NOT_YET: dict[str, frozenset[str]] = {
    "": frozenset({
        "peers", "hosts", "routes", "control", "routing",
        "includeAliasesInList", "profiles", "selectors", "performance", "store", "ui",
        "logToStdout", "logTimeFormat", "metricsMaxInMemory", "captureBuffer",
    }),
    "listeners.*": frozenset({"routes"}),
    "models.*": frozenset({
        "metadata", "timeouts", "sendLoadingState",
    }),
}  # fmt: skip
"""Where (`*` stands for a name) → keys. `""` is the top level."""


def is_not_yet(path: Path) -> bool:
    """Whether this key is known but not built yet."""
    match path:
        case (str(key),):
            place = ""
        case ("scheduler", str(key)):
            place = "scheduler"
        case (str(section), str(), str(key)):
            place = f"{section}.*"
        case _:
            return False
    return key in NOT_YET.get(place, ())
