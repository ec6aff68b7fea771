"""A channel of three real clients and the person, with two topics; pictures and paths attached on the way."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.console.conftest import Running, Window
from tests.console.week import picture
from tests.e2e.standin import ANSWER, bash, conversation, said
from tests.helpers import MESSAGES, PATIENCE, until
from tests.night import nightly
from tests.store.test_finding import git

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.e2e.client import Client

    Body = dict[str, Any]

pytestmark = pytest.mark.usefixtures("on_path")
NAMES = ("Ann", "Ben", "Cem")
TO = "--to project:inscription"


class Team:
    """Three clients in one project, each at work until its part is done; their models say what the test wants."""

    def __init__(self, client: Client) -> None:
        self.client, self.post = client, client.post
        git(client.project, "init", "-q")  # files of a project are what an agent may attach
        self.ids = {name: str(uuid.uuid4()) for name in NAMES}
        for name, session in self.ids.items():
            self.post.register(session, "--name", name, "--tags", "project:inscription")
        self.answers: dict[str, list[Any]] = {}
        self.failed: list[BaseException] = []
        client.model.script = self._script

    def _script(self, body: Body) -> list[Body]:
        talk = conversation(body)
        name = next((name for name in NAMES if f"PROMPT_{name}" in talk), "")
        answers = self.answers.get(name, []) if body.get("tools") else []
        while answers:
            answer = answers.pop(0)
            if isinstance(answer, tuple):
                return [bash(*answer)]
            until(lambda text=answer: self.post.file(MESSAGES).read_text().count(text))  # before this one goes on
            return [bash("true")]  # so that the mail is shown behind a tool
        return [said(ANSWER)]

    def start(self) -> list[threading.Thread]:
        """Start all three."""
        threads = [threading.Thread(target=self._work, args=(name,)) for name in NAMES]
        for thread in threads:
            thread.start()
        return threads

    def _work(self, name: str) -> None:
        try:
            self.client.ask(f"PROMPT_{name}", "--session-id", self.ids[name], "--allowedTools", "Bash")
        except BaseException as error:
            self.failed.append(error)

    def talk(self, name: str) -> str:
        """All that a session's model was told."""
        return self.client.model.asked(f"PROMPT_{name}")[-1]


def send(*words: str, attach: bool = False) -> tuple[str]:
    """A command that sends mail. With a picture it is the project's own script: of a command that names a file, the
    client asks whoever sits at it, and nobody does."""
    return (" ".join(["./share" if attach else "agent-mailbox send", *words]),)


@nightly
def test_three_agents_and_the_person_talk_in_one_channel(client: Client, browser: Browser) -> None:
    """Two topics stand apart; the person's answer reaches all three models; one's picture
    is on the page, and its path in another's conversation; the picture to the person is on the first page."""
    team = Team(client)
    (client.project / "plot.png").write_bytes(picture(64, 48))
    share = client.project / "share"
    share.write_text('#!/bin/sh\nexec agent-mailbox send "$@" --attach plot.png\n')
    share.chmod(0o755)
    team.answers = {
        "Ann": [
            send(TO, "--subject", "Index", "--body", "ASK_INDEX", attach=True),
            "PERSON_SAYS",
        ],
        "Ben": ["ASK_INDEX", send(TO, "--subject", "Release", "--body", "ASK_RELEASE"), "PERSON_SAYS"],
        "Cem": [
            "ASK_RELEASE",
            send("--to user", "--subject", "Plot", "--body", "FOR_YOU", attach=True),
            "PERSON_SAYS",
        ],
    }
    with Running(client.post) as console:
        page = Window(browser, console.enter()).go("/channel?to=project:inscription")
        threads = team.start()
        try:
            page.locator(".message", has_text="ASK_RELEASE").wait_for()
            until(lambda: client.post.file(MESSAGES).read_text().count("FOR_YOU"))
            page.locator(".message", has_text="ASK_INDEX").locator(".open").click()
            page.locator("#reply").fill("PERSON_SAYS wait for the index")
            page.get_by_role("button", name="Reply", exact=True).click()
            page.locator("#main .message", has_text="PERSON_SAYS").wait_for()
        finally:
            for thread in threads:
                thread.join(PATIENCE)
        assert not team.failed, team.failed
        for name in NAMES:
            assert team.talk(name).count("PERSON_SAYS wait") == 1, name
        stored = next(client.post.file("attachments").glob("*.png"))
        assert str(stored) in team.talk("Ben")
        assert stored.read_bytes() == (client.project / "plot.png").read_bytes()
        for topic, there, elsewhere in (("Index", "ASK_INDEX", "ASK_RELEASE"), ("Release", "ASK_RELEASE", "ASK_INDEX")):
            text = console.ask(f"/channel?to=project:inscription&topic={topic}").text
            assert (there in text, elsewhere in text) == (True, False), topic
        wide = "[...document.querySelectorAll('#main .beside img')].map((one) => one.complete && one.naturalWidth)"
        first = Window(browser, console).go("/")
        first.locator("#main a", has_text="Plot").first.click()
        until(lambda: first.evaluate(wide.replace("#main", "#details")) == [64])
        page.reload()
        page.locator("#main .beside img").first.scroll_into_view_if_needed()
        until(lambda: page.evaluate(wide) == [64])
