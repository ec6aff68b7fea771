"""The person's orders from an agent's page: each as its command has it, and refused as there."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from agent_mailbox.console import actions
from agent_mailbox.console.desk import Desk
from agent_mailbox.control.orders import Orders
from agent_mailbox.control_plane.standing import find_standing
from agent_mailbox.core.instant import HOUR
from agent_mailbox.errors import Refused
from tests.console.conftest import Running, Window
from tests.console.scene import Scene
from tests.helpers import MESSAGES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from agent_mailbox.mailbox.sending import Sent
    from tests.helpers import Post


def test_the_console_sets_an_agent_s_mode_rules_name_and_end(running: Running) -> None:
    """Each takes effect where the command would show it; one rule goes, and the others stay."""
    post = running.post
    post.register("ada", "--name", "Ada")
    assert running.does("/mode", agent="ada", mode="safe")["said"] == "Ada works in the mode safe."
    orders = len(post.objects(MESSAGES))
    assert running.does("/mode", agent="ada", mode="safe")["said"] == "Ada works in the mode safe already."
    told = running.does("/mode", agent="ada", mode="bypassPermissions")
    assert (told["status"], "choose one of " in str(told)) == (400, True)
    assert len(post.objects(MESSAGES)) == orders
    rules = ("--allow", "Bash(git:*)", "--allow", "Read", "--deny", "WebFetch", "--host", "example.org")
    post.ok("control", "policy", "ada", *rules, "--session", "user")
    page = running.ask("/agent?id=ada").text
    assert page.count('action="/revoke"') == 4
    told = running.does("/revoke", agent="ada", kind="allow", rule="Bash(git:*)")
    assert told["said"] == "Bash(git:*) is revoked for Ada."
    page = running.ask("/agent?id=ada").text
    assert page.count('action="/revoke"') == 3
    assert ('value="Read"' in page, 'value="WebFetch"' in page, 'value="Bash(git' in page) == (True, True, False)
    assert "Countess" in running.does("/rename", agent="ada", name="Countess")["said"]
    for event, state in (("freeze", "frozen"), ("thaw", "alive")):
        assert running.does("/state", agent="ada", event=event)["kind"] == "done"
        assert post.ok("roster", "show", "ada")["agent"]["state"] == state
    fields = {"agent": "ada", "message_id": str(uuid.uuid4()), "reason": "enough"}
    assert {running.does("/shutdown", **fields)["kind"] for _ in range(2)} == {"done"}
    assert len(post.ok("control", "pending", "--session", "ada")["requests"]) == 1
    assert running.does("/state", agent="ada", event="retire", sure="1")["said"] == "Countess is dead."
    assert post.ok("roster", "show", "ada")["agent"]["state"] == "dead"


def test_a_rule_that_comes_at_the_moment_of_revoking_another_stays(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rules are replaced as one is revoked: by those of a moment ago nothing is replaced."""
    post.register("ada", "--name", "Ada")
    post.ok("control", "policy", "ada", "--allow", "Read", "--session", "user")
    desk, plain = Desk(str(post.box)), Orders.set_policy

    def overtaken(self: Orders, *given: Any, **named: Any) -> Sent:
        monkeypatch.setattr(Orders, "set_policy", plain)
        self.set_policy("user", ["ada"], deny=["WebFetch"], adds=True)
        return plain(self, *given, **named)

    monkeypatch.setattr(Orders, "set_policy", overtaken)
    fields = {"agent": "ada", "kind": "allow", "rule": "Read"}
    with desk.lock_for_acting() as now:
        with pytest.raises(Refused, match="changed at this moment"):
            actions.ACTS["/revoke"](now, fields)
        assert find_standing(now.mailbox, "ada").policy.deny == ("WebFetch",)
        assert "is revoked" in actions.ACTS["/revoke"](now, fields)
        assert find_standing(now.mailbox, "ada").policy.deny == ("WebFetch",)


