"""A day's acts in a person's hands: at a phone, over a dead connection, from a link elsewhere, with many requests."""

from __future__ import annotations

import http.server
import json
import re
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import TimeoutError, expect

from agent_mailbox.console.entrance import name_browser
from agent_mailbox.console.guard import MAX_AGE, MAX_REST, Gate
from tests.console.conftest import Running, Window
from tests.helpers import MESSAGES, Post, record, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
ASK = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "make"}', "--session")
TABLE = "| " + " | ".join(f"column {n}" for n in range(24)) + " |\n" + "|---" * 24 + "|\n" + "| value" * 24 + "|"


class Office:
    """A console that the tests here share; each takes an agent of its own, so that nothing hinders another."""

    def __init__(self, post: Post, console: Running) -> None:
        self.post = post
        self.console = console
        self._count = 0

    def hire(self) -> str:
        """A new agent; its id is its name."""
        self._count += 1
        name = f"agent{self._count}"
        self.post.register(name, "--name", name, "--tags", f"project:{name}")
        return name

    def asks(self, who: str) -> str:
        """A request of an agent."""
        return str(self.post.ok(*ASK, who)["request"]["id"])

    def state_of(self, request: str) -> str:
        found = self.post.ok("control", "log", "--request", request, "--session", "user")["messages"]
        return str(found[-1]["to"])


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    post = Post(tmp_path_factory.mktemp("office"))
    with Running(post) as console:
        yield Office(post, console.enter())


def moves(page: Page, selector: str) -> float:
    """How far an element scrolls."""
    page.locator(selector).evaluate("node => node.scrollTo(0, 99999)")
    return float(page.locator(selector).evaluate("node => node.scrollTop"))


def test_an_opened_message_is_read_and_answered_at_a_phone(office: Office, browser: Browser) -> None:
    """It scrolls, and its answer is in reach without that; a wide table scrolls in itself. The settings are reached,
    and no notice lies over the menu."""
    who = office.hire()
    text = f"{TABLE}\n\n```\n{'x' * 300}\n```\n\n" + "\n\n".join(f"paragraph {n}" for n in range(80))
    sent = office.post.send(who, "user", text)
    window = Window(browser, office.console, **PHONE)
    page = window.go(f"/direct?with={who}&open={sent}")
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
    assert moves(page, "#details") > 800
    page.locator("#details").evaluate("node => node.scrollTo(0, 300)")
    box = page.locator("#reply").bounding_box()
    assert box is not None
    assert 0 < box["y"] < 800
    page.locator("#reply").fill("from the phone")
    page.get_by_role("button", name="Reply", exact=True).tap()
    page.locator("#said", has_text="Sent to").wait_for()
    assert [m["content"] for m in office.post.objects(MESSAGES) if m["sender"] == "user"] == ["from the phone"]
    assert page.locator(".body table").first.evaluate("t => t.scrollWidth > t.clientWidth")
    page = window.go(f"/direct?with={who}")
    assert page.evaluate(wide) <= 0
    page.locator("#keys-button").tap()
    page.get_by_label("A sound when").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Close").tap()
    page.locator("#body").fill("once more")
    page.get_by_role("button", name="Send", exact=True).tap()
    page.locator("#said .said").wait_for()
    page.get_by_role("link", name="Menu").tap()
    page.locator("#said").wait_for(state="hidden")
    assert window.problems == []


def test_an_answer_stands_below_what_it_answers_at_once(office: Office, browser: Browser) -> None:
    """A letter answered from the inbox is read and acknowledged: its detail says so, with the answer."""
    who = office.hire()
    asked = office.post.send(who, "user", "Shall I go on?", "--ack")
    page = Window(browser, office.console).go("/")
    page.locator(f"#inbox [data-open='{asked}']").click()
    page.locator("#reply").fill("Yes, go on.")
    page.keyboard.press("Control+Enter")
    details = page.locator("#details")
    expect(details.locator(".thread", has_text="Yes, go on.")).to_be_visible()
    expect(details.get_by_role("button", name="Acknowledge")).to_have_count(0)


