"""``scripts/bench-console``: what the console costs, measured where it is felt.

A page's time is from the request to the whole answer; a message's from its sender's acknowledgement (``send`` has
returned, in a process of its own) to the first frame that shows it, by the browser's clock, which is the machine's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import threading
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox.core import instant
from agent_mailbox.mailbox.open_mailbox import wall_clock
from tests import browsers
from tests.console.conftest import Running
from tests.helpers import MESSAGES, READS, ROSTER, Post

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playwright.sync_api import Page

AGENTS = 50
NOTE_FRAMES = """
window.at = {};
new MutationObserver(() => document.querySelectorAll('.message:not([data-timed])').forEach((m) => {
  m.dataset.timed = 1;
  requestAnimationFrame(() => { window.at[m.dataset.key] = Date.now(); });
})).observe(document.querySelector('[data-live]'), {childList: true, subtree: true});
"""
PATHS = {
    "first page": "/",
    "a channel": "/channel?to=project:p1",
    "fleet": "/fleet",
    "all mail": "/archive",
    "dead letters": "/dead",
    "timeline": "/timeline?hours=168",
    "a search": "/search?q=figures+step",
}
TIMES = 15


def fill(post: Post, count: int) -> None:
    """A mailbox with 50 agents and that many messages, all but the last 900 archived, as the steward leaves it."""
    now = wall_clock()
    agents = [f"agent{n:02}" for n in range(AGENTS)]
    roster = ({"event": "register", "session_id": a, "timestamp": instant.text(now), "name": a.title(),
               "tags": [f"project:p{n % 5}", f"role:r{n % 7}"]} for n, a in enumerate(agents))  # fmt: skip
    post.append(ROSTER, *roster)
    live = min(count, 900)
    _write(post.file(MESSAGES), post.file(READS), count - live, count, now, agents)
    archive = post.file("agent-mailbox-archive")
    archive.mkdir(mode=0o700, exist_ok=True)
    month = instant.month(now - 40 * 86_400_000)
    if count > live:
        messages, reads = archive / f"{month}.jsonl", archive / f"{month}-reads.jsonl"
        _write(messages, reads, 0, count - live, now - 40 * 86_400_000, agents)


def _write(messages: Path, reads: Path, start: int, end: int, now: int, agents: Sequence[str]) -> None:
    chance = random.Random(start)
    with open(messages, "ab") as out, open(reads, "ab") as seen:
        for n in range(start, end):
            sender, to = (
                agents[n % AGENTS],
                (agents[(n * 7 + 1) % AGENTS], f"project:p{n % 5}", f"role:r{n % 7}")[n % 3],
            )
            at = instant.text(now - (end - n) * 3000)
            message_id = str(uuid.UUID(int=chance.getrandbits(128), version=4))
            line = {"id": message_id, "sender": sender, "recipient": to, "timestamp": at, "subject": f"Note {n}",
                    "content": f"The figures of step {n} are in, **{n % 97}** of them new.", "thread": None,
                    "ttl_hours": None, "read_by": []}  # fmt: skip
            out.write(_spelt(line))
            reader = agents[(n * 7 + 1) % AGENTS]
            read = {"message_id": message_id, "reader_session_id": reader, "timestamp": at, "event": "read"}
            seen.write(_spelt(read))
    for path in (messages, reads):
        path.chmod(0o600)


def _spelt(record: dict[str, object]) -> bytes:
    """A line as our own writers spell it."""
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def median(measure: Callable[[], float], times: int) -> float:
    """In ms."""
    return statistics.median(measure() for _ in range(times)) * 1000


def timed(do: Callable[[], object]) -> float:
    """Seconds that something takes."""
    begun = time.perf_counter()
    do()
    return time.perf_counter() - begun


def cpu(pid: int) -> float:
    """Seconds of processor time a process has used (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> int:
    """MiB resident."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def pages(post: Post, idle: float) -> Iterator[tuple[str, float]]:
    """What there is to say of one mailbox."""
    begun = time.perf_counter()
    with Running(post) as console:
        yield "start, the first time, s", time.perf_counter() - begun
        console.enter()
        yield "the first page meanwhile, ms", timed(lambda: console.ask("/")) * 1000
        while "search index is being built" in console.ask("/").text:
            time.sleep(0.5)
        yield "the index is there, s", time.perf_counter() - begun
        for name, path in PATHS.items():
            console.ask(path)
            yield f"{name}, ms", median(lambda path=path: timed(lambda: console.ask(path)), 15)  # type: ignore[misc]
        older = f"/archive?before={wall_clock() - 40 * 86_400_000}.x"
        yield "an older page, ms", median(lambda: timed(lambda: console.ask(older)), 9)
        yield from acts(console)
        before = cpu(console.pid)
        time.sleep(idle)
        yield f"processor time while idle, % of one (over {idle:g} s)", (cpu(console.pid) - before) / idle * 100
        yield "memory, MiB", memory(console.pid)
    begun = time.perf_counter()
    with Running(post) as console:
        yield "start, again, s", time.perf_counter() - begun


def acts(console: Running) -> Iterator[tuple[str, float]]:
    """What a person does with messages: alone, and while another window opens one after the other."""
    old, live = some_ids(console.post)
    asked, held = iter(_asked(console.post, 2 * TIMES)), iter(_held(console.post, 2 * TIMES))
    filled = {act: iter(_fill_in(console, act, old)) for act in ("/reply", "/resend", "/send")}
    does: dict[str, Callable[[int], object]] = {
        "open an old message": lambda n: console.ask(f"/archive?open={old[n]}"),
        "open a live message": lambda n: console.ask(f"/archive?open={live[n]}"),
        "send": lambda _: _done(console.does("/send", **next(filled["/send"]))),
        "reply": lambda _: _done(console.does("/reply", **next(filled["/reply"]))),
        "ack": lambda _: _done(console.does("/ack", id=next(asked))),
        "release": lambda _: _done(console.does("/release", **next(held))),
        "resend": lambda _: _done(console.does("/resend", **next(filled["/resend"]))),
    }
    pages = ("first page", "a channel", "dead letters", "timeline")
    looks = {name: (lambda _, path=PATHS[name]: console.ask(path)) for name in pages}
    for beside in (False, True):
        over = threading.Event()
        other = threading.Thread(target=_open_on, args=(console, old, over if beside else None), daemon=True)
        other.start()
        for name, act in {**does, **looks}.items():
            numbers = iter(range(TIMES))
            took = median(lambda act=act, numbers=numbers: timed(lambda: act(next(numbers))), TIMES)  # type: ignore[misc]
            if beside or name in does:
                yield f"{name}{' beside another window that opens one' if beside else ''}, ms", took
        over.set()
        other.join()


def _fill_in(console: Running, action: str, ids: Sequence[str]) -> list[dict[str, str]]:
    """The page's own forms, with every field that they post, ahead of the measured time."""
    if action == "/send":
        return [console.form("/channel?to=project:p1", action, body="timed") for _ in range(2 * TIMES)]
    written = {"body": "timed"} | ({"to": "agent01"} if action == "/resend" else {})
    return [console.form(f"/archive?open={one}", action, {"id": one}, **written) for one in (*ids, *ids)]


def some_ids(post: Post) -> tuple[list[str], list[str]]:
    """Ids from the archive (from the log if there is none) and from the live log."""
    live = [record["id"] for record in post.objects(MESSAGES)[:TIMES]]
    archives = [path for path in post.file("agent-mailbox-archive").glob("*.jsonl") if "reads" not in path.name]
    if not archives:
        return live, live
    with open(archives[0], "rb") as file:
        return [json.loads(next(file))["id"] for _ in range(TIMES)], live


def _asked(post: Post, count: int) -> list[str]:
    """Ids of messages that ask the person for an ack."""
    lines = (json.dumps({"recipient": "user", "content": f"asked {n}", "ack": True}) for n in range(count))
    post.ok("send", "--from", "agent01", "--jsonl", "-", stdin="".join(f"{line}\n" for line in lines))
    return [m["id"] for m in post.objects(MESSAGES) if m["content"].startswith("asked ")][-count:]


def _held(post: Post, count: int) -> list[dict[str, str]]:
    """Live messages that a reader may give back."""
    live = {record["id"] for record in post.objects(MESSAGES)}
    read = [record for record in post.objects(READS) if record["message_id"] in live and record["event"] == "read"]
    return [{"id": one["message_id"], "reader": one["reader_session_id"]} for one in read[:count]]


def _done(told: dict[str, object]) -> None:
    """A refusal would be quick, and measures nothing."""
    assert told["kind"] == "done", told


def _open_on(console: Running, ids: Sequence[str], over: threading.Event | None) -> None:
    """Open messages until it is over (None: it is at once)."""
    while over is not None and not over.is_set():
        for message_id in ids:
            console.ask(f"/archive?open={message_id}")


@contextmanager
def looked_at(post: Post) -> Iterator[tuple[Running, Page]]:
    """A console, and a browser's page of a channel, for a ``with`` block."""
    with Running(post) as console, browsers.opened() as made:
        console.enter()
        context = made.new_context()
        name, _, value = console.cookie.partition("=")
        context.add_cookies([{"name": name, "value": value, "url": console.url}])
        page = context.new_page()
        page.goto(f"{console.url}channel?to=project:p1")
        page.wait_for_selector(".link-state.live")
        yield console, page


def send_one(post: Post, text: str) -> str:
    """Send a message to the channel as an agent does; its id."""
    sent = post.run("send", "--from", "agent01", "--to", "project:p1", "--body", text, "--json")
    message_id: str = sent.json["message"]["id"]
    return message_id


def screen(post: Post, times: int) -> tuple[float, float]:
    """How long after its acknowledgement a message is in a frame of the browser: median and worst, ms."""
    took = []
    with looked_at(post) as (_, page):
        page.evaluate(NOTE_FRAMES)
        for number in range(times):
            message_id = send_one(post, f"timed {number}")
            acknowledged = time.time() * 1000
            page.wait_for_function("i => window.at[i]", arg=message_id)
            took.append(max(float(page.evaluate("i => window.at[i]", message_id)) - acknowledged, 0.0))
    return statistics.median(took), max(took)


def live(post: Post, count: int, minutes: float) -> Iterator[tuple[str, float]]:
    """What so many messages cost that come one by one, for so long, while a page looks on."""
    with looked_at(post) as (console, page):
        yield "memory before the live messages, MiB", memory(console.pid)
        begun, most, last = time.monotonic(), 0, ""
        for number in range(count):
            last = send_one(post, f"event {number}")
            most = max(most, memory(console.pid))
            time.sleep(max(begun + (number + 1) * minutes * 60 / count - time.monotonic(), 0))
        page.wait_for_selector(f"#m-{last}")
        yield f"{count:,} live messages, minutes", (time.monotonic() - begun) / 60
        yield "most memory meanwhile, MiB", most
        yield "elements of the page behind them", page.evaluate("document.querySelectorAll('*').length")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench-console")
    parser.add_argument("--sizes", default="1000,1000000", help="messages behind the page")
    parser.add_argument("--messages", type=int, default=40, help="messages to time to the screen")
    parser.add_argument("--idle", type=float, default=10, help="seconds to watch it idle")
    parser.add_argument("--live", type=int, default=0, help="messages that come one by one, at the end")
    parser.add_argument("--minutes", type=float, default=60, help="for how long they come")
    given = parser.parse_args()
    for count in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="bench-console-") as scratch:
            post = Post(Path(scratch))
            fill(post, count)
            print(f"\n{count:,} messages, {AGENTS} agents\n\n| | |\n| --- | ---: |", flush=True)
            for what, value in pages(post, given.idle):
                print(f"| {what} | {value:.1f} |", flush=True)
            middle, worst = screen(post, given.messages)
            print(f"| on the screen after the acknowledgement, median, ms | {middle:.0f} |")
            print(f"| the slowest of {given.messages} | {worst:.0f} |", flush=True)
            for what, value in live(post, given.live, given.minutes) if given.live else ():
                print(f"| {what} | {value:.1f} |", flush=True)


if __name__ == "__main__":
    main()
