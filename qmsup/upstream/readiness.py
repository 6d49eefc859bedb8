"""Which question tells that a child is ready, and what its answer tells beside."""

import json

from qmsup.upstream.probe import Answer, Found, Probe

NO_CHECK = "none"
TCP_CHECK = "tcp"
LOG_CHECK = "log:"
"""Before a regular expression: the log tells, and nobody is asked."""
STATUS_CHECK = "status:"
"""Before a status and a path, `status:401 /v1/models`: where one that is ready answers something else than 200."""
_OK = 200
_SLOTS_PATH = "/props"
_DEFAULT_PATH = "/health"


class ReadinessCheck:
    """The questions of one start.

    A llama-server answers every path with 503 while it loads. So where its slots are wanted too, `/props` is asked in
    place of `/health`: one question for both, and no moment lost. Where that does not work (a key is needed, another
    program), the configured path is asked from then on.
    """

    __slots__ = ("_asks_slots", "_check", "_host", "_port", "_status", "context", "total_slots")

    def __init__(self, check: str, host: str, port: int, *, asks_slots: bool = False) -> None:
        """Keep what to ask.

        Args:
            check: a path, `status:CODE PATH`, `tcp`, or `none`.
            host: where the child answers.
            port: where the child answers.
            asks_slots: ask for the number of slots as well.
        """
        self._check, self._status = check, _OK
        if check.startswith(STATUS_CHECK):
            code, _, self._check = check.removeprefix(STATUS_CHECK).partition(" ")
            self._status = int(code)
        self._host = host
        self._port = port
        self._asks_slots = asks_slots and check == _DEFAULT_PATH
        self.total_slots: int | None = None
        """What the child said, once it is ready."""
        self.context: int | None = None
        """Tokens that one of these holds, by the same word."""

    @property
    def asks_http(self) -> bool:
        """An answer proves that the child lives; a connection alone does not, as the kernel accepts it."""
        return self._check.startswith("/")

    def ask(self) -> Probe | None:
        """The next question, not begun; None = it is ready as soon as it runs.

        Raises:
            OSError: there is no descriptor left for it.
        """
        if self._check == NO_CHECK:
            return None
        if self._check == TCP_CHECK:
            return Probe(self._host, self._port)
        if self._asks_slots:
            return Probe(self._host, self._port, _SLOTS_PATH, wants_body=True)
        return Probe(self._host, self._port, self._check, status=self._status)

    def understand(self, answer: Answer) -> bool:
        """Whether the answer says ready."""
        if answer.found is Found.OTHER_STATUS:
            self._asks_slots = False
        if answer.found is Found.READY and self._asks_slots:
            self._asks_slots = False  # from now on it is only asked whether it lives
            self.total_slots, self.context = _slots(answer.body)
        return answer.found is Found.READY


def _slots(body: bytes) -> tuple[int | None, int | None]:
    """How many there are, and how many tokens each holds."""
    try:
        props = json.loads(body)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(props, dict):
        return None, None
    settings = props.get("default_generation_settings")
    context = settings.get("n_ctx") if isinstance(settings, dict) else None
    return _count(props.get("total_slots")), _count(context)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
