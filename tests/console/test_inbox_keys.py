"""The inbox by its other keys, and files with a message: dropped, pasted, or chosen without script."""

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
