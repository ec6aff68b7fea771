"""The console in a real browser: every view, what is live, what keys do, what hostile mail does not do."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.console import mail_lists, views
from agent_mailbox.core.control.messages import PermissionRequest
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.console import scene
from tests.console.conftest import Running, Window
from tests.control_desk import ControlDesk
from tests.helpers import MESSAGES, PATIENCE, ROSTER, Post, stamp, until
from tests.night import NIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.console.scene import Scene

LAYOUT = ("target-size", "scrollable-region-focusable")
"""The rules of axe whose answer changes with a page's layout."""


class Day:
    """A console of a mailbox as a day leaves it."""

    def __init__(self, post: Post, made: Scene, console: Running) -> None:
        self.post = post
        self.scene = made
        self.console = console

    @property
    def pages(self) -> dict[str, str]:
        """A place of every view, with what must stand there."""
        ines = self.scene.ids["Ines"]
        return {
            "/": "git push origin main",
            "/fleet": "Waits for you",
            "/agents": "Dmitri",
            f"/agent?id={ines}": "Decides for it",
            f"/transcript?id={ines}": "git log --oneline",
            "/conversations": "wrote last",
            f"/raw?id={self.dead}": "Plate 9",
            "/channels": "#reproducibility",
            "/new": "Agents, roles, tags or all",
            "/channel?to=project:inscription": "indexes are free to come and go",
            f"/direct?with={ines}": "Write to Ines",
            "/decided": "Requests that were decided",
            "/tasks": "Add a task",
            "/notes": "Add a note",
            "/dead": "its recipient died",
            "/archive": "GPU 1",
            "/search?q=rebase": "rebase is done",
            "/timeline": "Who writes to whom",
            "/sessions": "this one",
            "/?open=" + self.dead: "Send it again",
        }

    @property
    def dead(self) -> str:
        """The id of a dead letter."""
        return next(m["id"] for m in self.post.objects(MESSAGES) if m.get("subject") == "Plate 9")


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    """The mailbox of a day, which nobody changes."""
    post = Post(tmp_path_factory.mktemp("day"))
    made = scene.day(str(post.box))
    with Running(post) as console:
        yield Day(post, made, console.enter())


# -- looking ----------------------------------------------------------------------------------------------------------


def test_every_view_shows_what_it_is_for_with_script_and_without(day: Day, browser: Browser) -> None:
    """Nothing is reported as a problem, by the policy neither; without script the same text is there."""
    scripted, plain = Window(browser, day.console), Window(browser, day.console, java_script_enabled=False)
    assert {path.partition("?")[0] for path in day.pages} == set(views.PAGES)
    for path, said in day.pages.items():
        page = scripted.go(path)
        assert said in page.inner_text("body"), path
        assert said in plain.go(path, live=False).inner_text("body"), path
        assert page.evaluate("document.querySelectorAll('*').length") < 3000
    assert scripted.problems == plain.problems == []


