"""Many decisions in a short time: what is held for the undo goes in time, and nothing is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from agent_mailbox.console import actions, details
from agent_mailbox.console.desk import Desk
from agent_mailbox.console.guard import MAX_BODY
from agent_mailbox.control_plane import effects
from agent_mailbox.core.control.messages import PermissionRequest
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.console.conftest import Running, Window
from tests.control_desk import ControlDesk
from tests.helpers import MESSAGES, until

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest
    from playwright.sync_api import Browser, Route

    from agent_mailbox.core.control.control_requests import ControlRequest
    from agent_mailbox.core.inbox import Item
    from tests.helpers import Post


def ask(post: Post, count: int, expires: int | None = None) -> list[ControlRequest]:
    """So many requests of three agents."""
    asks = ControlDesk(OpenMailbox(str(post.box)))
    for name in ("ada", "bo", "cleo"):
        post.register(name)
    return [
        asks.request(
            ("ada", "bo", "cleo")[n % 3],
            PermissionRequest(tool="Bash", input={"command": f"make {n}"}, request_id=f"perm-{n:02}", expires=expires),
        )
        for n in range(count)
    ]


def chosen(running: Running, browser: Browser, count: int) -> Window:
    """A window in which the first of so many requests is chosen; none of its decisions goes by itself."""
    ask(running.post, count)
    window = Window(browser, running).unhurried()
    window.go("/")
    window.choose("perm-00")
    return window


def decided(post: Post) -> dict[str, tuple[bool, str]]:
    """Each answer of the person's: whether it approves, and its reason."""
    said = (json.loads(m["content"]) for m in post.objects(MESSAGES) if "permission_response" in m["content"])
    return {one["requestId"]: (one["approved"], one.get("notes", "")) for one in said}


def test_thirty_decisions_by_keys_lose_none(running: Running, browser: Browser) -> None:
    """Each decision closes its line and moves on; keys wait for what they decide. A reason goes with its own request.
    Those that are still held go when the page is left."""
    ids = [request.id for request in ask(running.post, 30)]
    window = Window(browser, running)
    page = window.go("/")
    shown = page.locator("#inbox .item").evaluate_all("items => items.map(item => item.id.slice(2))")
    assert sorted(shown) == ids
    for number in range(30):
        page.keyboard.press("n" if number % 2 else "y")
        if number % 2:
            page.keyboard.type(f"not {number}")
            page.keyboard.press("Enter")
    page.get_by_text("Nothing more waits here.").wait_for()
    page.goto("about:blank")
    expected = {one: (not n % 2, f"not {n}" if n % 2 else "") for n, one in enumerate(shown)}
    until(lambda: decided(running.post) == expected)
    assert window.problems == []


