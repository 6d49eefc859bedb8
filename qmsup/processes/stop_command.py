"""`cmdStop`: a command that ends what a child has others do, such as `docker stop NAME`."""

import os
import subprocess
from dataclasses import dataclass

from qmsup.errors import ChildError
from qmsup.processes import output
from qmsup.processes.child import Child
from qmsup.processes.command import Launch

_PID = "${PID}"


@dataclass(slots=True, kw_only=True)
class StopCommand:
    """A stop command that runs. It has the child's mark, so it ends with the child at the latest.

    Attributes:
        pidfd: readable once it has ended.
    """

    program: str
    process: subprocess.Popen[bytes]
    pidfd: int

    def close(self) -> int | None:
        """Reap it and give its descriptor back; its exit code, None if it was still at work and was killed."""
        code = self.process.poll()
        if code is None:
            self.process.kill()
            self.process.wait()
        os.close(self.pidfd)
        return code


def run_stop_command(launch: Launch, child: Child) -> StopCommand:
    """Start it; what it says goes to the child's log.

    Raises:
        ChildError: it cannot be started; then TERM is all there is.
    """
    argv = tuple(word.replace(_PID, str(child.pid)) for word in launch.stop_argv)
    try:
        log = _log_of(child)
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=launch.env,
                start_new_session=True,
            )
        finally:
            os.close(log)
        return StopCommand(program=argv[0], process=process, pidfd=os.pidfd_open(process.pid))
    except (OSError, ValueError) as error:
        raise ChildError(f"cmdStop {argv[0]} could not be started: {error}") from error


def _log_of(child: Child) -> int:
    """The child's log; nowhere if that cannot be written, whatever the reason: what is to end must end all the same."""
    try:
        return output.appending(child.log)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
