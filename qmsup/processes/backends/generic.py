"""A program of which nothing is known but what every Unix program has in common."""

import signal
from collections.abc import Sequence

from qmsup.processes.backends.backend import Backend, Meaning
from qmsup.processes.child import Exit

_PORT_TAKEN = (
    "its port was taken by another program: leave `${PORT}` to qmsup, or set startPort elsewhere"
)
_ENDS_BY_SIGNAL = {
    signal.SIGILL: "it was built for another kind of CPU: use a build for this one"
    " (some builds fail on quantised models only: there an F16 or F32 file helps)",
    signal.SIGKILL: "something killed it, perhaps the kernel for want of memory (see dmesg)",
    signal.SIGABRT: "it gave itself up; its last lines say why (GPU errors end like this)",
    signal.SIGSEGV: "it crashed; try another build, or a smaller context",
    signal.SIGBUS: "it crashed reading a file, perhaps one that was changed or is on a disk that failed",
}
_KILLED = 128
"""A shell ends with this and the number of the signal that killed what it ran."""
_ENDS_BY_CODE = {
    126: "the program it runs may not be executed (chmod +x)",
    127: "the program it runs was not found, or a library of it",
}


def _no_arguments(
    _argv: Sequence[str], _env: Sequence[str], _port: int, _slots: int
) -> tuple[str, ...]:
    return ()


def meaning(ended: Exit, last_lines: str) -> Meaning:
    """What can be said of any program's end."""
    if "address already in use" in last_lines.lower():
        return Meaning(hint=_PORT_TAKEN, port_taken=True)
    known = {int(number): words for number, words in _ENDS_BY_SIGNAL.items()}
    if ended.signal is not None:
        return Meaning(hint=known.get(ended.signal, ""))
    code = ended.code or 0
    if (number := code - _KILLED) in known:
        return Meaning(
            hint=f"what it ran was killed by {signal.Signals(number).name}: {known[number]}"
        )
    return Meaning(hint=_ENDS_BY_CODE.get(code, ""))


def port_taken() -> Meaning:
    """It said, in its own words, that it could not bind; or another program was found on its port."""
    return Meaning(hint=_PORT_TAKEN, port_taken=True)


GENERIC = Backend(added_arguments=_no_arguments, meaning=meaning)