def test_all_that_the_page_shows_are_decided_at_once(running: Running, browser: Browser) -> None:
    """Sixty chosen requests go as one decision, and the way back is in sight on a phone, below what names them. The
    page counts those that are chosen, and says no more that all are when another comes."""
    ask(running.post, 60)
    another = ("control", "request", "permission", "--tool", "Bash", "--input", "{}", "--session", "ada")
    window = Window(browser, running, viewport={"width": 390, "height": 700}).unhurried()
    page = window.go("/")
    everything = page.get_by_label("All requests here")
    everything.check()
    page.locator(f"#r-{running.post.ok(*another)['request']['id']}").wait_for()
    expect(everything).not_to_be_checked()
    running.post.ok("control", "deny", "perm-00", "--session", "user")
    page.get_by_text("59 chosen").wait_for()
    everything.check()
    page.get_by_role("button", name="Deny the chosen").click()
    for name in ("Undo", "Send now"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 700 - 160
    page.get_by_role("button", name="Send now").click()
    page.locator("#said", has_text="60 denied").wait_for()
    assert len(decided(running.post)) == 61


def test_a_decision_is_held_no_longer_than_its_request_waits(running: Running, browser: Browser) -> None:
    """Near its deadline a decision goes at once; another one is held for the undo."""
    held, near = (request.id for request in ask(running.post, 2, OpenMailbox(str(running.post.box)).now() + 3_600_000))
    window = Window(browser, running).unhurried()
    page = window.go("/")
    for request in (held, near):
        card = window.choose(request)
        if request == near:
            card.locator("[data-until]").evaluate(
                "left => { const now = Date.now(); Date.now = () => now; left.dataset.until = now + 1900; }"
            )
        page.keyboard.press("y")
        page.locator(f"#r-{request}").wait_for(state="hidden")
    until(lambda: decided(running.post) == {near: (True, "")})
    page.locator("#held", has_text="make 0").wait_for()
    assert window.problems == []


def test_a_late_list_brings_no_decided_request_back(running: Running, browser: Browser) -> None:
    """A list that the stream sent before a decision shows its line no more, and the page is not loaded again."""
    ask(running.post, 3)
    window = Window(browser, running)
    page = window.go("/")
    window.choose("perm-00")
    loaded: list[str] = []
    page.on("request", lambda asked: loaded.append(asked.url.removeprefix(running.url).partition("?")[0]))
    page.evaluate(
        """async () => {
            const place = document.querySelector("script[type=module]").src.replace(/[^/]*$/, "refresh.js");
            const { noteGone, placeEntries, stale } = await import(place);
            const line = document.getElementById("r-perm-01");
            const order = [...document.querySelectorAll("#inbox .item")].map((item) => item.id);
            const entry = line.outerHTML;
            noteGone(line);
            placeEntries({ order, entry });
            stale("soon");  // what is due is loaded as one: the rail alone, or the page
        }"""
    )
    until(lambda: bool(page.evaluate("1") and {"", "rail"}.intersection(loaded)))
    assert ("" in loaded, page.locator("#r-perm-01").count()) == (False, 0)
    assert window.problems == []


def test_a_page_from_before_a_decision_brings_no_request_back(running: Running, browser: Browser) -> None:
    """The page may be loaded again while a decision is on its way. Its line stays away, and nothing is opened."""
    window = chosen(running, browser, 1)
    page = window.page
    before = running.ask("/").text
    page.route(running.url, lambda route: route.fulfill(body=before, content_type="text/html"))
    on_its_way: list[Route] = []
    page.route("**/decide", lambda route: on_its_way.append(route))
    page.keyboard.press("y")
    page.get_by_role("button", name="Send now").click()
    until(lambda: bool(page.evaluate("1") and on_its_way))
    assert not page.locator("#r-perm-00").is_visible()
    on_its_way[0].continue_()
    until(lambda: decided(running.post) == {"perm-00": (True, "")})
    page.locator("#r-perm-00").wait_for(state="detached")
    page.evaluate(
        """async () => {
            const place = document.querySelector("script[type=module]").src.replace(/[^/]*$/, "refresh.js");
            const { PATCHED, stale } = await import(place);
            const patched = new Promise((done) => document.addEventListener(PATCHED, done, { once: true }));
            stale("main");
            await patched;
        }"""
    )
    assert page.locator("#r-perm-00").count() == 0
    assert page.locator("#details").inner_text() == "Nothing more waits here."
    assert window.problems == []


def test_a_key_that_is_held_down_decides_one_request(running: Running, browser: Browser) -> None:
    """A keyboard repeats a key that is held, which decides nothing more. Back shows no decided one."""
    window = chosen(running, browser, 3)
    page = window.page
    for _ in range(3):
        page.keyboard.down("y")
    page.keyboard.up("y")
    page.locator('.card[data-request="perm-01"]').wait_for()
    for _ in range(2):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    assert page.get_by_text("Sent in").count() == 1
    page.go_back()
    page.locator('.card[data-request="perm-01"]').wait_for()
    assert page.get_by_text("Sent in").count() == 1
    page.get_by_role("button", name="Send now").click()
    until(lambda: decided(running.post) == {"perm-00": (True, "")})
    assert window.problems == []


def test_enter_that_ends_a_word_of_an_input_method_denies_nothing(running: Running, browser: Browser) -> None:
    """A reason in Japanese is composed: Enter takes the word that is offered, and only the next one denies."""
    window = chosen(running, browser, 1)
    page = window.page
    page.keyboard.press("n")
    keyboard = window.context.new_cdp_session(page)
    keyboard.send("Input.imeSetComposition", {"text": "だめ", "selectionStart": 2, "selectionEnd": 2})
    page.keyboard.press("Enter")
    assert page.get_by_text("Sent in").count() == 0
    keyboard.send("Input.insertText", {"text": "だめ"})
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Send now").click()
    until(lambda: decided(running.post) == {"perm-00": (False, "だめ")})
    assert window.problems == []


def test_what_another_window_decided_is_not_decided_again(running: Running, browser: Browser) -> None:
    """Two windows decide one request differently. The first one counts, and the second is told so."""
    ask(running.post, 2)
    one, other = (Window(browser, running).unhurried() for _ in range(2))
    for window in (one, other):
        window.go("/")
        window.choose("perm-00")
    one.page.keyboard.press("y")
    other.page.keyboard.press("n")
    other.page.keyboard.type("no")
    other.page.keyboard.press("Enter")
    one.page.get_by_role("button", name="Send now").click()
    until(lambda: decided(running.post) == {"perm-00": (True, "")})
    other.page.get_by_role("button", name="Send now").click()
    other.page.locator("#held").get_by_text(": approved by you, ").wait_for()
    assert decided(running.post) == {"perm-00": (True, "")}
    assert one.problems == []


def test_a_decision_that_is_refused_keeps_what_was_written(running: Running, browser: Browser) -> None:
    """The line is there again, and in it the reason and the changed input, in sight; the person is told why."""
    ask(running.post, 2)
    window = Window(browser, running).unhurried()
    window.go("/")
    card = window.choose("perm-00")
    card.locator("summary", has_text="Change the input").click()
    changed = json.dumps({"command": "x" * MAX_BODY})
    card.locator("[name=input]").fill(changed)
    card.locator("[name=reason]").fill("a trial")
    card.get_by_role("button", name="Approve").click()
    window.page.get_by_role("button", name="Send now").click()
    window.page.locator("#held").get_by_text("Shorten its text").wait_for()
    card = window.choose("perm-00")
    assert card.locator("[name=reason]").input_value() == "a trial"
    assert card.locator("[name=input]").input_value() == changed
    assert card.locator("[name=input]").is_visible()
    assert decided(running.post) == {}


def test_a_decision_that_signing_out_stopped_is_told(running: Running, browser: Browser) -> None:
    """Another window that holds it sends nothing, and says so."""
    window = chosen(running, browser, 1)
    page = window.page
    page.keyboard.press("y")
    beside = window.context.new_page()
    beside.goto(running.url)
    beside.get_by_role("button", name="Sign out", exact=True).click()
    page.get_by_text("You are signed out here. Open a link").wait_for()
    assert "Refused" not in page.locator("body").inner_text()
    expect(page.locator("#held")).to_contain_text("Not sent: Approve: ada runs make 0. You are signed out here.")
    assert decided(running.post) == {}


def test_the_next_page_tells_of_a_decision_that_a_closed_page_lost(post: Post, browser: Browser) -> None:
    """Its console had ended, so it reached nobody. The browser kept its name, and says so until one closes that."""
    with Running(post) as console:
        page = chosen(console.enter(), browser, 2).page
        page.keyboard.press("y")
        page.get_by_role("button", name="Send now").wait_for()
        console.kill()
        page.goto("about:blank")
    with Running(post, "--port", console.port) as again:
        page.goto(again.link)
        told = page.locator("#held", has_text="Not decided: ada runs make 0. A page that was closed had your decision")
        told.wait_for()
        page.reload()
        told.wait_for()
        told.get_by_role("button", name="Close").click()
        again.post.ok("control", "deny", "perm-01", "--session", "user")
        page.reload()
        page.wait_for_selector(".link-state.live")
        expect(told).to_have_count(0)
        assert page.evaluate("localStorage.getItem('left')") is None
    assert decided(post) == {"perm-01": (False, "")}


def test_the_next_sign_in_tells_of_a_decision_that_came_too_late(running: Running, browser: Browser) -> None:
    """Its page was signed out and closed. What counts is told no more, however many were chosen with it."""
    ask(running.post, 3)
    window = Window(browser, running).unhurried()
    page = window.go("/")
    for request in ("perm-00", "perm-01"):
        page.locator(f"#r-{request} input").check()
    page.get_by_role("button", name="Approve the chosen").click()
    name, _, value = running.cookie.partition("=")
    window.context.clear_cookies()
    page.get_by_role("button", name="Send now").click()
    page.locator("#held", has_text="Not sent: Approve: 2 requests").wait_for()
    page.goto("about:blank")
    running.post.ok("control", "deny", "perm-01", "--session", "user")
    window.context.add_cookies([{"name": name, "value": value, "url": running.url}])
    window.go("/")
    told = page.locator("#held p")
    told.filter(has_text="Not decided: ada runs make 0.").wait_for()
    assert told.count() == 1


def test_no_program_makes_the_console_tell_of_a_decision(post: Post) -> None:
    """A post without a session may be anyone's: it is refused, and nobody hears of it."""
    ask(post, 1)
    with Running(post) as console:
        for path, fields in (("/decide", {"request": "perm-00"}), ("/decide-chosen", {"chosen:perm-00": "1"})):
            assert console.ask(path, {**fields, "decision": "approve"}).status == 401
        page = console.enter().ask("/").text
        assert "does not count" not in page
        assert 'class="said' not in page
    assert decided(post) == {}


def test_a_decision_goes_before_its_window_signs_out(running: Running, browser: Browser) -> None:
    """The undo is over then, and the decision counts."""
    page = chosen(running, browser, 1).page
    page.keyboard.press("y")
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.get_by_label("Or paste the link here").wait_for()
    assert decided(running.post) == {"perm-00": (True, "")}


def test_a_decision_on_its_way_to_a_console_that_is_killed_may_count(post: Post, browser: Browser) -> None:
    """The window says which one, and where to look, until one closes that: also once the console is back."""
    with Running(post) as console:
        window = chosen(console.enter(), browser, 1)
        page = window.page

        def kill(route: Route) -> None:
            console.kill()
            route.continue_()

        page.route("**/decide", kill)
        page.keyboard.press("y")
        page.get_by_role("button", name="Send now").click()
        told = page.locator("#held", has_text="Perhaps sent: Approve: ada runs make 0. The console does not answer.")
        told.wait_for()
    with Running(post, "--port", console.port) as again:
        page.get_by_text("You are signed out here").wait_for()
        beside = window.context.new_page()
        beside.goto(again.link)
        beside.wait_for_selector(".link-state.live")
        page.evaluate("window.dispatchEvent(new Event('focus'))")
        page.wait_for_selector(".link-state.live")
        told.get_by_role("link", name="Past decisions").wait_for()
        told.get_by_role("button", name="Close").click()
        told.wait_for(state="hidden")


def test_a_notice_about_an_earlier_request_names_it(running: Running, browser: Browser) -> None:
    """The next request is beside it: a decision that was refused, and a request that is over, are told with their
    names."""
    window = chosen(running, browser, 3)
    page = window.page
    running.post.ok("control", "deny", "perm-00", "--session", "user")
    page.locator("#said", has_text="Over, with nothing left to decide: ada runs make 0.").wait_for()
    window.choose("perm-01")
    page.keyboard.press("y")
    page.locator('#details .card[data-request="perm-02"]').wait_for()
    page.route("**/decide", lambda route: route.fulfill(status=400, body="It is malformed."))
    page.get_by_role("button", name="Send now").click()
    page.locator("#held", has_text="Refused: Approve: bo runs make 1. It is malformed.").wait_for()
    page.route("**/decide", lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"))
    page.keyboard.press("y")
    page.get_by_role("button", name="Send now").click()
    page.locator("#held", has_text="Perhaps sent: Approve: cleo runs make 2. The console does not answer.").wait_for()


def test_one_request_costs_no_look_at_the_others(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Showing or deciding one of many judges no other, and records no other as read."""
    requests = ask(post, 6)
    judged: list[int] = []
    judge = effects.judged

    def count(box: OpenMailbox, me: str, items: Sequence[Item], send: effects.Send | None) -> list[Item]:
        judged.append(len(items))
        return judge(box, me, items, send)

    monkeypatch.setattr(effects, "judged", count)
    desk = Desk(str(post.box))
    with desk.lock_for_reading() as now:
        assert details.view_message(now, requests[0].message_id)["card"]["id"] == requests[0].id
    with desk.lock_for_acting() as now:
        actions.decide_request(now, {"request": requests[0].id, "decision": "deny"})
        several = {f"chosen:{request.id}": "1" for request in requests[1:3]}
        actions.decided_requests.decide_several(now, {"decision": "approve", **several})
    assert judged == [1, 2]
    assert [item.message.id for item in desk._looking.mailbox.peek("user")] == [r.message_id for r in requests[3:]]
