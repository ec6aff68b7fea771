"""Mail that nobody read, a part at a time; dead letters sent again, several at once; figures of all agents."""

from __future__ import annotations

import os
import re
import uuid
from typing import TYPE_CHECKING

from agent_mailbox.console import survey, unread_mail
from agent_mailbox.console.unread import Unread
from agent_mailbox.core.instant import HOUR
from agent_mailbox.core.marks import PINNED
from agent_mailbox.mailbox.mail_pages import MailPages
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import wall_clock
from tests.console.conftest import Running, Window
from tests.helpers import MESSAGES, Post, until

if TYPE_CHECKING:
    import pytest
    from playwright.sync_api import Browser


def dead_letter(running: Running, to: str, body: str) -> str:
    """Mail that expired long ago."""
    message_id = str(uuid.uuid4())
    line = {"id": message_id, "sender": "ada", "recipient": to, "content": body, "ttl_hours": 1}
    running.post.append(MESSAGES, {**line, "timestamp": "2026-03-16T10:00:00Z"})
    return message_id


def sent_again(running: Running) -> list[tuple[str, str]]:
    """To whom the person sent what again."""
    mine = [m for m in running.post.objects(MESSAGES) if m["sender"] == "user"]
    return [(str(m["recipient"]), m["content"].rpartition("> ")[2]) for m in mine]


def test_the_chosen_dead_letters_go_to_whoever_has_the_place_now(running: Running, browser: Browser) -> None:
    """A dead agent's to its role, the others where they went; in one press, each once; what is not chosen stays."""
    post = running.post
    post.register("ada", "--name", "Ada")
    post.register("gone", "--name", "Gone", "--role", "tester", "--tags", "project:x")
    letters = [dead_letter(running, to, f"letter {n}") for n, to in enumerate(("gone", "project:x", "ada"))]
    post.ok("roster", "retire", "gone")
    page = Window(browser, running).go("/dead")
    until(lambda: bool(page.reload()) and page.locator(".message").count() == 3)
    assert re.search(r"letter 2.*letter 1.*letter 0", page.inner_text("main"), re.DOTALL)  # the newest is the first
    for message_id in letters[:2]:
        page.locator(f"#m-{message_id} .pick input").check()
    page.get_by_label("Your note above each").fill("still of use?")
    page.get_by_role("button", name="Send the chosen again").click()
    page.get_by_text("2 sent again.").wait_for()
    assert sent_again(running) == [("project:x", "letter 1"), ("role:tester", "letter 0")]
    assert all("still of use?" in m["content"] for m in post.objects(MESSAGES) if m["sender"] == "user")


def test_a_form_that_is_sent_twice_sends_each_letter_once(running: Running) -> None:
    """A form that is sent twice sends each chosen letter once. It tells which letter it cannot send."""
    running.post.register("ada", "--name", "Ada")
    letter, form = dead_letter(running, "ada", "letter"), str(uuid.uuid4())
    for _ in range(2):
        fields = {f"chosen:{letter}": "1", f"chosen:{uuid.uuid4()}": "1", "message_id": form}
        told = running.does("/resend-chosen", **fields)
        assert told["kind"] == "done"
        assert re.fullmatch(r"1 sent again\. \w+ was not sent: .*", told["said"]), told
    assert sent_again(running) == [("ada", "letter")]
    assert running.does("/resend-chosen")["status"] == 400


def test_a_long_list_of_mail_is_shown_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each letter on one page, the newest first; a page beyond the last is the first: it says nothing of none."""
    monkeypatch.setattr(unread_mail, "PAGE", 2)
    shown, skip = [], ""
    while skip is not None:
        part = unread_mail._list_part(range(5), {"skip": skip})
        shown.append(part.shown)
        skip = part.older.partition("skip=")[2] or None
    assert shown == [(4, 3), (2, 1), (0,)]
    for odd in ("9", "-1", "x", "9" * 40):
        assert unread_mail._list_part(range(5), {"skip": odd}).shown == (4, 3)


def test_all_agents_figures_take_one_look_at_the_logs(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as each agent's own look gives, which a large log still has."""
    post = running.post
    for name in ("ada", "bo"):
        post.register(name, "--role", "tester")
    for to in ("ada", "role:tester", "all"):
        post.send("user", to, "x", "--ack")
    post.check("ada")
    quick = survey.take_survey(Mailbox(str(post.box)))
    monkeypatch.setattr(survey, "LARGE", -1)
    each = survey.take_survey(Mailbox(str(post.box)))
    figures = [
        {who: (line.unread, [m.id for m in line.owed]) for who, line in one.lines.items()} for one in (quick, each)
    ]
    assert figures[0] == figures[1]
    assert {figures[0][name][0] for name in ("ada", "bo")} == {0, 1}
    monkeypatch.setattr(survey, "LARGE", 1 << 30)
    monkeypatch.setattr(Mailbox, "peek", lambda *_: 1 / 0)
    survey.take_survey(Mailbox(str(post.box)))


def test_unread_letters_are_counted_where_they_are_shown(running: Running) -> None:
    """The rail counts an agent's letters to the person alone, and the page of that talk shows and clears those. Mail to
    all is new in its channel. Each letter can be marked as read where it is opened."""
    post = running.post
    post.register("ada", "--name", "Ada")
    running.ask("/")  # what comes from here on is new
    post.send("ada", "all", "BROADCAST")
    first, second = (post.send("ada", "user", text) for text in ("LETTER", "ANOTHER"))

    def count() -> list[str]:
        return re.findall(r'data-channel="(?:all|@ada)" data-new="(\d+)"', running.ask("/rail").text)

    assert count() == ["1", "2"]
    talk = running.ask("/direct?with=ada").text
    assert ("LETTER" in talk, "BROADCAST" in talk) == (True, False)
    assert running.submit(f"/direct?with=ada&open={second}", "/read", {"ids": second})["kind"] == "done"
    assert count() == ["1", "1"]
    assert running.submit("/direct?with=ada", "/read", {"ids": first})["kind"] == "done"
    assert count() == ["1", "0"]
    assert running.submit("/channel?to=all", "/seen")["kind"] == "done"
    assert count() == ["0", "0"]


def test_what_is_put_off_is_back_though_the_clock_went_back(post: Post) -> None:
    """Nothing is out of sight for longer than one said, whatever the clock says by then."""
    at = wall_clock()
    mailbox = Mailbox(str(post.box), clock=lambda: at)
    unread = Unread(mailbox, MailPages(mailbox))
    unread.put_off("one", at + HOUR)
    assert [*unread.list_put_off()] == ["one"]
    at -= 2 * HOUR
    assert unread.list_put_off() == {}


def test_two_consoles_of_a_mailbox_keep_each_other_s_marks(post: Post) -> None:
    """Two processes pin places at once: all of them are pinned in the end."""
    post.register("ada")
    (begin, start), ends = os.pipe(), []
    for console in ("one", "two"):
        ends.append(os.fork())
        if ends[-1] == 0:
            code = 1
            try:
                mailbox = Mailbox(str(post.box))
                unread = Unread(mailbox, MailPages(mailbox))
                os.read(begin, 1)
                for number in range(60):
                    unread.set_place(PINNED, f"project:{console}-{number}", is_on=True)
                code = 0
            finally:
                os._exit(code)  # a failure must not go on with the other tests
    os.write(start, b"!!")
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in ends] == [0, 0]
    mailbox = Mailbox(str(post.box))
    assert len(Unread(mailbox, MailPages(mailbox)).load_marks().pinned) == 120
    for fd in (begin, start):
        os.close(fd)