def test_axe_finds_nothing_on_any_page(day: Day, browser: Browser, axe: Path) -> None:
    """The checker axe finds no fault on any page at two widths, light and dark. No page is wider than its window. A
    tablet's width is checked each night.

    A page is opened once. In the dark its colours alone change. With the width its layout changes, and what is shown at
    that width alone is checked by each rule."""
    window = Window(browser, day.console, reduced_motion="reduce")
    found: dict[tuple[str, int, str], list[str]] = {}
    for path in day.pages:
        page = window.go(path)
        for width in (1440, 768, 390) if NIGHT else (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(
                """(width) => document.querySelectorAll("body *:not([data-axe])").forEach((one) => {
                    if (one.checkVisibility()) one.dataset.axe = width;
                })""",
                width,
            )
            part = "html" if width == 1440 else f'[data-axe="{width}"]'
            for look, rules in (("light", ()), ("dark", ("color-contrast",))):
                page.emulate_media(color_scheme=look, reduced_motion="reduce")
                found[path, width, look] = window.axe(axe, rules, part)
            found[path, width, "laid out"] = window.axe(axe, LAYOUT) if width < 1440 else []
            if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                found[path, width, "laid out"].append("is wider than its window")
    assert {at: wrong for at, wrong in found.items() if wrong} == {}


def test_the_longest_names_stay_within_the_window(post: Post, browser: Browser, axe: Path) -> None:
    """No page is wider than its window, empty or with the longest names, on a phone or a screen."""
    with Running(post) as console:
        window = Window(browser, console.enter(), viewport={"width": 390, "height": 844})
        for path in ("/", "/agents", "/channel?to=all", "/archive", "/dead", "/timeline", "/search?q=none"):
            page = window.go(path)
            assert page.locator(".nothing:visible").count() >= 1, path
            assert window.axe(axe, within="main") == [], path
        long = "x" * 128
        post.register(long[:-1] + "y", "--name", long, "--role", "r" * 128, "--tags", f"project:{long}")
        post.send(long, f"project:{long}", "word" * 500 + "\n\n```\n" + "code" * 300 + "\n```", "--subject", "s" * 300)
        given = json.dumps({"command": "x" * 3000, "list": [{"deep": "y" * 200}]})
        post.ok("control", "request", "permission", "--tool", "T" * 90, "--input", given, "--session", long)
        sent = post.objects(MESSAGES)[0]["id"]
        post.ok(
            "note", "add", "--title", "n" * 200, "--body", "b" * 900, "--session", "user", "--on", f"project:{long}"
        )
        shown = f"/channel?to=project:{long}&open={sent}"
        alone = ("/notes", f"/agent?id={long[:-1]}y")
        for path in ("/", "/agents", "/fleet", "/fleet?as=tree", shown, "/timeline", *alone):
            window.go(path)
            for width in (390, 900, 1280):
                page.set_viewport_size({"width": width, "height": 800})
                wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert wide <= 0, (width, path)


def test_what_is_read_has_room_where_a_window_is_low(quiet: Running, browser: Browser) -> None:
    """A page made four times as large covers nothing of its text, and cuts no word of a button."""
    for number in range(6):
        quiet.post.send("ada", "project:inscription", f"word {number}\n" * 9)
    page = Window(browser, quiet, viewport={"width": 320, "height": 256}).go("/channel?to=project:inscription")
    stays = """[...document.querySelectorAll("main, header, main *")].filter((one) =>
        getComputedStyle(one).position === "sticky" && one.getBoundingClientRect().height > 30
    ).map((one) => one.className)"""
    assert page.evaluate(stays) == []
    assert page.locator(".to-rail").evaluate("(one) => one.scrollWidth - one.clientWidth") <= 0


def test_a_text_runs_in_the_direction_of_its_writing(running: Running, browser: Browser) -> None:
    """A paragraph in Hebrew begins at the right, one in English beside it at the left; so does what one types."""
    running.post.register("ada", "--name", "Ada")
    sent = running.post.send("ada", "user", "שלום, world.\n\nworld, שלום.", "--subject", "נושא")
    page = Window(browser, running).go(f"/?open={sent}")
    begins = """(nodes) => nodes.map((node) => {
        const range = new Range();
        range.setStart(node.firstChild, 0);
        range.setEnd(node.firstChild, 1);
        const text = range.getBoundingClientRect(), all = node.getBoundingClientRect();
        return text.left - all.left > all.right - text.right ? "right" : "left";
    })"""
    assert page.locator("#details .body p").evaluate_all(begins) == ["right", "left"]


def test_motion_is_left_out_for_who_asks_for_that(day: Day, browser: Browser) -> None:
    """No animation at all runs then."""
    for wish, count in (("reduce", 0), ("no-preference", 1)):
        page = Window(browser, day.console, reduced_motion=wish).go("/archive")
        names = page.evaluate("[...document.querySelectorAll('.message')].map(m => getComputedStyle(m).animationName)")
        assert len({name for name in names if name != "none"}) == count


def test_receipts_thread_and_costs_stand_with_a_message(day: Day, browser: Browser) -> None:
    """Opened beside the list, without leaving it; Escape closes it and the keyboard is where it was."""
    window = Window(browser, day.console)
    page = window.go("/channel?to=project:inscription")
    row = page.locator(".message").filter(has_text="indexes are free").first
    row.locator(".open").click()
    aside = page.locator("#details")
    aside.get_by_text("Receipts").wait_for()
    assert "tokens" in aside.inner_text()
    assert aside.locator(".thread > li").count() == 3
    assert "open=" in page.url
    page.keyboard.press("Escape")
    assert aside.is_hidden()
    assert page.evaluate("document.activeElement.dataset.open") is not None
    assert window.problems == []


def test_search_finds_by_words_address_and_time(day: Day, browser: Browser) -> None:
    """Each narrows; nobody by a name is said, and a date that is none."""
    page = Window(browser, day.console).go("/")
    page.keyboard.press("/")
    page.keyboard.type("plate")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/search"))
    assert page.locator(".message").count() == 3  # "plates", too
    page.get_by_label("From or to").fill("Goro")
    page.get_by_role("button", name="Search", exact=True).click()
    page.wait_for_url(re.compile("with=Goro"))
    assert page.locator(".message").count() == 1
    window = Window(browser, day.console)
    assert "no agent" in window.go("/search?q=plate&with=nobody-here").inner_text("main")
    assert "not a date" in window.go("/search?q=plate&since=never").inner_text("main")
    assert "No message found" in window.go("/search?q=plate&until=2020-01-01").inner_text("main")


# -- live -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def quiet(post: Post, browser: Browser) -> Iterator[Running]:
    """A console with two agents, of a mailbox that is the test's own."""
    assert browser
    post.register("ada", "--name", "Ada", "--tags", "project:inscription")
    post.register("bo", "--name", "Bo", "--tags", "project:inscription")
    with Running(post) as console:
        yield console.enter()


def hook(post: Post, session: str, event: str = "UserPromptSubmit", **fields: Any) -> str:
    """What a session's hook tells its model."""
    call = {"session_id": session, "cwd": str(post.cwd), "prompt": "go on", **fields}
    env = {"CLAUDE_CODE_SESSION_ID": session, "CLAUDECODE": "1"}
    result = post.call("hook", event, stdin=json.dumps(call), env=env)
    assert result.rc == 0, result
    return result.stdout


def test_what_is_typed_into_a_channel_reaches_the_agents_of_it(quiet: Running, browser: Browser) -> None:
    """A message that the person types reaches the channel's agents by their hooks. Two windows show it and the
    receipt."""
    one, other = Window(browser, quiet), Window(browser, quiet)
    page, beside = one.go("/channel?to=project:inscription"), other.go("/channel?to=project:inscription")
    page.keyboard.press("r")
    page.keyboard.type("Stop at **noon**, please.")
    page.keyboard.press("Control+Enter")
    for seen in (page, beside):
        seen.locator(".message strong", has_text="noon").wait_for()
        assert seen.locator(".message").count() == 1
    until(lambda: page.input_value("#body") == "")  # the row may come before the answer does
    told = hook(quiet.post, "ada")
    assert "Stop at **noon**" in told
    assert "user (the person)" in told
    for seen in (page, beside):
        seen.locator(".receipt", has_text=re.compile("^. Bo has not seen it")).wait_for()
    assert hook(quiet.post, "ada") == ""
    assert "Stop at **noon**" in hook(quiet.post, "bo")
    assert one.problems == other.problems == []


def test_a_large_batch_and_a_steward_s_run_bring_the_page_up_to_date(quiet: Running, browser: Browser) -> None:
    """A page loads its messages again after a large batch or a steward's run, and its rows stay limited."""
    page = Window(browser, quiet).go("/channel?to=all")
    lines = "".join(json.dumps({"recipient": "all", "content": f"bulk {n}"}) + "\n" for n in range(500))
    quiet.post.ok("send", "--from", "ada", "--jsonl", "-", stdin=lines)
    page.locator(".message", has_text="bulk 499").wait_for()
    assert page.locator(".message").count() == mail_lists.PAGE
    quiet.post.ok("steward", "run", "--max-live", "0")
    quiet.post.send("ada", "all", "afterwards")
    page.locator(".message", has_text="afterwards").wait_for()


def test_a_long_list_scrolls_by_pages_and_the_document_stays_small(quiet: Running, browser: Browser) -> None:
    """Each page of older messages is the next, none is missed, and a long list never has more than 500 rows."""
    count = 700
    lines = "".join(
        json.dumps({"recipient": "project:inscription", "content": f"number {n}"}) + "\n" for n in range(count)
    )
    quiet.post.ok("send", "--from", "ada", "--jsonl", "-", stdin=lines)
    page = Window(browser, quiet).go("/channel?to=project:inscription")
    seen: list[int] = []
    for _ in range(12):
        texts = page.locator(".message .body").evaluate_all("all => all.map(one => one.textContent)")
        assert len(texts) <= 500
        numbers = [int(text.split()[1]) for text in texts]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        seen.append(numbers[0])
        days = page.locator(".list .day").evaluate_all("all => all.map(one => one.dataset.day)")
        assert len(days) == len(set(days))
        page.evaluate("window.scrollTo(0, 30)")
        page.evaluate("document.querySelector('[data-older]')?.click()")
        page.wait_for_function("first => document.querySelector('.message .body').textContent !== first", arg=texts[0])
    assert seen[0] == count - mail_lists.PAGE
    assert seen[-1] < count - 10 * mail_lists.PAGE
    page.get_by_text("The newest messages").click()
    page.locator(".message", has_text=f"number {count - 1}").wait_for()


def test_rows_that_come_anew_while_older_ones_load_are_shown_once(quiet: Running, browser: Browser) -> None:
    """An answer with older messages meets a list that was made again meanwhile: no message is shown twice."""
    lines = "".join(json.dumps({"recipient": "project:rows", "content": f"number {n}"}) + "\n" for n in range(300))
    quiet.post.ok("send", "--from", "ada", "--jsonl", "-", stdin=lines)
    page = Window(browser, quiet).go("/channel?to=project:rows")
    held: list[Any] = []
    page.route("**/*before=*", lambda route: route.continue_() if held else held.append(route))
    page.evaluate("document.querySelector('[data-older]').click()")
    until(lambda: page.evaluate("1") and held)  # a question to the page takes its events in
    page.evaluate(
        """async () => {
            const place = document.querySelector("script[type=module]").src.replace(/[^/]*$/, "list.js");
            (await import(place)).renewRows(document.querySelector(".list").cloneNode(true));
        }"""
    )
    held[0].continue_()
    page.locator(".message", has_text=f"number {300 - 2 * mail_lists.PAGE}").wait_for()
    numbers = [int(text.split()[1]) for text in page.locator(".message .body").all_inner_texts()]
    assert numbers == list(range(numbers[0], 300))
    assert page.locator("[data-older]").count() == 1


def test_any_number_of_windows_load_and_the_one_looked_at_is_live(quiet: Running, browser: Browser) -> None:
    """A browser has six connections to a server for all of them; what rests catches up with what it missed."""
    window = Window(browser, quiet)
    first = window.go("/channel?to=all")
    for _ in range(7):
        page = window.context.new_page()
        page.goto(f"{quiet.url}channel?to=all")
        page.wait_for_selector(".link-state.live")
    first.wait_for_selector(".link-state:not(.live)")
    quiet.post.send("ada", "all", "MISSED")
    page.locator(".message", has_text="MISSED").wait_for()
    assert first.locator(".message").count() == 0
    first.evaluate("window.dispatchEvent(new Event('focus'))")
    first.locator(".message", has_text="MISSED").wait_for()
    assert first.locator(".link-state.live").count() == 1


# -- acting -----------------------------------------------------------------------------------------------------------


def test_a_waiting_tool_call_is_approved_with_another_input_by_keys_alone(quiet: Running, browser: Browser) -> None:
    """The hook of the session that asked answers its client with what the person wrote; the card goes."""
    post = quiet.post
    post.ok("roster", "update", "--session-id", "ada", "--lead", "user")
    call = {"session_id": "ada", "cwd": str(post.cwd), "prompt_id": "p1", "tool_name": "Bash",
            "tool_input": {"command": "rm -rf build"}, "tool_use_id": "t1"}  # fmt: skip
    env = {"CLAUDE_CODE_SESSION_ID": "ada", "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(post.cwd)}
    page = Window(browser, quiet).go("/")
    child = post.start("hook", "PermissionRequest", env=env)
    assert child.stdin is not None
    child.stdin.write(json.dumps(call).encode())
    child.stdin.close()
    child.stdin = None
    page.locator(".card").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.name") == "input"
    page.keyboard.press("Control+A")
    page.keyboard.type('{"command": "rm -r build"}')
    page.keyboard.press("Tab")
    page.keyboard.type("without force")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    out, err = child.communicate(timeout=PATIENCE)
    decision = json.loads(out)["hookSpecificOutput"]["decision"]
    assert (decision["behavior"], decision["updatedInput"]) == ("allow", {"command": "rm -r build"}), err
    page.locator(".card").wait_for(state="detached")
    page.get_by_text("Nothing waits for you.").wait_for()


def test_a_command_is_read_in_the_order_in_which_it_runs(quiet: Running, browser: Browser) -> None:
    """Letters that are written from right to left do not make `cat א > ב` of `cat ב < א`."""
    given = json.dumps({"command": "cat \u05d0\u05d1 > \u05d2\u05d3; rm \u05d4", "odd": {"\u05d0": ">\u05d1"}})
    quiet.post.ok("control", "request", "permission", "--tool", "Bash", "--input", given, "--session", "ada")
    page = Window(browser, quiet).go("/")
    page.locator(".card").wait_for()
    for shown in page.locator(".card pre.given").all():
        lefts = shown.evaluate("""(shown) => {
            const text = document.createTreeWalker(shown, NodeFilter.SHOW_TEXT), found = [];
            while (text.nextNode()) for (let at = 0; at < text.currentNode.length; at++) {
                const range = document.createRange();
                range.setStart(text.currentNode, at);
                range.setEnd(text.currentNode, at + 1);
                const box = range.getBoundingClientRect();
                if (box.width) found.push([Math.round(box.top), box.left]);
            }
            return found;
        }""")
        assert len(lefts) > 5
        assert lefts == sorted(lefts)


def test_deny_needs_a_second_key_and_tells_the_reason(quiet: Running, browser: Browser) -> None:
    """One key alone decides nothing; what the person is writing stays while the page is brought up to date."""
    post = quiet.post
    words = ("control", "request", "permission", "--tool", "Bash", "--input")
    post.ok(*words, '{"command": "make"}', "--session", "ada")
    page = Window(browser, quiet).unhurried().go("/")
    page.locator(".card").wait_for()
    page.keyboard.press("d")
    page.keyboard.press("Escape")
    page.get_by_placeholder("Reason (told to Ada)").fill("not to")
    post.ok(*words, '{"command": "other"}', "--session", "bo")
    page.locator(".item").nth(1).wait_for()
    field = page.get_by_placeholder("Reason (told to Ada)")
    assert field.input_value() == "not to"
    field.press_sequentially("day")
    field.press("Escape")
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Send now").click()
    page.locator(".item").nth(1).wait_for(state="detached")
    (answer,) = [json.loads(m["content"]) for m in post.objects(MESSAGES) if "permission_response" in m["content"]]
    assert (answer["approved"], answer["notes"]) == (False, "not today")


def test_the_person_replies_acknowledges_gives_back_and_sends_again(quiet: Running, browser: Browser) -> None:
    """The person can reply, acknowledge, give back and send again on a message's page. A reply works without script,
    too."""
    post = quiet.post
    first = post.send("ada", "user", "May I?", "--ack")
    for script in (True, False):
        window = Window(browser, quiet, java_script_enabled=script)
        page = window.go(f"/?open={first}", live=script)
        page.get_by_label("Reply to Ada").fill(f"Yes, {script}.")
        page.get_by_role("button", name="Reply", exact=True).click()
        page.get_by_text("Sent to Ada.").wait_for()
        assert window.problems == []
    assert post.unread("ada") == [m["id"] for m in post.objects(MESSAGES) if m["sender"] == "user"]
    page = Window(browser, quiet).go("/")
    page.get_by_text("Nothing waits for you.").wait_for()
    assert post.unread("user") == []
    second = post.send("ada", "user", "And now?", "--ack")
    page = Window(browser, quiet).go(f"/archive?open={second}")
    page.get_by_role("button", name="Acknowledge").click()
    page.get_by_text("is acknowledged").wait_for()
    page.get_by_text("Give back for a reader").click()
    page.get_by_role("button", name="Give back").click()
    until(lambda: post.unread("user") == [second])
    page.get_by_role("button", name=re.compile("Give back")).wait_for(state="detached")
    post.ok("roster", "retire", "bo")
    page.get_by_text("Send it again").click()
    page.get_by_label("To", exact=True).fill("ada")
    page.get_by_role("button", name=re.compile("Send again from")).click()
    until(lambda: any("> And now?" in m["content"] and m["sender"] == "user" for m in post.objects(MESSAGES)))


def test_what_is_refused_is_said_and_nothing_written_is_lost(quiet: Running) -> None:
    """An unknown recipient, an empty text, an input that is no JSON, a request that is decided."""
    assert "unknown recipient" in quiet.does("/send", to="nobody-at-all", body="x")["said"]
    assert quiet.does("/send", to="ada", body=" ")["status"] == 400
    assert quiet.does("/decide", request="perm-none", decision="approve")["status"] == 404
    post = quiet.post
    asked = post.ok(
        "control", "request", "permission", "--tool", "Bash", "--input", '{"command": "make"}', "--session", "ada"
    )
    request = asked["request"]["id"]
    assert "not a JSON object" in quiet.does("/decide", request=request, decision="approve", input="{nonsense")["said"]
    assert "not a JSON object" in quiet.does("/decide", request=request, decision="approve", input=" ")["said"]
    assert quiet.does("/decide", request=request, decision="perhaps")["status"] == 400
    assert quiet.does("/decide", request=request, decision="approve", input='{"command":"make"}')["kind"] == "done"
    assert "approved by you, " in quiet.does("/decide", request=request, decision="deny")["said"]
    assert post.ok("control", "wait", request, "--session", "ada")["request"]["state"] == "approved"


def test_always_allow_names_its_rules_and_adds_them(quiet: Running, browser: Browser) -> None:
    """The button says what it allows; a request without a narrow suggestion has no such button, and cannot be so
    decided."""
    rule = {"type": "addRules", "behavior": "allow", "rules": ["Bash(make test:*)"]}
    quiet.post.register("wren")
    asks = ControlDesk(OpenMailbox(str(quiet.post.box)))
    call = {"tool": "Bash", "input": {"command": "make test"}}
    plain = asks.request("wren", PermissionRequest(**call, request_id="perm-plain"))
    asks.request("wren", PermissionRequest(**call, request_id="perm-always", suggestions=(rule,)))
    window = Window(browser, quiet)
    page = window.go("/")
    assert page.get_by_role("button", name="Always allow").count() == 0
    window.choose("perm-always")
    assert page.get_by_role("button", name="Always allow").count() == 1
    page.get_by_role("button", name="Always allow Bash(make test:*)").click()
    page.locator("#r-perm-always").wait_for(state="detached")
    assert quiet.post.ok("control", "policy", "wren", "--session", "user")["agents"][0]["allow"] == rule["rules"]
    assert "no narrow rule" in quiet.does("/decide", request=plain.id, decision="always")["said"]


def test_a_decision_can_be_undone_until_it_is_sent(quiet: Running, browser: Browser) -> None:
    """The person can take a decision back by a button or a key. Several may wait, and leaving the page sends them."""
    words = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "make"}', "--session")
    one, other = (quiet.post.ok(*words, who)["request"]["id"] for who in ("ada", "bo"))

    def waiting() -> list[str]:
        found = quiet.post.ok("control", "pending", "--all", "--session", "user")["requests"]
        return [request["id"] for request in found]

    window = Window(browser, quiet).unhurried()
    page = window.go("/")
    for undo in (page.get_by_role("button", name="Undo").click, lambda: page.keyboard.press("u")):
        window.choose(one).locator(".approve").press("Enter")
        page.get_by_text("Sent in").wait_for()
        undo()
        page.get_by_text("Taken back: nothing was decided").wait_for()
        assert page.get_by_text("Sent in").count() == 0
        page.get_by_role("button", name="Close").click()
    assert waiting() == [one, other]
    window.choose(one).locator(".approve").press("Enter")
    page.locator(f"#r-{one}").wait_for(state="hidden")
    page.locator(f'.card[data-request="{other}"] .deny').press("Enter")  # which is shown next
    assert page.get_by_text("Sent in").count() == 2
    assert waiting() == [one, other]
    page.goto("about:blank")
    until(lambda: waiting() == [])
    answers = [json.loads(m["content"]) for m in quiet.post.objects(MESSAGES) if "permission_response" in m["content"]]
    assert {answer["requestId"]: answer["approved"] for answer in answers} == {one: True, other: False}


def test_a_double_click_decides_one_request(quiet: Running, browser: Browser) -> None:
    """The next one comes to stand where the first one was: the second click must not be its approval."""
    words = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "make"}', "--session")
    one, other = (quiet.post.ok(*words, who)["request"]["id"] for who in ("ada", "bo"))
    page = Window(browser, quiet).unhurried().go("/")
    page.locator(".item").nth(1).wait_for()
    page.evaluate("const now = Date.now(); Date.now = () => now")  # a busy machine's two clicks may lie far apart
    page.locator(".card .approve").dblclick()
    page.locator(f'.card[data-request="{other}"]').wait_for()
    assert page.get_by_text("Sent in").count() == 1
    page.get_by_role("button", name="Send now").click()
    page.locator(f"#r-{one}").wait_for(state="detached")
    assert page.locator(f"#r-{other}").is_visible()
    assert [r["id"] for r in quiet.post.ok("control", "pending", "--all", "--session", "user")["requests"]] == [other]


