"""A client's part in a team, as 2.1.329 plays it: sends under its lock; fetches what it delivers and removes the rest.

``python -m tests.teams.client send INBOX FROM COUNT`` and ``... fetch INBOX LOG TRANSCRIPT``. The real client is in
``tests/e2e``; this one can be made to meet others at every instant.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
import uuid
from typing import Any

PAUSES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.1, 0.1, 0.1, 0.1, 0.1)


class Locked:
    """The client's lock; ``RuntimeError`` where its send would fail."""

    def __init__(self, path: str) -> None:
        self.path = path + ".lock"

    def __enter__(self) -> None:
        for pause in (*PAUSES, None):
            try:
                os.mkdir(self.path)
                return
            except FileExistsError:
                try:
                    if time.time() - os.stat(self.path).st_mtime > 10:
                        os.rmdir(self.path)
                except OSError:
                    pass
            if pause is not None:
                time.sleep(pause)
        raise RuntimeError("send failed: the inbox is locked")

    def __exit__(self, *_: object) -> None:
        os.rmdir(self.path)


def load(path: str) -> Any:
    """The array; None for what is none, which the client leaves alone."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, ValueError):
        return None


def replace(path: str, entries: list[Any]) -> None:
    """Under the lock."""
    aside = f"{path}.tmp.{secrets.token_hex(4)}"
    with open(aside, "x", encoding="utf-8") as file:
        json.dump(entries, file)
    os.rename(aside, path)


def send(path: str, sender: str, text: str) -> None:
    """As ``SendMessage`` does."""
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write("[]")
    except FileExistsError:
        pass
    path = os.path.realpath(path)
    with Locked(path):
        made = {"from": sender, "text": text, "timestamp": "2026-11-21T09:00:00.000Z", "msgV": 1, "read": False}
        replace(path, [*load(path), {**made, "msg_id": str(uuid.uuid4()), "type": "message"}])


def fetch(path: str, log: str, transcript: str) -> None:
    """Deliver what is deliverable, then empty the inbox of it."""
    there = load(path)
    if not there:
        return
    try:
        with Locked(os.path.realpath(path)):
            there = load(path)
            replace(path, [])
    except RuntimeError:
        return  # it looks again
    good = [e for e in there if all(isinstance(e.get(k), str) for k in ("from", "text", "timestamp"))]
    good = [e for e in good if e.get("read") is not True]
    with open(log, "a", encoding="utf-8") as file:
        file.writelines(json.dumps(e) + "\n" for e in good)
    with open(transcript, "a", encoding="utf-8") as file:
        for e in good:
            content = f'<teammate-message teammate_id="{e["from"]}">\n{e["text"]}\n</teammate-message>'
            file.write(json.dumps({"type": "user", "message": {"role": "user", "content": content}}) + "\n")


def _is_sent(path: str, sender: str, text: str) -> bool:
    try:
        send(path, sender, text)
    except RuntimeError:
        return False  # on a busy machine others may have the inbox for longer than its tries
    return True


def main(what: str, path: str, *more: str) -> None:
    """Waits for its input to end before it sends; fetches until then."""
    if what == "send":
        sender, count = more
        print("ready", flush=True)
        sys.stdin.read()
        for number in range(int(count)):
            while not _is_sent(path, sender, f"native {number}"):
                pass  # as its model would, told that it failed
            time.sleep(0.002)
        return
    os.set_blocking(0, False)
    while sys.stdin.buffer.read() != b"":
        fetch(path, *more)
        time.sleep(0.01)
    fetch(path, *more)


if __name__ == "__main__":
    main(*sys.argv[1:])
