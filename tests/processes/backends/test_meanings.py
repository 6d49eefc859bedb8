import signal

import pytest

from qmsup.processes.backends.choice import backend_of
from qmsup.processes.child import Exit
from qmsup.spec import Kind

LLAMA, SD, OTHER = Kind.LLAMA_SERVER, Kind.SD_SERVER, Kind.GENERIC
FAILED = Exit(code=1)
BIND = "srv  E couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 5800"
CUDA = "device 0: cudaMalloc failed: out of memory\nmain: exiting due to model loading error"

MEANINGS = [
    (LLAMA, FAILED, "main: exiting due to model loading error", "check the file after -m"),
    (LLAMA, FAILED, "cmn  common_init_: failed to load model 'a.gguf'", "check the file after -m"),
    (LLAMA, FAILED, CUDA, "the GPU has too little memory"),
    (LLAMA, FAILED, "error: invalid argument: --nope", "--help"),
    (LLAMA, FAILED, BIND, "its port was taken"),
    (LLAMA, Exit(signal=signal.SIGILL), "warming up", "F16 or F32"),
    (LLAMA, FAILED, "srv  load_model: loading model 'a.gguf'", "may be missing"),
    (LLAMA, FAILED, "bind: Address already in use", "its port was taken"),
    (LLAMA, Exit(code=2), "what is this", ""),
    (SD, FAILED, "new_sd_ctx_t failed", "its model could not be loaded"),
    (SD, Exit(code=0), "listening on: http://10.0.0.1:1234", "could not listen"),
    (SD, Exit(signal=signal.SIGABRT), "", "gave itself up"),
    (OTHER, FAILED, "OSError: [Errno 98] Address already in use", "its port was taken"),
    (OTHER, Exit(signal=signal.SIGKILL), "", "dmesg"),
    (OTHER, Exit(signal=signal.SIGHUP), "", ""),
    (OTHER, Exit(code=127), "sh: x: not found", "not found"),
    (
        OTHER,
        Exit(code=132),
        "Illegal instruction",
        "what it ran was killed by SIGILL: it was built",
    ),
    (OTHER, Exit(code=130), "", ""),
    (OTHER, Exit(), "", ""),
]


@pytest.mark.parametrize(("kind", "ended", "lines", "hint"), MEANINGS)
def test_an_end_is_explained_with_what_to_do(
    kind: Kind, ended: Exit, lines: str, hint: str
) -> None:
    meaning = backend_of(kind).meaning(ended, lines)

    assert hint in meaning.hint
    assert bool(meaning.hint) == bool(hint)
    assert meaning.port_taken == (hint == "its port was taken")