def test_enter_in_a_field_decides_nothing(quiet: Running, browser: Browser) -> None:
    """A reason that ends with Enter must not approve what the person meant to deny: with and without script, for one
    request and for those chosen. Behind the key for *deny* the reason has the cursor, and Enter denies."""
    words = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "git push -f"}', "--session")
    ids = [quiet.post.ok(*words, who)["request"]["id"] for who in ("ada", "bo")]

    def waiting() -> list[str]:
        return [r["id"] for r in quiet.post.ok("control", "pending", "--all", "--session", "user")["requests"]]

    for script in (False, True):
        page = Window(browser, quiet, java_script_enabled=script).unhurried().go("/", live=script)
        page.locator(f"#r-{ids[0]} .choose input").check()  # which shows the bar of those chosen
        for field in (f"#n-{ids[0]}", "#together-reason"):
            for key in ("Enter", "Control+Enter"):
                page.locator(field).fill("No. Never force-push main.")
                page.locator(field).press(key)
                assert page.locator(f"#r-{ids[0]}").is_visible()
                assert page.locator(field).input_value() == "No. Never force-push main."
    assert waiting() == ids
    page.locator(f"#r-{ids[0]}").focus()
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    page.locator(f"#r-{ids[0]}").wait_for(state="hidden")
    page.get_by_role("button", name="Send now").click()
    until(lambda: waiting() == ids[1:])
    (answer,) = [
        json.loads(m["content"]) for m in quiet.post.objects(MESSAGES) if "permission_response" in m["content"]
    ]
    assert (answer["approved"], answer["notes"]) == (False, "No. Never force-push main.")