def test_an_order_to_an_agent_leaves_the_page_where_it_is(office: Office, browser: Browser) -> None:
    """The order is a message, too, and comes below all others; who gave it stays at the buttons."""
    who = office.hire()
    for number in range(20):
        office.post.send(who, "user", f"line {number}")
    page = Window(browser, office.console).go(f"/agent?id={who}")
    page.get_by_text("Change or end this agent").click()
    page.locator("#mode").select_option("locked-down")
    page.get_by_role("button", name="Set the mode").click()
    page.locator(".message.person").wait_for()
    assert page.evaluate("window.scrollY") == 0


def test_a_draft_is_whole_after_a_reload(office: Office, browser: Browser) -> None:
    """A draft has every field of its form, and is kept without a text, too; one to another agent is another draft."""
    who = office.hire()
    window = Window(browser, office.console)
    page = window.go(f"/new?to={who}")
    page.locator("#body").fill("look")
    page.locator("[name=ack]").check()
    page.locator("[name=priority]").select_option("high")
    page.reload()
    page.locator(".link-state.live").wait_for()
    assert page.locator("#body").input_value() == "look"
    assert page.locator("[name=ack]").is_checked()
    assert page.locator("[name=priority]").input_value() == "high"
    page = window.go(f"/tasks?to={who}")
    written = {"subject": "Plate 9", "context": "read the log", "after": "task-1"}
    for name, text in written.items():
        page.locator(f"form.new [name={name}]").fill(text)
    page.locator("[name=plan]").check()
    page.reload()
    page.locator(".link-state.live").wait_for()
    assert {name: page.locator(f"form.new [name={name}]").input_value() for name in written} == written
    assert page.locator("[name=plan]").is_checked()
    window.go(f"/tasks?to={office.hire()}")
    assert page.locator("#subject").input_value() == ""
    assert window.problems == []


def test_a_request_is_decided_with_its_bar_in_sight(office: Office, browser: Browser) -> None:
    """A long call or plan needs no scrolling to its end, at a phone or not: its buttons stand in sight, a word each."""
    who = office.hire()
    long = "\n".join(f"make step-{n}" for n in range(90))
    plan = office.post.ok("control", "request", "plan", "--body", long, "--session", who)["request"]["id"]
    given = json.dumps({"command": long})
    request = office.post.ok(*ASK[:6], given, "--session", who)["request"]["id"]
    for how in ({}, PHONE):
        window = Window(browser, office.console, **how).unhurried()
        page = window.go("/")
        assert page.locator("#details").is_visible() == (how != PHONE)
        for one in (request, plan):  # a plan, which another request follows, is decided
            button = window.choose(one).locator(".approve")
            box = button.bounding_box()
            assert box is not None
            assert 0 < box["y"] < (844 if how else 800) - box["height"]
            assert box["height"] < 50 < box["width"]
            if how == PHONE and one == request:
                page.locator("[data-close]").tap()
    button.tap()
    page.locator(f"#details .card:not([data-request='{plan}']) [name=reason]").tap(trial=True)
    page.get_by_role("button", name="Send now").tap()
    page.locator("#said .done").wait_for()
    assert office.state_of(plan) == "approved"
    page.locator("#details .deny").tap(trial=True)  # the answer covers no button of the next request


def test_what_became_of_a_decision_sent_by_leaving_is_told_on_the_next_page(office: Office, browser: Browser) -> None:
    """Another window had decided it meanwhile, so it is refused: the next page says so; and one that was taken, too."""
    who = office.hire()
    first, second = office.asks(who), office.asks(who)
    window = Window(browser, office.console).unhurried()
    page = window.go("/")
    window.choose(first).locator(".approve").press("Enter")
    page.get_by_text("Sent in").wait_for()
    office.post.ok("control", "deny", first, "--session", "user")
    page = window.go("/agents")
    page.locator("#said .problem, #told .problem").filter(has_text="denied by you, ").wait_for()
    page = window.go("/")
    window.choose(second).locator(".deny").press("Enter")
    page.get_by_text("Sent in").wait_for()
    page = window.go("/channels")
    page.locator("#said .done, #told .done").filter(has_text=f"{who} runs make: denied").wait_for()
    assert office.state_of(second) == "denied"