def test_the_fleet_tells_who_waits_for_whom_and_gives_their_orders(running: Running) -> None:
    """Each agent is in the column of what it waits for; it is woken, frozen and relieved from there."""
    post = running.post
    for name, more in (("ada", ()), ("bo", ("--lead", "ada")), ("cy", ()), ("di", ())):
        post.register(name, "--name", name.title(), *more)
    for name, tool in (("ada", "git push"), ("bo", "make deploy")):
        given = f'{{"command": "{tool}"}}'
        post.ok("control", "request", "permission", "--tool", "Bash", "--input", given, "--session", name)
    running.does("/assign", to="cy", subject="Split the parser")
    post.ok("roster", "freeze", "di")
    page = running.ask("/fleet").text
    columns = [re.findall(r'class="who" [^>]*>(\w+)<', part) for part in page.split('<section aria-labelledby="h-')[1:]]
    assert columns == [["Ada"], ["Bo"], ["Cy"], ["Di"]]
    assert "runs git push" in page
    assert "Ada decides, since" in page
    assert "Split the parser" in page
    tree = running.ask("/fleet?as=tree").text
    assert re.search(r'depth-0" data-key="ada".*depth-1" data-key="bo"', tree, re.DOTALL)
    assert re.findall(r'class="who" [^>]*>(\w+)<', running.ask("/fleet?lead=ada").text) == ["Bo"]
    fields = running.form("/fleet", "/wake", {"agent": "bo"})
    assert "Bo" in running.does("/wake", **fields)["said"]
    assert post.objects(MESSAGES)[-1]["priority"] == "high"
    fields = running.form("/fleet", "/hand-over", {"agent": "cy"})
    told = running.does("/hand-over", **{**fields, "to": "bo"})["said"]
    assert told == "Bo has what Cy held: “Split the parser”."
    assert "holds no task" in running.does("/hand-over", **{**fields, "to": "bo"})["said"]
    assert "nobody is named" in running.does("/hand-over", **fields)["said"]
    table = running.ask("/agents?lead=ada").text
    assert re.findall(r"<tr data-key=\"(\w+)", table) == ["bo"]
    assert 'href="/fleet?as=tree&amp;lead=ada"' in table
    post.ok("roster", "freeze", "ada")
    assert re.search(r"Ada decides, since \d+ \w+; Ada is frozen", running.ask("/fleet").text)


def test_what_was_so_before_is_not_told_as_done(running: Running) -> None:
    """The second press of a button that changes a state says that the state was there before, and no more."""
    post = running.post
    post.register("ada", "--name", "Ada", "--tags", "project:x")
    made = post.send("ada", "user", "once", "--ack")
    running.does("/add-note", to="project:x", subject="Ports")
    (note,) = (one["id"] for one in post.ok("note", "list")["notes"])
    given = '{"command": "make"}'
    asked = post.ok("control", "request", "permission", "--tool", "Bash", "--input", given, "--session", "ada")[
        "request"
    ]
    for path, fields in (
        ("/ack", {"id": made}),
        ("/release", {"id": made, "reader": "user"}),
        ("/decide", {"request": asked["id"], "decision": "approve"}),
        ("/drop-note", {"note": note}),
        ("/place", {"place": "project:x", "kind": "muted", "on": "1"}),
        ("/place", {"place": "project:x", "kind": "muted", "on": "0"}),
        ("/rename", {"agent": "ada", "name": "Countess"}),
        ("/shutdown", {"agent": "ada"}),
        ("/state", {"agent": "ada", "event": "freeze"}),
        ("/state", {"agent": "ada", "event": "thaw"}),
        ("/state", {"agent": "ada", "event": "retire", "sure": "1"}),
    ):
        assert running.does(path, **fields)["kind"] == "done", path
        told = running.does(path, **fields)
        assert (told["status"], told["kind"], " already" in told["said"]) == (200, "news", True), told
    assert "no message 'none'" in running.does("/put-off", id="none")["said"]
    assert running.does("/put-off", id="")["kind"] == "news"
    together = {"decision": "approve", f"chosen:{asked['id']}": "1"}
    assert "was decided so before" in running.does("/decide-chosen", **together)["said"]
    running.ask("/drop-note", {"note": note, "next": "/notes"})
    page = running.ask("/notes").text
    assert ("is off the board already" in page, "Done:" in page, "Refused:" in page) == (True, False, False)


def test_without_script_a_refused_hand_over_keeps_the_name(running: Running) -> None:
    """The menu is open again, with whom one typed."""
    for who in ("ada", "bo"):
        running.post.register(who, "--name", who.title())
    fields = running.form("/fleet", "/hand-over", {"agent": "ada"}, to="nobody of that name")
    running.ask("/hand-over", fields)
    page = running.ask("/fleet").text
    assert 'value="nobody of that name"' in page
    assert page.count('<details class="menu orders" data-key="ada-orders" open>') == 1
    assert 'data-key="bo-orders" open' not in page


