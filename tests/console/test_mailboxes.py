"""Several mailboxes in one console: each at a host name of its own, and what waits in the others on every page."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import shutil
from typing import TYPE_CHECKING

import jinja2
import pytest
from playwright.sync_api import expect

from agent_mailbox.console import all_mailboxes, app
from agent_mailbox.console.guard import MAX_WAYS, Gate
from agent_mailbox.store.files.paths import MESSAGES
from tests.console.conftest import Running, Window
from tests.helpers import Post

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser


def another(post: Post, project: str) -> Post:
    """Return another mailbox of the same person, in a project of that name."""
    other = copy.copy(post)
    other.box = post.scratch / project / "mail"
    other.ok("init", other.box)
    other.env = {**post.env, "AGENT_MAILBOX_DIR": str(other.box)}
    return other


def ask(post: Post, session: str, command: str) -> str:
    """Have a session ask whether it may run a command; return the request's id."""
    asked = post.ok("control", "request", "permission", "--session", session, "--tool", "Bash", "--input", command)
    request_id: str = asked["request"]["id"]
    return request_id


@pytest.fixture
def two(post: Post) -> Iterator[tuple[Running, Post]]:
    """A console with two mailboxes, and the second one, in which an agent is."""
    billing = another(post, "billing")
    billing.register("cleo", "--name", "Cleo", "--lead", "user")
    with Running(post) as console:
        yield console.enter(), billing


def test_a_person_decides_in_each_mailbox_from_one_page(two: tuple[Running, Post], browser: Browser, axe: Path) -> None:
    """The inbox and the title tell what waits elsewhere. A link leads there, signed in, and back again."""
    console, billing = two
    window = Window(browser, console)
    page = window.go("/")
    rail = page.get_by_role("navigation", name="Console")
    expect(rail.get_by_role("link", name="billing")).to_be_visible()
    request = ask(billing, "cleo", '{"command": "make deploy"}')
    elsewhere = page.get_by_role("region", name="In your other mailboxes")
    expect(elsewhere).to_contain_text("billing: Cleo")
    expect(page).to_have_title("(1) Inbox · " + console.post.scratch.name + " · agent-mailbox")
    expect(rail.get_by_role("link", name="billing")).to_contain_text("1 to decide")
    assert window.axe(axe) == []
    elsewhere.get_by_role("link").click()
    card = page.locator("#details .card")
    expect(card).to_contain_text("make deploy")
    assert re.fullmatch(r"http://billing-[0-9a-f]{10}\.localhost:\d+/\?open=[0-9a-f-]{36}", page.url), "nothing secret"
    page.locator(".link-state.live").wait_for()
    card.get_by_role("button", name="Approve").click()
    page.get_by_role("navigation", name="Console").get_by_role("link", name=console.post.scratch.name).click()
    expect(page.locator(".brand")).to_contain_text(console.post.scratch.name)
    expect(page.get_by_role("region", name="Nothing waits")).to_be_visible()
    assert window.problems == []
    answer = json.loads(billing.objects(MESSAGES)[-1]["content"])
    assert (answer["type"], answer["requestId"], answer["approved"]) == ("permission_response", request, True)


def read_rail(console: Running) -> dict[str, str]:
    """Return the names and the addresses of the rail's mailboxes."""
    text = console.ask("/rail").text.partition("<h2>Mailboxes</h2>")[2].partition("</ul>")[0]
    return {name: href for href, name in re.findall(r'<a href="([^"]*)"[^>]*>\s*<span class="name"[^>]*>([^<]*)', text)}


def test_a_way_to_another_mailbox_serves_one_browser_once(two: tuple[Running, Post]) -> None:
    """Its token takes one browser in, at that mailbox alone; a signed-in browser stays the one it is. Title and icon
    tell which mailbox it is."""
    console, other = two
    to_billing = read_rail(console)["billing"].replace("&amp;", "&")
    way = console.ask(to_billing).headers["location"]
    host, token = way.partition("://")[2].partition("/")[0], way.partition("#token=")[2]
    assert console.ask("/session", {"token": token}).status == 401, "the first mailbox knows no such token"
    there = {"Host": host, "Cookie": None, "Origin": f"http://{host}"}
    entered = console.ask("/session", {"token": token, "next": "/fleet"}, headers=there)
    assert (entered.status, entered.headers["location"]) == (303, "/fleet")
    mine = {**there, "Cookie": entered.headers["set-cookie"].partition(";")[0]}
    assert console.ask("/session", {"token": token}, headers=there).status == 401, "it works once"
    again = console.ask(to_billing).headers["location"].partition("#token=")[2]
    assert "set-cookie" not in console.ask("/session", {"token": again}, headers=mine).headers
    there_page, here_page = (console.ask("/fleet", headers=at).text for at in (mine, {}))
    assert "cleo" in there_page
    titles = [page.partition("<title>")[2].partition("</title>")[0] for page in (there_page, here_page)]
    assert titles == [f"Fleet · {name} · agent-mailbox" for name in ("billing", console.post.scratch.name)]
    for at, post in ((mine, other), ({}, console.post)):  # of 360 colours two may be the same
        hue = int.from_bytes(hashlib.sha256(str(post.box).encode()).digest()[:2], "big") % 360
        assert f"hsl({hue} " in console.ask("/icon.svg", headers=at).text, "its colour follows from its place"
    assert console.ask("/fleet", headers={**mine, "Host": console.host}).status == 401, "each has browsers of its own"


