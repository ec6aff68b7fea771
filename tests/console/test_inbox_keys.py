"""The inbox by its other keys, files with a message, and a page that is brought up to date while somebody uses it."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

from agent_mailbox.control_plane import control_log
from agent_mailbox.core.attachments import MOST
from agent_mailbox.core.control.messages import PermissionRequest
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.console.conftest import Running, Window
from tests.control_desk import ControlDesk
from tests.helpers import MESSAGES, ROOT, until

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page


RULE = {"type": "addRules", "behavior": "allow", "rules": ["Bash(make test:*)"]}
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(64)
GIVE = """([kind, name, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name));
  const event = kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
    : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
  document.querySelector("#body").dispatchEvent(event);
}"""


def test_the_page_lists_each_key_that_its_description_has(running: Running) -> None:
    """``?`` shows all keys."""
    table = (ROOT / "docs/console.md").read_text().partition("## Keys")[2].partition("\n## ")[0]
    told = {
        key
        for row in re.findall(r"(?m)^\| (.+?) \|", table)
        for keys in re.findall("`(.+?)`", row)
        for key in keys.split("+")
    }
    listed = running.ask("/").text.partition('<dialog id="keys"')[2].partition("</dialog>")[0]
    assert len(told) > 20
    assert told == {*re.findall("<kbd>(.+?)</kbd>", listed)}


def test_a_line_is_put_off_chosen_and_always_allowed_by_one_key(running: Running, browser: Browser) -> None:
    """``s`` puts a line off for an hour, in each browser, if its deadline is not near. The inbox gives it back. ``x``
    chooses it, and the bar decides what is chosen. ``Y`` goes to the offered rule, which ``Enter`` adds."""
    running.post.register("wren", "--name", "Wren")
    box = OpenMailbox(str(running.post.box))
    asks = ControlDesk(box)
    for name, offered in (("one", ()), ("two", ()), ("three", ()), ("rule", (RULE,))):
        call: dict[str, Any] = {"tool": "Bash", "input": {"command": f"make {name}"}}
        asks.request("wren", PermissionRequest(**call, request_id=f"perm-{name}", suggestions=offered))
    near = PermissionRequest(tool="Bash", input={}, request_id="perm-near", expires=box.now() + 90_000)
    refused = running.does("/put-off", id=asks.request("wren", near).message_id)
    assert (refused["status"], refused["said"]) == (409, "its deadline is too near to put it off. decide it now")
    window, other = Window(browser, running).unhurried(), Window(browser, running).go("/")
    page = window.go("/")
    for name in ("one", "rule"):
        window.choose(f"perm-{name}")
        page.keyboard.press("s" if name == "one" else "Y")
        if name == "one":
            expect(page.locator("#r-perm-one")).to_be_hidden()
            expect(page.locator("#details .card")).to_have_attribute("data-request", "perm-two")
            expect(other.locator("#r-perm-one")).to_have_count(0)
    page.keyboard.press("Enter")
    page.locator("#held", has_text="Allow always").wait_for()
    page.get_by_role("button", name="Show 1 that you put off").click()
    expect(page.locator("#r-perm-one")).to_be_visible()
    for name in ("two", "three"):
        window.choose(f"perm-{name}")
        page.keyboard.press("x")
    page.get_by_text("2 chosen").wait_for()
    page.get_by_label("Reason, told to each").fill("not today")
    page.get_by_role("button", name="Deny the chosen").click()

    def states() -> dict[str, str]:
        found = control_log.of(box).requests
        return {name: found[f"perm-{name}"].state for name in ("one", "two", "three", "rule")}

    page.goto("about:blank")  # which sends what is held
    until(lambda: states() == {"one": "open", "two": "denied", "three": "denied", "rule": "approved"})
    assert window.problems == []


def attached(running: Running) -> list[tuple[str, str]]:
    """The newest message's files: each one's name and digest."""
    return [(one["name"], one["sha256"]) for one in running.post.objects(MESSAGES)[-1].get("attachments", ())]


def give(page: Page, kind: str, name: str, content: bytes) -> None:
    """Drop a file on the page, or paste it into the text."""
    page.evaluate(GIVE, [kind, name, [*content]])


def test_files_come_by_drop_paste_and_choice(running: Running, browser: Browser, tmp_path: Path) -> None:
    """Each is named before it goes, and can be left out; a form without script sends them, too."""
    post = running.post
    post.register("ada", "--name", "Ada", "--tags", "project:x")
    window = Window(browser, running)
    page = window.go("/channel?to=project:x")
    page.locator("#body").fill("three files")
    give(page, "drop", "plan.png", PICTURE)
    give(page, "paste", "no.log", b"no")
    give(page, "paste", 'run 12".log', b"\r\n--x\r\n\0\xff")
    page.get_by_role("button", name="Leave out no.log").click()
    expect(page.locator(".attached li")).to_have_text(["plan.png ✕", 'run 12".log ✕'])
    page.get_by_role("button", name="Send").click()
    page.locator(".message img[alt='plan.png']").wait_for()
    expected = {"plan.png": PICTURE, 'run 12".log': b"\r\n--x\r\n\0\xff"}
    assert attached(running) == [(name, hashlib.sha256(data).hexdigest()) for name, data in expected.items()]
    expect(page.locator(".attached li")).to_have_count(0)
    plain = Window(browser, running, java_script_enabled=False)
    page = plain.go("/new", live=False)
    (tmp_path / "ä.txt").write_text("chosen")
    page.locator("#to").fill("Ada")
    page.locator("#body").fill("one file")
    page.locator("input[type=file]").set_input_files([tmp_path / "ä.txt"])
    page.get_by_role("button", name="Send").click()
    page.get_by_text("Sent to Ada").wait_for()
    assert attached(running) == [("ä.txt", hashlib.sha256(b"chosen").hexdigest())]
    assert window.problems == plain.problems == []


def test_a_body_in_parts_that_is_wrong_sends_nothing(running: Running) -> None:
    """A broken body has no fields, a right one has its own. Too many files are refused, and too many bytes."""
    running.post.register("ada", "--name", "Ada")
    kind = "multipart/form-data; boundary=B"

    def parts(*heads: str, content: bytes = b"x") -> bytes:
        return b"".join(b"--B\r\n" + head.encode() + b"\r\n\r\n" + content + b"\r\n" for head in heads) + b"--B--\r\n"

    def send(body: bytes, kind: str = kind) -> tuple[int, str]:
        answer = running.ask("/send", body, headers={"Content-Type": kind, "Accept": "application/json"})
        return answer.status, answer.text

    to = 'Content-Disposition: form-data; name="to"'
    file = 'Content-Disposition: form-data; name="files"; filename="a"'
    text = to.replace("to", "body")
    odd_ones = (b"", b"--B", b"--B\r\n\r\n", parts(to, content=b"\xff"), parts(to, *[text] * 64), parts(to, text)[:-30])
    for body, words in (*((odd, kind) for odd in odd_ones), (parts(to, text, content=b"Ada"), kind[:19])):
        assert send(body, words)[0] in (400, 404), body
    assert send(parts(to, text, content=b"Ada"))[0] == 200
    assert running.post.objects(MESSAGES)[-1]["content"] == "Ada"
    status, said = send(parts(*[file] * (MOST + 1)))
    assert (status, f"send at most {MOST}" in said) == (400, True)
    assert send(b"x" * (600 << 10), "application/x-www-form-urlencoded")[0] == 413
    assert len(running.post.objects(MESSAGES)) == 1


RENEWED = "document.addEventListener('patched', () => { document.body.dataset.renewed = 1; }, { once: true })"


def renewed(page: Page, running: Running, who: str) -> None:
    """Have the page brought up to date: an agent comes that it shows."""
    page.evaluate(f"delete document.body.dataset.renewed; {RENEWED}")
    running.post.register(who, "--name", who.title())
    page.locator("body[data-renewed]").wait_for()


def test_an_update_leaves_what_is_as_it_was_and_what_is_in_use(running: Running, browser: Browser) -> None:
    """Cards whose meaning did not change stay the same nodes. An open menu stays open and in its place, with what is
    typed in it, even if its agent belongs into another column. Once it is closed it is brought up to date."""
    post = running.post
    for name in ("ada", "bo"):
        post.register(name, "--name", name.title())
    window = Window(browser, running)
    page = window.go("/fleet")
    page.evaluate("for (const one of document.querySelectorAll('.agent-card')) one.marked = one.dataset.key")
    card = page.locator('.agent-card[data-key="ada"]')
    card.locator("summary").click()
    card.locator("input[name=to]").fill("bo")
    place = card.locator(".menu-body").bounding_box()
    given = '{"command": "git push"}'
    post.ok("control", "request", "permission", "--tool", "Bash", "--input", given, "--session", "ada")
    renewed(page, running, "aaron")
    expect(page.locator('.agent-card[data-key="aaron"]')).to_have_count(1)
    marks = "[...document.querySelectorAll('.agent-card')].map((one) => one.marked).filter(Boolean).sort()"
    assert page.evaluate(marks) == ["ada", "bo"]
    expect(page.locator(".column.you .agent-card")).to_have_count(0)
    expect(card.locator("input[name=to]")).to_have_value("bo")
    expect(card.locator("input[name=to]")).to_be_focused()
    assert card.locator(".menu-body").bounding_box() == place
    page.locator("h1").click()
    expect(page.locator('.column.you .agent-card[data-key="ada"]')).to_contain_text("git push")
    assert page.evaluate(marks) == ["ada", "bo"]
    card.locator("summary").click()
    expect(card.locator("input[name=to]")).to_have_value("bo")
    assert window.problems == []


def test_nothing_moves_between_the_begin_and_the_end_of_a_press(running: Running, browser: Browser) -> None:
    """News are shown as the button is up, and the press reaches what was pressed."""
    running.post.register("bo", "--name", "Bo")
    page = Window(browser, running).go("/fleet")
    page.locator(".agent-card .who").hover()
    page.mouse.down()
    with page.expect_response(lambda answer: answer.url.endswith("/fleet")):
        running.post.register("ada", "--name", "Ada")
    expect(page.locator(".agent-card")).to_have_count(1)
    page.mouse.up()
    page.wait_for_url("**/agent?id=bo")


def test_a_note_is_gone_once_it_is_dropped(running: Running, browser: Browser) -> None:
    """The press of its own button does not hold it on the page."""
    running.post.register("ada", "--tags", "project:app")
    for title in ("Ports", "Hosts"):
        running.does("/add-note", to="project:app", subject=title)
    page = Window(browser, running).go("/notes")
    page.locator("article", has_text="Ports").get_by_role("button", name="Drop").click()
    expect(page.locator("article")).to_have_count(1)


def test_a_given_task_stands_where_it_is_now(running: Running, browser: Browser) -> None:
    """Its form closes when it did what it was for, and its card moves to the new column. Enter in it does nothing."""
    running.post.register("ada", "--role", "worker")
    running.does("/assign", to="role:worker", subject="Plate 9")
    page = Window(browser, running).go("/tasks")
    page.get_by_text("Give, take back, cancel").click()
    page.get_by_label("To whom").fill("ada")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Give", exact=True).click()
    expect(page.locator('[data-key="claimed"] .task')).to_contain_text("Plate 9")
    expect(page.locator(".task details[open]")).to_have_count(0)


def test_what_is_marked_as_read_at_once_is_what_the_page_lists(running: Running, browser: Browser) -> None:
    """The form below the list follows the list, and so does its button."""
    running.post.register("ada", "--name", "Ada")
    running.post.send("ada", "user", "first")
    page = Window(browser, running).go("/")
    expect(page.get_by_role("button", name="Mark 1 as read")).to_be_visible()
    running.post.send("ada", "user", "second")
    page.get_by_role("button", name="Mark 2 as read").click()
    expect(page.locator("#said")).to_contain_text("Marked 2 as read")
    expect(page.locator("#inbox")).to_contain_text("Nothing waits for you")


def test_an_answer_counts_with_any_parameter_of_its_type(running: Running, browser: Browser) -> None:
    """A proxy may add the charset to the answer's type; the page still reads what became of the button."""
    running.post.register("ada", "--name", "Ada")
    page = Window(browser, running).go("/direct?with=ada")
    told = '{"kind": "done", "said": "Sent to Ada.", "message_id": null}'
    page.route("**/send", lambda route: route.fulfill(content_type="application/json; charset=utf-8", body=told))
    page.locator("#body").fill("hello")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#said")).to_contain_text("Done: Sent to Ada")
    expect(page.locator("#body")).to_have_value("")


