"""The forms of a page, as a browser without script sends them: every field that the page's own template gives."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Form:
    """A form: its ``action``, its ``fields``, and its submit ``buttons`` in their order, each with what it sends."""

    def __init__(self, action: str) -> None:
        self.action = action
        self.fields: dict[str, str] = {}
        self.buttons: list[tuple[str, str, str]] = []

    def pressed(self, value: str = "") -> tuple[str, dict[str, str]]:
        """Where a press leads, and what it sends: the button with a value, or the first one."""
        name, sent, action = next(one for one in self.buttons if not value or one[1] == value)
        return action or self.action, {**self.fields, **({name: sent} if name else {})}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._by_id: dict[str, Form] = {}
        self._at: Form | None = None
        self._text: tuple[Form, str] | None = None
        self._select: tuple[Form, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._at = Form(given.get("action", ""))
            if given.get("method") == "post":
                self.forms.append(self._at)
            self._by_id[given.get("id", "")] = self._at
        form = self._by_id.get(given["form"]) if "form" in given else self._at
        name = given.get("name", "")
        if form is None:
            return
        if tag == "button" and "disabled" not in given and given.get("type") != "button":
            form.buttons.append((name, given.get("value", ""), given.get("formaction", "")))
        elif tag == "input" and name:
            if given.get("type") not in ("checkbox", "radio") or "checked" in given:
                form.fields[name] = given.get("value", "on" if given.get("type") == "checkbox" else "")
        elif tag == "textarea" and name:
            form.fields[name] = ""
            self._text = form, name
        elif tag == "select" and name:
            self._select = form, name
        elif tag == "option" and self._select is not None:
            at, name = self._select
            if name not in at.fields or "selected" in given:
                at.fields[name] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._at = None
        elif tag == "textarea":
            self._text = None
        elif tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            form, name = self._text
            form.fields[name] += data


def read_forms(page: str) -> list[Form]:
    """The forms of a page that change something."""
    reader = _Reader()
    reader.feed(page)
    return reader.forms


def find_form(forms: Iterable[Form], action: str, **having: str) -> Form:
    """The first form with an action, and with these values in its fields."""
    for form in forms:
        leads = action in (form.action, *(at for _, _, at in form.buttons))
        if leads and all(form.fields.get(name) == value for name, value in having.items()):
            return form
    raise AssertionError(f"no form {action} with {having}")
