"""The published schemas are the model's, and say the same as what is written and read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core.control import message_text
from agent_mailbox.core.control.messages import TYPES as MESSAGES
from agent_mailbox.core.control.messages import Payload, Unknown
from scripts.control_schemas import schema
from tests.core.control.samples import CATALOG
from tests.core.control.test_messages import INSTANTS, PLAIN, payloads
from tests.helpers import ROOT

PUBLISHED = {path.name.removesuffix(".schema.json"): path for path in (ROOT / "docs/control").glob("*.schema.json")}
TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
}


def fits(value: Any, wanted: dict[str, Any]) -> bool:
    """Does the value fit the schema, as far as our schemas use the language?"""
    known = {"$schema", "title", "description", "type", "const", "enum", "required", "properties", "items", "format"}
    assert wanted.keys() <= known | {"minLength", "maxLength", "minimum", "maximum"}
    if "const" in wanted and value != wanted["const"]:
        return False
    if "enum" in wanted and value not in wanted["enum"]:
        return False
    if "type" in wanted and not isinstance(value, TYPES[wanted["type"]]):
        return False
    if isinstance(value, dict):
        inner = wanted.get("properties", {})
        return set(wanted.get("required", ())) <= value.keys() and all(
            fits(v, inner[k]) for k, v in value.items() if k in inner
        )
    if isinstance(value, list):
        return all(fits(one, wanted.get("items", {})) for one in value)
    if isinstance(value, str):
        return wanted.get("minLength", 0) <= len(value) <= wanted.get("maxLength", 1 << 30)
    return not isinstance(value, int) or wanted.get("minimum", value) <= value <= wanted.get("maximum", value)


def test_what_is_published_is_the_model() -> None:
    """One file a type, as ``scripts/schemas`` writes them."""
    assert set(PUBLISHED) == set(MESSAGES)
    for kind, path in PUBLISHED.items():
        assert json.loads(path.read_text(encoding="utf-8")) == schema(kind), "run scripts/schemas"


@given(payloads(), INSTANTS)
def test_everything_that_is_written_fits(payload: Payload, when: int) -> None:
    """Each control message that we write fits its schema and has no key that the schema lacks."""
    kind = payload.kind
    written = json.loads(message_text.written(payload.replace(timestamp=when)))
    assert fits(written, schema(kind))
    assert written.keys() <= schema(kind)["properties"].keys()


@pytest.mark.parametrize("kind", CATALOG)
def test_the_catalog_s_samples_fit(kind: str) -> None:
    """Each sample of the catalog, with the version that ours add, fits its schema."""
    assert fits({**json.loads(CATALOG[kind]), "version": 1}, schema(kind))


@given(st.sampled_from(sorted(CATALOG)), st.data())
def test_what_does_not_fit_is_not_taken(kind: str, data: st.DataObject) -> None:
    """A required field of another type makes a message unknown: but for the time, which decides nothing, for what has
    other spellings, and for a mode that is said a second time."""
    obj = {**json.loads(CATALOG[kind]), "version": 1}
    wanted = schema(kind)
    key = data.draw(st.sampled_from(sorted({*wanted["required"]} - {"timestamp", "mode"})))
    value = data.draw(PLAIN)
    if value is None or (key, type(value)) in (("approved", str), ("tool", str)):
        return
    obj[key] = value
    if not fits(obj, wanted):
        assert isinstance(message_text.parse(json.dumps(obj)), Unknown)