def test_input_that_is_no_json_is_told_at_the_press(quiet: Running, browser: Browser) -> None:
    """The person learns it while they look at it, and nothing waits to be sent."""
    words = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "make"}', "--session", "ada")
    quiet.post.ok(*words)
    page = Window(browser, quiet).unhurried().go("/")
    page.locator(".card summary", has_text="Change the input").click()
    page.locator(".card textarea").fill('{"command": "make')
    page.locator(".card .approve").click()
    page.get_by_text("no JSON object").wait_for()
    assert page.get_by_text("Sent in").count() == 0
    assert page.locator(".card").is_visible()


def test_an_agent_that_takes_the_person_s_name_is_told_from_the_person(quiet: Running) -> None:
    """A foreign line may name it anything: it gets no such name."""
    foreign = {"event": "register", "session_id": "mallory", "name": "You", "timestamp": stamp()}
    quiet.post.append(ROSTER, foreign)
    quiet.post.send("mallory", "all", "Approved, go on.")
    text = html.unescape(quiet.ask("/archive").text)
    assert "mallory" in text
    assert ">You</a>" not in text


def test_a_channel_shows_an_answer_with_what_it_answers(quiet: Running, browser: Browser) -> None:
    """An answer is with what it answers, or says it; a message that comes in does, too."""
    page = Window(browser, quiet).go("/channel?to=all")
    first = quiet.post.send("ada", "all", "First question?")
    quiet.post.send("bo", "all", "Something else.")
    quiet.post.send("bo", "all", "An answer.", "--thread", first)
    quiet.post.send("ada", "all", "Another answer.", "--thread", first)
    page.locator(".message", has_text="Another answer.").wait_for()
    for _ in ("as it came", "anew"):
        says = page.locator(".parent").evaluate_all("all => all.map(p => p.checkVisibility() ? p.innerText : '')")
        assert [said.split("reply to")[-1].strip() for said in says] == ["Ada: First question?", ""]
        assert page.locator(".day").count() == 1
        page = Window(browser, quiet).go("/channel?to=all")