def test_only_a_signed_in_browser_gets_a_way(two: tuple[Running, Post]) -> None:
    """A browser without a session gets none. None leads to an unknown mailbox, and a strange host has no console."""
    console, _ = two
    to_billing = read_rail(console)["billing"].replace("&amp;", "&")
    assert console.ask(to_billing, headers={"Cookie": None, "Accept": "*/*"}).status == 401
    assert console.ask("/mailbox?to=0123456789").status == 404
    assert "//" not in console.ask(to_billing + "&next=//elsewhere.example").headers["location"].partition("://")[2]
    assert console.ask("/", headers={"Host": f"strange-0123456789.localhost:{console.port}"}).status == 421


def test_the_console_of_a_further_mailbox_compiles_no_page_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each console has its own pages, with its own names, of what this process compiled."""
    first = app.make_templates("/one/box", str, "/static/1")
    monkeypatch.delattr(jinja2.Environment, "compile")
    further = app.make_templates("/two/box", str, "/static/1")
    assert further.list_templates() == first.list_templates()
    assert [env.globals["mailbox"] for env in (first, further)] == ["one", "two"]


def test_a_way_voids_no_printed_link() -> None:
    """A printed link and a way work beside each other, each once; of many ways the oldest ends."""
    gate = Gate(lambda: 0.0)
    link, ways = gate.new_link_token(), [gate.new_way_token() for _ in range(MAX_WAYS + 1)]
    assert [gate.take_token(token) for token in (link, *ways)] == [True, False, *[True] * MAX_WAYS]
    assert not any(map(gate.take_token, (link, *ways)))


def test_behind_a_proxy_the_others_are_named_without_a_link(post: Post) -> None:
    """One name serves one mailbox: what waits in the others is told, and nothing leads there."""
    billing = another(post, "billing")
    billing.register("cleo", "--name", "Cleo", "--lead", "user")
    ask(billing, "cleo", '{"command": "make deploy"}')
    with Running(post, "--origin", "https://console.example") as console:
        there = {"Host": "console.example", "Origin": "https://console.example"}
        cookie = console.ask("/session", {"token": console.token}, headers=there).headers["set-cookie"]
        signed = {**there, "Cookie": cookie.partition(";")[0]}
        text = console.ask("/rail", headers=signed).text.partition("<h2>Mailboxes</h2>")[2]
        assert re.search(r'<p class="place">\s*<span class="name"[^>]*>billing</span>', text)
        key = all_mailboxes.key_of(str(billing.box.resolve()))
        assert console.ask(f"/mailbox?to={key}", headers=signed).status == 404


def test_the_list_is_what_the_persons_own_init_recorded(post: Post) -> None:
    """One that came later is there, one that is gone is not, and one of two alike is told by its place."""
    told: list[set[str]] = []
    all_of_them = all_mailboxes.AllMailboxes(str(post.box.resolve()), told.append)
    assert [one.name for one in all_of_them.listed] == [post.scratch.name]
    billing, twin = another(post, "billing"), another(post, "old/billing")
    (post.scratch / "strange").mkdir()
    (post.scratch / "strange" / MESSAGES).touch()
    all_of_them.look_again()
    assert [one.name for one in all_of_them.listed][1:] == ["billing in old", f"billing in {post.scratch.name}"]
    assert [one.decisions for one in all_of_them.listed] == [0, 0, 0]
    shutil.rmtree(twin.box)
    billing.file(MESSAGES).unlink()
    billing.file(MESSAGES).mkdir()
    all_of_them.look_again()
    assert [(one.name, one.decisions) for one in all_of_them.listed][1:] == [("billing", None)], "said, and not zero"
    all_of_them.look_again()
    mine, its, gone = (str(one.box.resolve()) for one in (post, billing, twin))
    assert told == [{mine, its, gone}, {its, gone}], "without news nobody is told"
