"""The shell of the pages, as a reader meets it: blocks to paste, and transcripts with what the program answered.

Belongs here: finding both, and making one script of a page, to be run in a fresh home.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```\n(.*?)(?=^\n[^*\n]|\Z)", re.DOTALL | re.MULTILINE)
"""A block: its indentation, language and text, and the line below it if that says why it is not run."""
REASON = re.compile(r"\A\n\*Not run by the test of these pages[,:] [^*]{20,}\*")
PROMPT = re.compile(r"^(\w*)\$ (.+)$", re.MULTILINE)
ANY_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r" *(?:[A-Z_]+=\S+ )*(?:agent-mailbox|scripts/\w+|pipx|uvx?|pip|git|claude|codex|opencode)( |$)")
"""A line that a reader would paste into a shell."""
SERVES = ("agent-mailbox console",)
"""Commands that serve until somebody ends them."""
SAME = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b20\d\d-\d\d-\d\d \d\d:\d\dZ"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}\b"), "SHORT"),
    (re.compile(r"\b(perm|plan|task|note|lease|watch)-[0-9a-f]{4,12}\b"), r"\1-ID"),
    (re.compile(r"\bwaiting \d+ s\b"), "waiting N s"),
)
"""What differs in each run."""


class Block:
    """A block of shell or a transcript of a page. ``scripts/package`` runs the lines that install."""

    def __init__(self, language: str, text: str, below: str) -> None:
        lines = text.splitlines(keepends=True)
        self.installs = [line for line in lines if language == "sh" and line.startswith("pipx ")]
        self.language, self.text = language, "".join(line for line in lines if line not in self.installs)
        self.reason = bool(REASON.match(below))

    @property
    def steps(self) -> list[tuple[str, str, str]]:
        """The commands of a transcript: whose it is, the command, and what is shown behind it."""
        parts = PROMPT.split(self.text)[1:]
        return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of shell and the transcripts of a page."""
    for found in FENCE.finditer(page.read_text(encoding="utf-8")):
        indent, language, text, below = found.groups()
        text = "\n".join(line.removeprefix(indent) for line in text.splitlines()) + "\n"
        if language in ("sh", "bash", "console") or (language == "text" and PROMPT.search(text)):
            yield Block(language, text, below)


def list_hidden_commands(page: Path) -> list[str]:
    """Return the commands in blocks that are neither shell nor a transcript, so that nothing runs them."""
    text = page.read_text(encoding="utf-8")
    others = [
        found[2] for found in ANY_FENCE.finditer(text) if found[1] in ("", "text") and not PROMPT.search(found[2])
    ]
    return [line for block in others for line in block.splitlines() if COMMAND.match(line)]


def alike(text: str) -> str:
    """Return an answer without what differs in each run."""
    for pattern, word in SAME:
        text = pattern.sub(word, text)
    return text.strip()


def script(page: list[Block], mark: str) -> str:
    """Return what a reader would paste from a page, in order; ``mark`` is before the answers of a transcript.

    An id that a transcript shows is the one that its first command printed.
    """
    lines = []
    for block in page:
        if block.language != "text":
            lines.append(_served(block.text))
            continue
        ids: dict[str, str] = {}
        for number, (who, command, answer) in enumerate(block.steps):
            for name, variable in ids.items():
                command = re.sub(rf"\b{re.escape(name)}\b", f'"${variable}"', command)
            begin = f"AGENT_MAILBOX_SESSION={shlex.quote(who)} " if who else ""
            lines.append(f"printf '%s\\n' {mark}; {begin}{command} > .shown; cat .shown")
            found = re.search(r"\b(?:sent ([0-9a-f]{8})\b|asked \w+: (perm-[0-9a-f]+))", answer)
            if found:
                name = found[1] or found[2]
                ids[name] = f"id{len(ids)}_{number}"
                lines.append(
                    f"{ids[name]}=$(sed -nE 's/^(sent|asked [^:]*:) (perm-[0-9a-f]+|[0-9a-f]{{8}}).*/\\2/p' .shown)"
                )
        lines.append(f"printf '%s\\n' {mark}; rm -f .shown")
    return "\n".join(lines) + "\n"


def _served(text: str) -> str:
    """Return a block of which a server is ended once it says where it is."""
    if not text.startswith(SERVES):
        return text
    return f"coproc {text.rstrip()}\ngrep -m 1 http <&${{COPROC[0]}}; kill $COPROC_PID; wait $COPROC_PID || true\n"
