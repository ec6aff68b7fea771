"""The console and the real client: the person decides a tool call in the browser, and is heard by the session."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.console.conftest import Running, Window
from tests.e2e.standin import bash, in_turn
from tests.helpers import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.e2e.client import Client

pytestmark = pytest.mark.usefixtures("on_path")


def test_a_waiting_call_runs_as_the_person_approved_it_and_a_channel_reaches_the_model(
    client: Client,
    browser: Browser,
) -> None:
    """Nothing runs before; the model has the output of what ran, and what was typed into its project's channel."""
    session, project = str(uuid.uuid4()), client.project
    client.post.register(session, "--name", "Wu", "--lead", "user", "--tags", "project:inscription")
    client.model.script = in_turn([bash("touch asked")])
    failed: list[BaseException] = []

    def work() -> None:
        try:
            client.ask("PROMPT", "--session-id", session, "--permission-mode", "default")
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    with Running(client.post) as console:
        page = Window(browser, console.enter()).unhurried().go("/")
        thread.start()
        try:
            card: Any = page.locator(".card")
            card.wait_for()
            assert "touch asked" in card.locator("textarea").input_value()
            assert not (project / "asked").exists()
            beside = Window(browser, console).go("/channel?to=project:inscription")
            beside.locator("#body").fill("CHANNEL_WORD to all of you")
            beside.get_by_role("button", name="Send").click()
            beside.get_by_text("CHANNEL_WORD").wait_for()
            card.get_by_text("Change the input").click()
            card.locator("textarea").fill('{"command": "touch given; echo CHANGED_OUTPUT", "description": "another"}')
            card.get_by_role("button", name="Approve").click()
            page.get_by_role("button", name="Send now").click()
            card.wait_for(state="detached")
        finally:
            thread.join(PATIENCE)
        beside.locator(".receipt.quiet", has_text="seen by Wu").wait_for()
    assert not failed, failed
    assert (project / "given").exists()
    assert not (project / "asked").exists()
    assert client.model.asked("CHANGED_OUTPUT")
    assert client.model.asked("CHANNEL_WORD")
