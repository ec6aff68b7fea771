"""``scripts/moving-picture``: README's picture, from a real run of two Claude Code terminals and the person's own.

The models are stand-ins; all else is real. A terminal multiplexer draws the three, and is asked for its screen all the
time. Long waits are shortened in the picture, and nothing else is changed.
"""

from __future__ import annotations

import html
import itertools
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from tests.door import switches
from tests.e2e.client import Client, client_program
from tests.e2e.standin import StandIn, conversation, in_turn, said, use
from tests.helpers import DOOR, MESSAGES, READS, ROOT, TOOLS, Post, delete, until

if TYPE_CHECKING:
    from tests.e2e.standin import Body

TARGET = ROOT / "docs/screenshots/first-mail.svg"
COLUMNS, ROWS, LOW = 131, 34, 14
"""The multiplexer's screen, and the rows of the person's terminal below the other two."""
LONGEST, LENGTH = 0.9, 8.0
"""Seconds that one screen stays at most, and that the whole picture takes."""
WIDE, HIGH = 7.25, 15.5
COLOURS = {
    **dict(enumerate(("#282c34", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf"))),
    **dict(enumerate(("#5c6370", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#ffffff"), 8)),
}


class Screen:
    """A multiplexer with the three terminals, for a ``with`` block."""

    def __init__(self, socket: Path) -> None:
        self._tmux = ("tmux", "-S", str(socket), "-f", "/dev/null")
        self.frames: list[tuple[float, str]] = []

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)

    def tell(self, *words: str) -> str:
        """Run one of the multiplexer's commands; return what it says."""
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=True).stdout

    def begin(self, directory: Path, first: str, *others: str) -> None:
        """Start the three terminals: two side by side, and one below."""
        self.tell("new-session", "-d", "-c", str(directory), "-x", str(COLUMNS), "-y", str(ROWS), first)
        for name, value in (
            ("status", "off"),
            ("pane-border-style", "fg=colour8"),
            ("default-terminal", "tmux-256color"),
        ):
            self.tell("set-option", "-g", name, value)
        for command, how in zip(others, (("-h",), ("-v", "-f", "-l", str(LOW))), strict=True):
            self.tell("split-window", "-c", str(directory), *how, command)

    def type(self, pane: int, text: str) -> None:
        """Type into a terminal, slowly enough to be read; a shell is let come back to its prompt first."""
        self.wait(lambda: pane < 2 or self.text(pane).rstrip().endswith("you$"))
        for letters in re.findall(r".{1,6}", text):
            self.tell("send-keys", "-t", f"0.{pane}", "-l", letters)
            self.wait(letters.split()[-1], pane)
        time.sleep(0.7)  # the client takes a key that comes at once for a part of the text
        self.tell("send-keys", "-t", f"0.{pane}", "Enter")

    def text(self, pane: int) -> str:
        """What a terminal shows."""
        return self.tell("capture-pane", "-p", "-t", f"0.{pane}")

    def look(self) -> None:
        """Keep the screen as it is now, if it changed."""
        shown = "\f".join(self.tell("capture-pane", "-e", "-p", "-t", f"0.{pane}") for pane in range(3))
        if not self.frames or self.frames[-1][1] != shown:
            self.frames.append((time.monotonic(), shown))

    def wait(self, condition: object, pane: int = 0) -> None:
        """Look until a terminal shows a text, or a condition holds."""

        def holds() -> bool:
            self.look()
            return condition in self.text(pane) if isinstance(condition, str) else bool(condition())  # type: ignore[operator]

        try:
            until(holds, 60)
        except AssertionError:
            raise AssertionError(f"{condition}: {[self.text(n) for n in range(3)]}") from None


def _given(env: dict[str, str], *words: str) -> str:
    return shlex.join(["env", "-i", *(f"{name}={value}" for name, value in env.items()), *words])


def _shell(command: str, why: str) -> Body:
    return use("Bash", command=command, description=why)


def _environment(client: Client, **more: str) -> dict[str, str]:
    """The environment of a client, as a terminal gives it."""
    captured: dict[str, str] = {}

    class Popen:
        def __init__(self, _: object, env: dict[str, str], **__: object) -> None:
            captured.update(env)

    real, subprocess.Popen = subprocess.Popen, Popen  # type: ignore[misc, assignment]
    try:
        client.start(env={"TERM": "tmux-256color", **more})
    finally:
        subprocess.Popen = real  # type: ignore[misc]
    return captured


def record(scratch: Path) -> list[tuple[float, str]]:
    """Run the story, and return the screens with their times."""
    post = Post(scratch)
    post.env["PATH"] = f"{TOOLS}:{post.env['PATH']}"
    binary = client_program(CLAUDE_CODE)
    with StandIn() as alice_model, StandIn() as bob_model, Screen(scratch / "s") as screen:
        clients = [Client(post, binary, model) for model in (alice_model, bob_model)]
        project = clients[0].project
        (project / "Makefile").write_text("migrate:\n\t@echo added a column to events\n")

        def alice(body: Body) -> list[Body]:
            found = re.findall(r"([0-9a-f]{8}) Bob", conversation(body))
            if found and "sent " not in conversation(body):
                return [_shell(f"agent-mailbox reply {found[-1]} --body 'Go ahead; I will rebase.'", "Answer Bob")]
            return [said("Answered Bob.")]

        alice_model.script = alice
        send = "agent-mailbox send --to architect --ack --body 'May I add a column to events?'"
        asked = in_turn(
            [_shell(send, "Ask the architect")],
            [said("I asked the architect.")],
            [_shell("make migrate", "Add the column")],
            [said("Done: migrated.")],
        )
        bob_model.script = asked
        named = ({"AGENT_MAILBOX_ROLE": "architect", "AGENT_MAILBOX_NAME": "Alice"}, {"AGENT_MAILBOX_NAME": "Bob"})
        more = (named[0], {**named[1], "AGENT_MAILBOX_LEAD": "user"})
        panes = [
            _given(_environment(client, **env), str(binary), "--permission-mode", "default")
            for client, env in zip(clients, more, strict=True)
        ]
        own = {
            **post.environ(),
            "PS1": "you$ ",
            "AGENT_MAILBOX_SESSION": "user",
            "TERM": "tmux-256color",
            "PYTHONPATH": f"{DOOR}:{ROOT}",
        }
        screen.begin(project, *panes, _given(own, "bash", "--norc", "--noprofile"))
        roster = lambda: {a["name"]: a for a in post.ok("roster", "list")["agents"]}  # noqa: E731
        screen.wait(lambda: {"Alice", "Bob"} <= roster().keys())
        ids = {name: agent["session_id"] for name, agent in roster().items()}
        bells = [post.file(".cache", "doorbell", ids[name]) for name in ("Alice", "Bob")]
        screen.wait(lambda: all(bell.exists() for bell in bells))
        screen.frames.clear()
        screen.type(1, "ask the architect whether you may add a column")
        screen.wait("make migrate", 1)
        screen.wait(lambda: post.ok("control", "pending", "--session", "user")["requests"])
        seen = lambda: [r for r in post.objects(READS) if r.get("event") == "seen"]  # noqa: E731
        screen.wait(lambda: len(seen()) >= 1)
        request = post.ok("control", "pending", "--session", "user")["requests"][0]["id"]
        sent = next(m["id"] for m in post.objects(MESSAGES) if "May I add" in m["content"])
        screen.type(2, f"agent-mailbox show {sent[:8]}")
        screen.wait("seen", 2)
        screen.type(2, "agent-mailbox pending")
        screen.wait(request[:9], 2)
        screen.type(2, f"agent-mailbox approve {request[:9]}")
        screen.wait("Done: migrated", 1)
        screen.look()
        return [*screen.frames, (time.monotonic() + 2, screen.frames[-1][1])]


def timed(frames: list[tuple[float, str]]) -> list[tuple[float, float, str]]:
    """Return the screens with beginning and end in seconds of the picture: long waits are shortened, then all fits."""
    spans = [min(LONGEST, later - at) for (at, _), (later, _) in itertools.pairwise(frames)]
    scale, now, found = LENGTH / sum(spans), 0.0, []
    for (_, shown), span in zip(frames, spans, strict=False):
        found.append((now, now + span * scale, shown))
        now += span * scale
    return found


SGR = re.compile(r"\x1b\[([\d;]*)m")


def runs(line: str) -> list[tuple[int, str, str]]:
    """Return a line's pieces: column, style as SVG writes it, and text."""
    found, column, style = [], 0, {"fill": "#d7dae0"}
    parts = SGR.split(line)
    for number, part in enumerate(parts):
        if number % 2:
            _style(style, part)
        elif part:
            if part.strip() or "back" in style:
                found.append((column, " ".join(f'{k}="{v}"' for k, v in sorted(style.items()) if k != "back"), part))
            column += len(part)
    return found


def _style(style: dict[str, str], codes: str) -> None:
    numbers = [int(code or 0) for code in codes.split(";")]
    while numbers:
        code = numbers.pop(0)
        if code == 0:
            style.clear()
            style["fill"] = "#d7dae0"
        elif code == 1:
            style["font-weight"] = "bold"
        elif code == 2:
            style["opacity"] = "0.6"
        elif code == 22:
            style.pop("font-weight", None)
            style.pop("opacity", None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style["fill"] = COLOURS[code - 30 if code < 90 else code - 82]
        elif code == 39:
            style["fill"] = "#d7dae0"
        elif code in (38, 48) and numbers:
            colour = _wide(numbers)
            if code == 38:
                style["fill"] = colour


def _wide(numbers: list[int]) -> str:
    if numbers.pop(0) == 2:
        red, green, blue = numbers[:3]
        del numbers[:3]
        return f"#{red:02x}{green:02x}{blue:02x}"
    code = numbers.pop(0)
    if code < 16:
        return COLOURS[code]
    if code >= 232:
        return "#" + f"{8 + 10 * (code - 232):02x}" * 3
    levels = (0, 95, 135, 175, 215, 255)
    return "#" + "".join(f"{levels[(code - 16) // step % 6]:02x}" for step in (36, 6, 1))


def _piece(x: float, style: str, text: str) -> str:
    return f'<tspan x="{x:.1f}" {style}>{html.escape(text)}</tspan>'


def _height(pane: int, row: float) -> float:
    """Return where a row of a terminal is: the person's has its title below the rim."""
    return row * HIGH + (HIGH * 1.6 if pane == 2 else 0)


def picture(frames: list[tuple[float, float, str]]) -> str:
    """Return the picture: each line of a terminal is there from when it was shown until it was replaced."""
    left, low = (COLUMNS - 1) // 2 + 1, ROWS - LOW
    places = ((0, 0, "Alice, the architect"), (left, 0, "Bob"), (0, low, "you"))
    lines: dict[tuple[int, int, str], list[list[float]]] = {}
    for begin, end, shown in frames:
        for pane, text in enumerate(shown.split("\f")):
            for row, line in enumerate(text.split("\n")):
                if SGR.sub("", line).strip():
                    spans = lines.setdefault((pane, row, line), [])
                    if spans and abs(spans[-1][1] - begin) < 1e-6:
                        spans[-1][1] = end
                    else:
                        spans.append([begin, end])
    names: dict[str, str] = {}
    drawn = []
    for (pane, row, line), spans in lines.items():
        x, y, _ = places[pane]
        steps = tuple((round(100 * a / LENGTH, 2), round(100 * b / LENGTH, 2)) for a, b in spans)
        rule = "".join(f"{a}%{{visibility:visible}}{b}%{{visibility:hidden}}" for a, b in steps)
        rule = ("" if steps[0][0] == 0 else "0%{visibility:hidden}") + rule
        name = names.setdefault(rule, f"k{len(names)}")
        pieces = "".join(_piece((x + column + 1) * WIDE, style, part) for column, style, part in runs(line))
        drawn.append(f'<text class="{name}" y="{_height(pane, y + row + 2.4):.1f}">{pieces}</text>')
    rules = "".join(f"@keyframes {n}{{{r}}}.{n}{{animation:{n} {LENGTH}s step-end infinite}}" for r, n in names.items())
    width, height = (COLUMNS + 2) * WIDE, (ROWS + 5) * HIGH
    titles = "".join(
        f'<text x="{(x + 1) * WIDE:.1f}" y="{_height(pane, y + 1):.1f}" fill="#7f848e">{title}</text>'
        for pane, (x, y, title) in enumerate(places)
    )
    across = (low + 1.9) * HIGH
    rim = f'<path d="M{(left + 0.2) * WIDE:.1f} 0V{across:.1f}M0 {across:.1f}H{width:.1f}" stroke="#3e4451"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="12">'
        f"<style>text{{white-space:pre}}{rules}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="#21252b"/>{rim}{titles}{"".join(drawn)}</svg>\n'
    )


def main() -> int:
    """Record, draw and write the picture."""
    if shutil.which("tmux") is None:
        print("no tmux: it draws the terminals")
        return 1
    switches.switch_now()
    scratch = Path(tempfile.mkdtemp(prefix="rec-"))
    try:
        frames = record(scratch)
    finally:
        delete(scratch)  # its clients end by and by
    TARGET.write_text(picture(timed(frames)), encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {len(frames)} screens, {TARGET.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