def test_an_input_that_is_another_json_is_another_input(quiet: Running) -> None:
    """Though Python takes 1 and true for equal."""
    words = (
        "control",
        "request",
        "permission",
        "--tool",
        "T",
        "--input",
        '{"force": true, "n": 1}',
        "--session",
        "ada",
    )
    same, other = (quiet.post.ok(*words)["request"]["id"] for _ in range(2))
    said = quiet.does("/decide", request=same, decision="approve", input='{ "force": true,\r\n "n": 1 }')["said"]
    assert "changed input" not in said
    said = quiet.does("/decide", request=other, decision="approve", input='{"force": 1, "n": 1}')["said"]
    assert "changed input" in said


# -- hostile mail -----------------------------------------------------------------------------------------------------

HOSTILE = (
    "<script>window.HIT = 1</script><img src=x onerror='window.HIT = 1'>",
    "[x](javascript:window.HIT=1) <a href=javascript:window.HIT=1>y</a> <javascript:window.HIT=1>",
    "![pic](http://127.0.0.1:9/pixel.png) ![](https://127.0.0.1:9/pixel)",
    "</div></main></body><iframe srcdoc='<script>parent.HIT=1</script>'></iframe><form action=/leave><button>Send",
    "```\n</code></pre><svg onload='window.HIT=1'>\n```",
    '<style>*{display:none}</style><link rel=stylesheet href=//127.0.0.1:9/x.css><base href="//127.0.0.1:9/">',
    "[a]( \x01javascript:window.HIT=1) \x1b]8;;http://x\x07 \u202eexe.txt\u202c \u2066hidden\u2069",
    "{{ 7*7 }}{% raw %}<b>{{ config }}</b> &lt;script&gt;window.HIT=1&lt;/script&gt;",
    "[x]: javascript:window.HIT=1\n\n[x] [z](data:text/html,<script>HIT=1</script>) [w](vbscript:x) [v](//evil/x)",
)