def test_a_new_request_brings_its_own_card_and_not_the_page(office: Office, browser: Browser) -> None:
    """The page is not fetched for it; what was decided elsewhere goes as it came. In the background its notice names it
    first, opens it, and is shown each time."""
    who = office.hire()
    first = office.asks(who)
    window = Window(browser, office.console)
    window.page.add_init_script(
        "window.notices = []; document.hasFocus = () => !window.away;"
        "window.Notification = class { static permission = 'granted';"
        " constructor(title, how) { window.notices.push([title, how.renotify, this]); } close() {} };"
    )
    page = window.go("/")
    page.locator(f"#r-{first}").wait_for()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(office.console.url)))
    page.evaluate("window.away = true")
    second = office.asks(who)
    page.locator(f"#r-{second}").wait_for()
    page.wait_for_function("() => window.notices.length === 1")
    office.post.ok("control", "deny", first, "--session", "user")
    page.locator(f"#r-{first}").wait_for(state="detached")
    assert [url for url in asked if not url.startswith(("rail", "static", "icon", "details"))] == []
    title, again = page.evaluate("window.notices[0].slice(0, 2)")
    assert title.startswith(f"{who} runs make")
    assert again is True
    office.post.send(who, "user", "May I?", "--ack")
    page.wait_for_function("() => window.notices.length === 2")
    assert page.evaluate("window.notices[1][0]").startswith(f"{who} asks you by mail, and ")
    page.evaluate("window.notices[0][2].onclick()")
    page.locator(f'.card[data-request="{second}"]').wait_for()


def test_several_are_chosen_at_once_and_named_before_they_go(office: Office, browser: Browser) -> None:
    """*All* chooses each; the bar counts them; what is held names the requests."""
    who = office.hire()
    ids = [office.asks(who) for _ in range(2)]
    page = Window(browser, office.console).unhurried().go("/")
    for one in ids:
        page.locator(f"#r-{one} .choose input").check()
    page.get_by_text("2 chosen").wait_for()
    page.get_by_role("button", name="Deny the chosen").click()
    said = page.locator("#held .said").inner_text()
    assert "Deny: 2 requests: " in said
    assert said.count(f"{who} runs make") == 2
    page.get_by_role("button", name="Send now").click()
    until(lambda: {office.state_of(one) for one in ids} == {"denied"})


# -- the connection ---------------------------------------------------------------------------------------------------