def test_a_menu_is_used_by_keys_alone_and_keeps_the_place(running: Running, browser: Browser) -> None:
    """Escape closes it, and so does a press in it. The focus is then where the menu opens."""
    for name in ("ada", "bo"):
        running.post.register(name, "--name", name.title())
    page = Window(browser, running).go("/fleet")
    opens = page.locator('.agent-card[data-key="ada"] summary')
    for leave in ("Escape", "Enter"):
        opens.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Wake")).to_be_focused()
        page.keyboard.press(leave)
        expect(page.locator(".menu[open]")).to_have_count(0)
        expect(opens).to_be_focused()
    expect(page.locator("#said")).to_contain_text("Sent to Ada")
    expect(opens).to_be_focused()


def test_the_forms_of_an_agent_go_with_it_and_keep_what_one_began(running: Running, browser: Browser) -> None:
    """An update leaves the tick and the text in them. Once the agent is retired elsewhere none of them is there."""
    running.post.register("ada", "--name", "Ada")
    page = Window(browser, running).go("/agent?id=ada")
    page.get_by_text("Change or end this agent").click()
    page.locator("input[name=sure]").check()
    page.locator("#why").fill("enough")
    page.locator("#mode").select_option("plan")
    running.does("/rename", agent="ada", name="Countess")
    expect(page.get_by_role("heading", level=1)).to_have_text("Countess")
    expect(page.locator("input[name=sure]")).to_be_checked()
    expect(page.locator("#why")).to_have_value("enough")
    expect(page.locator("#mode")).to_have_value("plan")
    running.does("/state", agent="ada", event="retire", sure="1")
    expect(page.get_by_role("button", name="Retire")).to_have_count(0)
    expect(page.get_by_role("link", name="Write to")).to_have_count(0)


def test_the_focus_follows_a_place_of_the_rail_to_where_it_has_new_mail(running: Running, browser: Browser) -> None:
    """The link is in another list then; the next key still goes to it."""
    running.post.register("ada", "--tags", "project:x")
    page = Window(browser, running).go("/archive")
    link = page.locator("#rail a[data-channel='project:x']")
    link.focus()
    running.post.send("ada", "project:x", "news")
    expect(page.locator("#rail [data-key=fresh] a[data-channel='project:x']")).to_be_focused()
