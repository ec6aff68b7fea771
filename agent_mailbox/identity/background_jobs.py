"""The note of Claude Code's background service about a session: who asked for it, of which it is a copy, what runs it.

Belongs here: that file (seen with 2.1.329 and 2.1.332: ``daemon/roster.json`` of the client's own directory). Any
program of the user can write it. So it may take from a session, and it gives none anything alone.
"""

from __future__ import annotations

from ..core import codec
from ..core.records import Record
from ..known_clients.every_client import USUAL
from ..store.files import small_files, system
from ..store.user_state import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOVED = "slash"
"""The source of a session that its person moved there by ``/bg``."""
_MOST = 1 << 22


class Job(Record):
    """A session in the background. ``source``: of the wish. ``before``: the session of which it is a copy, or empty.
    ``askers``: the sessions whose agents asked. ``pid`` and ``start``: the process that runs it. ``prompt`` and
    ``directory``: with which, and where, it began."""

    session_id: str

    source: str = ""
    before: str = ""
    askers: tuple[str, ...] = ()
    pid: int = 0
    start: str = ""
    prompt: str = ""
    directory: str = ""


def of(session_id: str, environ: Mapping[str, str]) -> Job | None:
    """Return the service's note of a session; None if there is none."""
    return next((job for job in listed(environ) if job.session_id == session_id), None)


def listed(environ: Mapping[str, str]) -> Iterator[Job]:
    """Yield the service's note of each session."""
    place = system.join(USUAL.find_home(environ), "daemon/roster.json")
    found = codec.parse(small_files.read_if_possible(place, _MOST, through_links=True) or b"", _MOST, ours=False)
    jobs = found.get("workers") if isinstance(found, dict) else None
    for job in jobs.values() if isinstance(jobs, dict) else ():
        if isinstance(job, dict) and isinstance(me := job.get("sessionId"), str):
            asked = _object(job.get("dispatch"))
            launch, given = _object(asked.get("launch")), _object(asked.get("env"))
            before = str(launch.get("sessionId") or "") if launch.get("fork") is True else ""
            askers = str(given.get(USUAL.askers_variable) or "").split(",")
            name = before.rpartition("/")[2].removesuffix(".jsonl")
            pid, words = job.get("pid"), launch.get("args")
            yield Job(
                me,
                str(asked.get("source") or ""),
                name,
                tuple(filter(None, askers)),
                pid if type(pid) is int and 0 < pid < 1 << 31 else 0,
                str(job.get("procStart") or ""),
                str(words[-1]) if isinstance(words, list) and words else "",
                str(asked.get("cwd") or ""),
            )


def is_served(session_id: str, environ: Mapping[str, str]) -> bool:
    """Return whether the service runs the session, though perhaps without our hooks."""
    job = of(session_id, environ)
    return job is not None and job.pid > 0 and bool(processes.lives(job.pid, job.start))


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