class Tunnel:
    """A tunnel to the console that may forget what is open: it closes nothing, and forwards nothing more on it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._old: list[threading.Event] = []  # one for each connection: whether it is forgotten
        self._listening = socket.create_server(("::1", port), family=socket.AF_INET6)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listening.accept()
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", self.port))
            is_old = threading.Event()
            self._old.append(is_old)
            for one, other in ((here, there), (there, here)):
                threading.Thread(target=self._carry, args=(one, other, is_old), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket, is_old: threading.Event) -> None:
        try:
            while data := one.recv(1 << 16):
                if not is_old.is_set():
                    other.sendall(data)
            if not is_old.is_set():
                other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def forget(self) -> None:
        """Forget what is open now; what is opened from now on works."""
        for is_old in self._old:
            is_old.set()

    def close(self) -> None:
        self._listening.close()


@contextmanager
def tunnel_to(port: int) -> Iterator[Tunnel]:
    try:
        made = Tunnel(port)
    except OSError:
        pytest.skip("no IPv6 loopback here")
    try:
        yield made
    finally:
        made.close()


def test_a_connection_that_is_dead_and_open_is_noticed_and_renewed(office: Office, browser: Browser) -> None:
    """After a minute without a ping the page says since when it heard nothing, connects once more, and has what it
    missed."""
    who = office.hire()
    with tunnel_to(office.console.port) as tunnel:
        window = Window(browser, office.console)
        name, _, value = office.console.cookie.partition("=")
        url = f"http://[::1]:{office.console.port}"
        window.context.add_cookies([{"name": name, "value": value, "url": url}])
        page = window.page
        page.clock.install()
        page.goto(f"{url}/channel?to=project:{who}")
        page.wait_for_selector(".link-state.live")
        page.clock.pause_at(page.evaluate("Date.now()") + 1000)  # a busy machine's own time must not count
        tunnel.forget()
        office.post.send(who, f"project:{who}", "MISSED")
        page.evaluate(
            "window.states = []; const shown = document.querySelector('#link-state');"
            "new MutationObserver(() => states.push(shown.innerText))"
            ".observe(shown, {subtree: true, childList: true, characterData: true})"
        )
        page.clock.run_for(30_000)  # a busy machine may have taken some seconds since the last ping
        missed = page.locator(".message", has_text="MISSED")
        assert missed.count() == 0
        for _ in range(20):  # a browser may try its other dead connections first
            page.clock.run_for(11_000)
            try:
                missed.wait_for(timeout=1500)
                break
            except TimeoutError:
                continue
        page.wait_for_selector(".link-state.live")
        assert missed.count() == 1
        assert re.search(r"last heard \d+ s ago", " ".join(page.evaluate("states")))


def test_older_messages_that_did_not_come_can_be_asked_for_once_more(office: Office, browser: Browser) -> None:
    """A failed load says so and leaves the list as it was; the next one goes on. So does a message that did not open.
    Escape leaves no step that Back would open again."""
    who = office.hire()
    lines = "".join(json.dumps({"recipient": f"project:{who}", "content": f"line {n}"}) + "\n" for n in range(60))
    office.post.ok("send", "--from", who, "--jsonl", "-", stdin=lines)
    page = Window(browser, office.console).go(f"/channel?to=project:{who}")
    page.route("**/{channel,details}?*", lambda route: route.abort())
    page.evaluate("document.querySelector('[data-older]').click()")
    page.get_by_text("Older messages did not come").wait_for()
    page.locator(".message .open").last.click()
    page.get_by_text("The message did not come").wait_for()
    page.unroute("**/{channel,details}?*")
    page.get_by_role("button", name="Close", exact=True).click()
    page.evaluate("document.querySelector('[data-older]').click()")
    page.locator(".message", has_text="line 0").first.wait_for()
    before = page.url
    page.locator(".message .open").last.click()
    page.wait_for_url(re.compile("open="))
    page.keyboard.press("Escape")
    page.wait_for_url(before)
    assert page.locator("#details").is_hidden()
    page.go_back()
    assert "open=" not in page.url


def test_new_mail_is_gone_through_channel_by_channel(office: Office, browser: Browser) -> None:
    """``n`` goes on from a line of new mail that is in sight, and says when nothing is left."""
    first, second = office.hire(), office.hire()
    window = Window(browser, office.console)
    window.go("/agents")
    for who in (first, second):
        office.post.send(who, f"project:{who}", "NEW")
    page = window.go(f"/channel?to=project:{first}")
    page.locator("#news").wait_for()
    page.evaluate("document.body.focus()")
    page.keyboard.press("n")
    page.wait_for_url(lambda url: "/channel?to=project" in url and not url.endswith(first))  # others may have some, too


# -- who is signed in -------------------------------------------------------------------------------------------------


def test_a_session_ends_by_age_and_by_rest() -> None:
    """A week after the sign-in, or a day after its last use; those in use and others stay until then."""
    now = 0.0
    gate = Gate(lambda: now)
    used, rests = (gate.exchange_token(gate.new_link_token(), "x") for _ in range(2))
    while now < MAX_AGE:
        assert gate.session_of(used) is not None
        assert len(gate.sessions()) == (2 if now < MAX_REST else 1)
        now += MAX_REST / 2
    assert gate.session_of(rests) is None
    assert gate.session_of(used) is None


def test_a_browser_is_named_in_few_words() -> None:
    """The list names a browser by its own description, which is no promise."""
    chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36"
    assert name_browser(chrome) == "Chrome on Linux"
    assert name_browser("Mozilla/5.0 (iPhone; CPU) Version/17 Mobile Safari/604") == "Safari on iPhone"
    assert name_browser("") == "unknown"
    assert name_browser("curl\x1b[2J") == "curl\\x1b[2J"


def test_a_link_from_elsewhere_opens_what_it_names(office: Office, browser: Browser) -> None:
    """Though the browser sends no strict cookie with it. Who is not signed in comes there by signing in."""
    sent = office.post.send(office.hire(), "all", "LINKED")
    target = f"{office.console.url}archive?open={sent}"

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(f'<a href="{target}">see</a>'.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        page = Window(browser, office.console).page
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.get_by_text("see").click()
        page.locator("#details", has_text="LINKED").wait_for()
    finally:
        server.shutdown()
        server.server_close()


def test_the_cookie_is_for_a_host_of_its_own_and_a_deep_link_survives_signing_in(post: Post, browser: Browser) -> None:
    """No other server of this machine gets it; the same name is there at the next start. A window
    beside shows nothing any more once one signs out."""
    post.register("ada", "--name", "Ada")
    sent = post.send("ada", "all", "PRIVATE")
    with Running(post) as console:
        url = console.url
        assert re.fullmatch(r"http://[a-z0-9-]+-[0-9a-f]{10}\.localhost:\d+/", url)
        page = browser.new_context().new_page()
        page.goto(f"{url}archive?open={sent}")
        page.get_by_label("Or paste the link here").fill(console.link)
        page.get_by_role("button", name="Sign in").click()
        page.locator("#details", has_text="PRIVATE").wait_for()
        (cookie,) = page.context.cookies()
        assert cookie["domain"] == re.sub(r"^http://|:\d+/$", "", url)
        assert page.context.cookies("http://127.0.0.1:1/") == page.context.cookies("http://localhost:1/") == []
        beside = page.context.new_page()
        beside.goto(f"{url}sessions")
        assert beside.get_by_text("this one").count() == 1
        assert beside.get_by_role("button", name="Sign out the others").is_disabled()
        beside.goto(f"{url}channel?to=all")
        beside.get_by_text("PRIVATE").wait_for()
        page.get_by_role("button", name="Sign out", exact=True).click()
        page.get_by_label("Or paste the link here").wait_for()
        beside.get_by_text("You are signed out here").wait_for()
        beside.locator(".message").first.wait_for(state="hidden")
        port = console.port
    with Running(post, "--port", port) as again:
        assert again.url == url


def test_a_line_of_another_year_stands_below_no_news(office: Office) -> None:
    """Mail that is dated in the future is a link away. A name is found in any case, and two tags of one name are told
    apart."""
    who = office.hire()
    post = office.post
    post.send(who, f"project:{who}", "PRESENT")
    post.append(MESSAGES, record(who, f"project:{who}", "FUTURE", timestamp="9999-01-01T00:00:00.000Z"))
    page = office.console.ask(f"/channel?to=project:{who}").text
    assert "PRESENT" in page
    assert "FUTURE" not in page
    found = re.search(r'dated in the future. <a href="([^"]+)"', page)
    assert found is not None
    assert "FUTURE" in office.console.ask(found[1].replace("&amp;", "&")).text
    assert "FUTURE" not in office.console.ask("/archive").text
    assert "PRESENT" in office.console.ask(f"/search?q=from:{who.upper()}").text
    post.register("twin", "--role", "architect", "--tags", "domain:architect,project:architect")
    page = office.console.ask("/channels").text
    for label in ("#architect<", "#architect (role)<", "#architect (domain)<"):
        assert label in page, label