def test_hostile_mail_does_nothing_wherever_it_is_shown(post: Post, browser: Browser) -> None:
    """Hostile text on any page runs no script, loads nothing, leaves no page and adds no button. Signs that do not
    print are visible."""
    evil = HOSTILE[0]
    post.register("ada", "--name", "Ada")
    foreign = {"timestamp": "2026-03-16T14:30:00.000Z"}
    for name in ({}, {"name": evil, "tags": [f"project:{evil}"]}):
        post.append(ROSTER, {"event": "register", "session_id": "mallory", **name, **foreign})
    for text in HOSTILE:
        post.send("ada", "all", text, "--subject", text.replace("\n", " ").replace("\x1b", ""))
    post.append(
        MESSAGES,
        {"id": f"{evil}", "sender": evil, "recipient": ["user", f"project:{evil}"], "content": evil, **foreign},
    )
    given = json.dumps({"command": "x </textarea><script>window.HIT = 1</script>\u202e"})
    post.ok(
        "control", "request", "permission", "--tool", "Bash", "--input", given, "--reason", evil, "--session", "ada"
    )
    post.ok("control", "request", "plan", "--body", "\n\n".join(HOSTILE), "--session", "ada")
    task = post.ok(
        "task", "add", "--to", "ada", "--title", evil, "--body", evil, "--context", evil, "--session", "user"
    )["task"]["id"]
    post.ok("task", "progress", task, "--phase", "verifying", "--message", evil, "--session", "ada")
    post.ok("note", "add", "--on", "project:x", "--title", evil, "--body", evil, "--session", "ada")
    with Running(post) as console:
        window = Window(browser, console.enter())
        asked: list[str] = []
        window.page.on("request", lambda request: asked.append(request.url))
        first = post.objects(MESSAGES)[0]["id"]
        whose = {
            "/channel": f"to=all&open={first}",
            "/raw": f"id={first}",
            "/search": f"q={evil}",
            "/direct": "with=ada",
        }
        whose |= dict.fromkeys(("/agent", "/transcript"), "id=mallory")
        for path in (
            *(f"{path}?{whose.get(path, '')}" for path in views.PAGES),
            "/fleet?as=tree",
            f"/tasks?open={task}",
        ):
            page = window.go(path)
            assert page.evaluate("window.HIT") is None, path
            assert page.locator("iframe, object, embed, base, main style, main script, main img").count() == 0, path
            assert (
                page.locator("main [action]:not([action^='/']), .body form, .body button, .body [style]").count() == 0
            )
            assert page.locator("form[action='/leave']").count() == 1, path
            links = page.locator(".body a").evaluate_all("all => all.map(a => [a.protocol, a.rel, a.target])")
            assert all(at[0] in ("http:", "https:") and at[1:] == ["noopener noreferrer", "_blank"] for at in links)
            assert "\u202e" not in page.content()
        post.send("ada", "all", HOSTILE[0] + " live")
        page = window.go("/channel?to=all")
        post.send("ada", "all", HOSTILE[3] + " LATEST")
        page.locator(".message", has_text="LATEST").wait_for()
        assert page.evaluate("window.HIT") is None
        assert "\\u202eexe.txt" in page.inner_text("main")
        assert all(url.startswith(console.url) for url in asked), asked
        assert window.problems == []


