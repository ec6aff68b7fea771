"""A session of the real client that has a lead."""

from __future__ import annotations

import json
import re
import sys
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.control_desk import ControlDesk
from tests.e2e.standin import in_turn
from tests.helpers import MAIN, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.client import Client

    Body = dict[str, Any]

LEAD = "boss"
ASKED = ("--permission-mode", "default")


class Worker:
    """A session with a lead, who acts from processes of its own."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.post = client.post
        self.id = str(uuid.uuid4())
        self.post.register(LEAD)
        self.post.register(self.id, "--lead", LEAD)
        self.desk = ControlDesk(OpenMailbox(str(self.post.box)))

    def file(self, name: str) -> Path:
        """A file of the project."""
        return self.client.project / name

    def lead(self, *words: object) -> Any:
        """A command of the lead, in a process of its own."""
        result = self.post.run("control", *words, "--session", LEAD, "--json")
        assert result.rc == 0, result
        return result.json

    def asked(self) -> Any:
        """The oldest request that waits for the lead, once there is one."""
        until(lambda: self.desk.pending(LEAD))  # in this process: starting many takes what the client needs to ask
        return self.lead("pending")["requests"][0]

    def work(self, *answers: list[Body], words: tuple[object, ...] = ASKED) -> dict[str, tuple[bool, str]]:
        """A run in which the model answers so; what each of its tools told it: whether that was an error, and what."""
        self.client.model.script = in_turn(*answers)
        self.client.ask("PROMPT", "--session-id", self.id, *words)
        return self.told()

    def told(self) -> dict[str, tuple[bool, str]]:
        """What the tools told the model, by the use's id."""
        found = {}
        for body in self.client.model.requests:
            for message in body["messages"]:
                for block in message["content"] if isinstance(message["content"], list) else ():
                    if block["type"] == "tool_result":
                        content = block["content"]
                        text = content if isinstance(content, str) else json.dumps(content)
                        found[block["tool_use_id"]] = (block.get("is_error", False), text)
        return found

    def while_working(self, do: Callable[[], Any], *answers: list[Body], **how: Any) -> list[tuple[bool, str]]:
        """The same, with something done beside it; what the tools told, in order."""
        failed: list[BaseException] = []

        def beside() -> None:
            try:
                do()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=beside)
        thread.start()
        try:
            found = self.work(*answers, **how)
        finally:
            thread.join()
        assert not failed, failed
        return [found[key] for key in sorted(found)]

    def log(self) -> list[dict[str, Any]]:
        """Every control message and what became of it."""
        return list(self.post.ok("control", "log")["messages"])


def own_shim(worker: Worker) -> Path:
    """A copy of the shim, which the hooks call from now on: it may be broken, the checkout's may not."""
    settings = worker.client.project / ".claude/settings.local.json"
    text = settings.read_text()
    shim = Path(json.loads(text)["hooks"]["PermissionRequest"][0]["hooks"][0]["command"].split()[0])
    copy = worker.post.scratch / shim.name
    main = f"python={sys.executable} main={MAIN} "
    copy.write_text(re.sub(r"(?m)^python= main= (?=state=)", main, shim.read_text()))
    copy.chmod(0o755)
    settings.write_text(text.replace(str(shim), str(copy)))
    return copy
