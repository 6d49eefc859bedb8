"""A stand-in for stable-diffusion.cpp's sd-server: what was measured of it, and troubles on request.

    python sd_server.py --listen-port 21000 --job-seconds 0.5

No socket while it loads, and no `/health`. Eight requests at a time are looked at; those that render wait for each
other, jobs too, and whoever waits keeps one of the eight. Two of it on one port share it. A TERM ends it at once, and a
USR1 the job it renders. Each numbers its jobs from 1, so two give the same ids. `GET /stats` counts what it saw.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if (root := str(Path(__file__).parents[2])) not in sys.path:
    sys.path.insert(0, root)  # for it is started as a file

from tests.fakes.child import Request, answer, echo, read_request, say

_THREADS = 8
_MOST_PENDING = 64
_IMAGE = "iVBORw0KGgo="
_RENDERED = ("/v1/images/generations", "/v1/images/edits", "/sdapi/v1/txt2img", "/sdapi/v1/img2img")


@dataclass(kw_only=True)
class Job:
    """One of its jobs, as it tells of it."""

    id: str
    kind: str
    seconds: float
    status: str = "queued"
    created: int = field(default_factory=lambda: int(time.time()))
    started: int | None = None
    completed: int | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        return self.status in {"completed", "failed", "cancelled"}


class FakeSdServer:
    """One asyncio task for each connection, one for the jobs."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.threads = asyncio.Semaphore(_THREADS)
        self.renders = asyncio.Lock()
        self.jobs: dict[str, Job] = {}
        self.wake = asyncio.Event()
        self.is_done = asyncio.Event()
        self.stats: dict[str, Any] = {"jobs": 0, "polls": 0, "images": 0, "most_pending": 0}
        self.last_post: dict[str, Any] = {}

    async def run(self) -> None:
        options = self.options
        say("total params memory size = 1.40MB (VRAM 0.00MB, RAM 1.40MB): diffusion_model 1.40MB")
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.is_done.set)
        await asyncio.sleep(options.load_seconds)
        server = await asyncio.start_server(
            self._serve, options.listen_ip, options.listen_port, reuse_port=True, backlog=5
        )
        say(f"listening on: http://{options.listen_ip}:{options.listen_port}")
        async with server:
            await self._work()

    async def _work(self) -> None:
        while True:
            await self.wake.wait()
            self.wake.clear()
            while (
                job := next((j for j in self.jobs.values() if j.status == "queued"), None)
            ) is not None:
                async with self.renders:
                    await self._render(job)

    async def _render(self, job: Job) -> None:
        job.status, job.started = "generating", int(time.time())
        self.is_done.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.is_done.wait(), job.seconds)
        if self.stats["jobs"] == self.options.die_in_job:
            os.kill(os.getpid(), signal.SIGKILL)
        job.completed = int(time.time())
        if self.options.fail_jobs:
            job.status = "failed"
            job.error = {"code": "generation_failed", "message": "out of luck"}
        else:
            job.status = "completed"
            images = [{"index": 0, "b64_json": _IMAGE}]
            job.result = {"output_format": "png", "images": images}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            request = await read_request(reader, writer)
            if request is not None:
                async with self.threads:
                    await self._route(request, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _route(self, request: Request, writer: asyncio.StreamWriter) -> None:
        path = request.target.partition("?")[0]
        if path == "/v1/models":
            await _say(writer, 200, {"object": "list", "data": [{"id": "sd-cpp-local"}]})
        elif path == "/stats":
            await _say(writer, 200, {**self.stats, "pid": os.getpid(), "last": self.last_post})
        elif path == "/sdapi/v1/loras":
            await answer(writer, 200, {}, keep=False)
        elif path in _RENDERED:
            self.stats["images"] += 1
            async with self.renders:
                await asyncio.sleep(self.options.job_seconds)
            await _say(writer, 200, {"created": int(time.time()), "data": [{"b64_json": _IMAGE}]})
        elif path in {"/sdcpp/v1/img_gen", "/sdcpp/v1/vid_gen"}:
            await self._take(path.rpartition("/")[2], request, writer)
        elif path.startswith("/sdcpp/v1/jobs/"):
            await self._tell(request.method, path.removeprefix("/sdcpp/v1/jobs/"), writer)
        else:
            await _say_nothing(writer, 404)

    async def _take(self, kind: str, request: Request, writer: asyncio.StreamWriter) -> None:
        self.last_post = echo(request)
        await asyncio.sleep(self.options.take_seconds)
        pending = sum(not job.is_over for job in self.jobs.values())
        try:
            asked = request.fields()
        except ValueError:
            await _say(writer, 400, {"error": "invalid json", "message": "parse error"})
            return
        if self.options.refuse_jobs:
            await _say(writer, self.options.refuse_jobs, {"error": "not today"})
        elif kind == "vid_gen" and not self.options.video:
            await _say(writer, 400, {"error": "loaded model does not support vid_gen"})
        elif pending >= self.options.most_pending:
            await _say(writer, 429, {"error": "job queue is full"})
        else:
            self.stats["jobs"] += 1
            self.stats["most_pending"] = max(self.stats["most_pending"], pending + 1)
            seconds = float(asked.get("seconds", self.options.job_seconds))
            job = Job(id=f"job-{self.stats['jobs']}", kind=kind, seconds=seconds)
            self.jobs[job.id] = job
            self.wake.set()
            told = {"id": job.id, "kind": kind, "status": job.status, "created": job.created}
            await _say(writer, 202, {**told, "poll_url": f"/sdcpp/v1/jobs/{job.id}"})

    async def _tell(self, method: str, rest: str, writer: asyncio.StreamWriter) -> None:
        name, _, verb = rest.partition("/")
        job = self.jobs.get(name)
        if method == "GET":
            self.stats["polls"] += 1
            await asyncio.sleep(self.options.poll_seconds)
            trouble = self.options.poll_status
            if trouble and self.stats["polls"] <= self.options.poll_troubles:
                await _say(writer, trouble, {"error": "server_error", "message": "trouble"})
                return
        if job is None:
            await _say(writer, 404, {"error": "job not found"})
            return
        if verb == "cancel" and job.status == "generating":
            await _say(writer, 409, {"error": "job is generating and cannot be cancelled"})
            return
        if verb == "cancel" and job.status == "queued":
            job.status, job.completed = "cancelled", int(time.time())
        await _say(writer, 200, {**self._document(job)})

    def _document(self, job: Job) -> dict[str, Any]:
        queued = [each for each in self.jobs.values() if each.status == "queued"]
        place = queued.index(job) + 1 if job in queued else 0
        told = {key: value for key, value in vars(job).items() if key != "seconds"}
        return {**told, "queue_position": place}


async def _say(writer: asyncio.StreamWriter, status: int, content: dict[str, Any]) -> None:
    await answer(writer, status, content, keep=False)


async def _say_nothing(writer: asyncio.StreamWriter, status: int) -> None:
    writer.write(f"HTTP/1.1 {status} Status\r\nContent-Length: 0\r\n\r\n".encode())
    await writer.drain()


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--listen-ip", default="127.0.0.1")
    add("--listen-port", type=int, default=1234)
    add("--load-seconds", type=float, default=0.0)
    add("--job-seconds", type=float, default=0.1, help="of a job or image that names none")
    add("--video", action="store_true", help="it makes videos, too")
    add("--most-pending", type=int, default=_MOST_PENDING, help="then 429")
    add("--take-seconds", type=float, default=0.0, help="before it answers to a new job")
    add("--refuse-jobs", type=int, metavar="STATUS", help="instead of taking one")
    add("--fail-jobs", action="store_true", help="at their end")
    add("--die-in-job", type=int, metavar="N", help="KILL itself at the end of the N-th job")
    add("--poll-seconds", type=float, default=0.0, help="before it tells how a job stands")
    add("--poll-status", type=int, metavar="STATUS", help="what it answers instead")
    add("--poll-troubles", type=int, default=sys.maxsize, metavar="N", help="so many times")
    return parser.parse_known_args(arguments)[0]


if __name__ == "__main__":
    asyncio.run(FakeSdServer(options_of(sys.argv[1:])).run())