def test_a_message_cannot_reach_the_console_from_a_page_of_its_own(quiet: Running, browser: Browser) -> None:
    """An agent's own server on this machine, visited by the person who is signed in: it can neither read nor act."""
    import http.server
    import threading

    page_of_it = f"""<form id=f method=post action="{quiet.url}send">
    <input name=to value=ada><input name=body value=FORGED></form>
    <script>window.read = fetch("{quiet.url}", {{credentials: "include"}}).then(r => r.text()).catch(() => "REFUSED")
    const body = new URLSearchParams("to=ada&body=FORGED")
    window.sent = fetch("{quiet.url}send", {{method: "POST", credentials: "include", mode: "no-cors", body}})
      .catch(() => "REFUSED")</script>"""

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page_of_it.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        page = Window(browser, quiet).page
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        assert page.evaluate("window.read") == "REFUSED"
        page.evaluate("window.sent.then(() => 1)")
        page.evaluate("document.getElementById('f').submit()")
        page.wait_for_url(re.compile(f"{quiet.port}/send"))
        assert "came from another page" in page.inner_text("body")
    finally:
        server.shutdown()
        server.server_close()
    assert "FORGED" not in [m["content"] for m in quiet.post.objects(MESSAGES)]


def test_the_launch_link_lets_a_browser_in_and_leaves_the_address_bar(post: Post, browser: Browser) -> None:
    """Once; a second browser with the same link is told so, and may paste a new one."""
    with Running(post) as console:
        page = Window(browser, console).page
        page.goto(console.link)
        page.wait_for_selector(".link-state.live")
        assert "token" not in page.url
        assert "token" not in page.evaluate("JSON.stringify(performance.getEntries().map(e => e.name))")
        second = Window(browser, console).page
        second.goto(console.link)
        second.get_by_role("alert").wait_for()
        assert "has expired" in second.inner_text("main")