def test_a_hand_over_tells_what_stays(running: Running) -> None:
    """A task that waits for another one is not given on; those that are, and it, are named."""
    post = running.post
    for who in ("ada", "bo"):
        post.register(who, "--name", who.title())
    running.does("/assign", to="role:later", subject="First", message_id=str(uuid.uuid4()))
    (first,) = (one["id"] for one in post.ok("task", "list")["tasks"])
    running.does("/assign", to="ada", subject="Second", after=first, message_id=str(uuid.uuid4()))
    running.does("/assign", to="ada", subject="Third", message_id=str(uuid.uuid4()))
    told = running.does("/hand-over", agent="ada", to="bo")
    assert told["kind"] == "done"
    assert "Bo has what Ada held: “Third”." in told["said"]
    assert "“Second” stays: " in told["said"]
    again = running.does("/hand-over", agent="ada", to="bo")
    assert (again["kind"], "“Second” stays: " in again["said"]) == ("problem", True)


def test_what_may_not_be_is_told_and_changes_nothing(running: Running) -> None:
    """No bypassing mode, no agent by another's name, no unconfirmed end, no stranger's name."""
    running.post.register("ada", "--name", "Ada")
    running.post.register("bo", "--name", "Bo")
    for path, said, fields in (
        ("/mode", "bypassPermissions", {"mode": "bypassPermissions"}),
        ("/mode", "no agent 'Ada'", {"agent": "Ada", "mode": "safe"}),
        ("/mode", "no agent 'user'", {"agent": "user", "mode": "safe"}),
        ("/mode", "no agent 'all'", {"agent": "all", "mode": "safe"}),
        ("/revoke", "no such rule", {"kind": "allow", "rule": "Read"}),
        ("/revoke", "no such rule", {"kind": "mode", "rule": "safe"}),
        ("/rename", "name", {"name": " "}),
        ("/rename", "bo", {"name": "Bo"}),
        ("/rename", "name", {"name": "<b>"}),
        ("/state", "not confirmed", {"event": "retire"}),
        ("/state", "unknown change", {"event": "register"}),
    ):
        told = running.does(path, **{"agent": "ada", **fields})
        assert (told["kind"], said.casefold() in told["said"].casefold()) == ("problem", True), told
    agent = running.post.ok("roster", "show", "ada")["agent"]
    assert (agent["name"], agent["state"]) == ("Ada", "alive")


def test_an_order_shows_live_as_the_person_s(running: Running, browser: Browser) -> None:
    """The mode and the name change where one looks; the row that comes live is proven, as it is after a reload."""
    running.post.register("ada", "--name", "Ada")
    page = Window(browser, running).go("/agent?id=ada")
    expect(page.locator("#link-state")).to_contain_text("● live")
    page.get_by_text("Change or end this agent").click()
    page.locator("#mode").select_option("safe")
    page.get_by_role("button", name="Set the mode").click()
    expect(page.locator(".facts")).to_contain_text("safe")
    expect(page.locator("[data-live]")).to_contain_text("mode set request: safe")
    expect(page.locator("[data-live]")).not_to_contain_text("unverified")
    expect(page.locator("#mode")).to_have_value("safe")
    page.locator("#name").fill("Countess")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Countess")


def test_a_button_with_its_own_address_reaches_it(running: Running, browser: Browser) -> None:
    """The menus of the fleet and of the task board name their addresses on the buttons."""
    running.post.register("ada", "--name", "Ada")
    running.does("/assign", to="ada", subject="Plate 9")
    window = Window(browser, running)
    for path, action, told in (("/fleet", "/wake", "Sent to Ada"), ("/tasks", "/cancel-task", "is cancelled")):
        page = window.go(path)
        page.evaluate(f"document.querySelector('[formaction=\"{action}\"]').click()")
        expect(page.locator("#said")).to_contain_text(told)
    assert window.problems == []


def test_an_agent_that_was_long_silent_is_alive_on_no_page(post: Post) -> None:
    """Every page that shows its state says that it is silent."""
    scene = Scene(str(post.box))
    scene.at = scene.now - 4 * HOUR
    who = scene.agent("Silent", tags=("project:x",))
    with Running(post) as console:
        console.enter()
        for page in (
            "/rail",
            "/agents",
            "/fleet",
            "/columns?page=/channel&to=project:x",
            "/agent?id=",
            "/direct?with=",
        ):
            shown = re.findall(r'class="state (\w+)"', console.ask(page + who * page.endswith("=")).text)
            assert (set(shown), page) == ({"silent"}, page)
