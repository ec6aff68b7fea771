"""Typed messages: every spelling comes to one value, the catalog's form is written, nothing else is taken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core import codec
from agent_mailbox.core.address import MAX_ID
from agent_mailbox.core.control import message_text, summary
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.control.message_fields import Field
from agent_mailbox.core.control.messages import MODES, Unknown
from tests.core.control.samples import CATALOG, OBSERVED, VERBATIM

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=3),
    max_leaves=8,
)
RULES = st.sampled_from(("Read", "Bash(git:*)", "mcp__server__*", "Edit(//abs/path/**)", "WebFetch(domain:a.b)"))
INSTANTS = st.integers(0, 4_000_000_000_000)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "id": st.from_regex(r"[a-z]{1,9}-[0-9a-f@.]{1,12}", fullmatch=True),
    "text": WORDS,
    "texts": st.lists(WORDS, max_size=3, unique=True).map(tuple),
    "rules": st.lists(RULES, max_size=3, unique=True).map(tuple),
    "flag": st.booleans(),
    "instant": INSTANTS,
    "when": INSTANTS,
    "mode": st.sampled_from(MODES),
    "any": st.dictionaries(st.sampled_from("abcde"), PLAIN, max_size=3),
    "list": st.lists(PLAIN, max_size=3).map(tuple),
    "version": st.just(1),
}


def value(field: Field) -> st.SearchStrategy[Any]:
    """A value the field may have."""
    return st.sampled_from(field.kind) if isinstance(field.kind, tuple) else VALUES[field.kind]


@st.composite
def payloads(draw: st.DrawFn) -> m.Payload:
    """Any message of the union, any of its optional fields left out."""
    kind = draw(st.sampled_from(sorted(m.TYPES)))
    said = {f.name: draw(value(f)) for f in m.TYPES[kind].fields if f.required or draw(st.booleans())}
    if said.get("approved"):
        said.pop("cause", None)
    if kind == "plan_approval_request":
        said["goal"] = draw(WORDS)
    return m.TYPES[kind](**said)


@given(payloads())
def test_what_is_written_is_read_back(payload: m.Payload) -> None:
    """Each value of the union survives the wire, in an object that names its type and version."""
    text = message_text.written(payload)
    assert message_text.parse(text) == payload
    assert json.loads(text)["type"] == payload.kind
    assert json.loads(text)["version"] == 1


@pytest.mark.parametrize("kind", CATALOG)
def test_the_catalog_s_form_is_the_one_that_is_written(kind: str) -> None:
    """Each sample of the catalog comes back key for key: nothing renamed, nothing lost but what is empty."""
    sample = json.loads(CATALOG[kind])
    payload = message_text.parse(CATALOG[kind])
    assert type(payload) is m.TYPES[kind]
    written = json.loads(message_text.written(payload))
    assert written.pop("version") == 1
    sample.get("result", {}).pop("errors", None)  # empty
    if kind == "mode_set_request":  # of two modes the narrower counts
        assert sample.pop("policy") == {"permissionMode": "default"}
    assert written == sample


@pytest.mark.parametrize(("text", "fields"), OBSERVED, ids=[f"{n}" for n in range(len(OBSERVED))])
def test_every_observed_spelling_comes_to_the_one_value(text: str, fields: dict[str, Any]) -> None:
    """Flat or nested, ``subtype`` or ``approved``, ``plan`` or ``planContent``."""
    payload = message_text.parse(text)
    assert not isinstance(payload, Unknown), payload
    assert {name: getattr(payload, name) for name in fields} == fields
    assert message_text.parse(message_text.written(payload)) == payload


@pytest.mark.parametrize("where", ["request", "response"])
def test_the_deepest_input_that_a_message_holds_is_shown_whole(where: str) -> None:
    """The input of a request, and the one that it was changed into. One level more is no message."""

    def parsed(depth: int) -> tuple[str, m.Payload | Unknown]:
        value: Any = 2
        for level in range(depth):
            value = {"ä": value} if (depth - level) % 2 else [value]
        place = {"tool": {"name": "T", "input": value}} if where == "request" else {"updatedInput": value}
        content = {"type": f"permission_{where}", "requestId": "r", "approved": True, **place}
        return codec.dumps(value, -codec.MAX_DEPTH), message_text.parse(json.dumps(content, ensure_ascii=False))

    deepest = codec.MAX_DEPTH - (2 if where == "request" else 1)
    given, payload = parsed(deepest)
    assert given in summary.whole(payload)
    assert isinstance(parsed(deepest + 1)[1], Unknown)


def test_the_questions_of_a_model_are_shown_as_text() -> None:
    """Each has its choices. An input that has anything else is shown as it is."""
    choices = [{"label": "Red", "description": "warm"}, {"label": "Blue", "preview": "[ ]"}]
    one = {"header": "Look", "question": "Which?", "multiSelect": True, "options": choices}
    asked = m.PermissionRequest(
        request_id="r", tool="AskUserQuestion", input={"questions": [one, {"question": "Why?"}]}
    )
    told = "permission_request r: AskUserQuestion "
    assert summary.whole(asked) == f"{told}Look: Which? (any of: Red: warm / Blue: [ ]); Why?"
    unlike = [{**one, "odd": 1}, {**one, "options": ["Red"]}, {**one, "options": [{"label": 1}]}, "x"]
    for odd in (*({"questions": [other]} for other in unlike), {"questions": [one], "odd": 1}, {"questions": []}, []):
        assert summary.whole(asked.replace(input=odd)) == told + codec.dumps(odd)


def test_a_shutdown_response_is_one_of_the_two() -> None:
    """``approved`` tells which."""
    yes, no = (f'{{"type":"shutdown_response","requestId":"s","approved":{flag}}}' for flag in ("true", "false"))
    assert isinstance(message_text.parse(yes), m.ShutdownApproved)
    assert isinstance(message_text.parse(no), m.ShutdownRejected)


def respelt(value: Any, how: Any) -> Any:
    """The same object with its keys in another case."""
    if isinstance(value, dict):
        return {how(key): respelt(inner, how) for key, inner in value.items()}
    return [respelt(inner, how) for inner in value] if isinstance(value, list) else value


def snake(key: str) -> str:
    """``request_id`` of ``requestId``."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key)


@pytest.mark.parametrize("text", VERBATIM)
def test_keys_may_be_spelt_in_snake_case(text: str) -> None:
    """A control message with keys in snake case is read as the same message with keys in camel case."""
    assert message_text.parse(json.dumps(respelt(json.loads(text), snake))) == message_text.parse(text)


BAD = {
    "no object": "[1]",
    "no JSON": "approve it",
    "no type": '{"requestId": "r"}',
    "a type nobody knows": '{"type": "root_request", "requestId": "r"}',
    "a type in another case": '{"type": "Mode_Set_Request", "mode": "plan"}',
    "no request id": '{"type": "shutdown_request"}',
    "an empty id": '{"type": "shutdown_request", "requestId": ""}',
    "an id that is too long": f'{{"type": "shutdown_request", "requestId": "{"r" * (MAX_ID + 1)}"}}',
    "a version before the first": '{"type": "shutdown_request", "requestId": "r", "version": 0}',
    "texts that are no list": '{"type": "task_completed", "requestId": "r", "result": {"artifacts": {"a": "b"}}}',
    "a rule of an empty place": '{"type": "team_permission_update", "rules": {"allowedTools": ["Bash()"]}}',
    "a rule that is too long": (
        f'{{"type": "team_permission_update", "rules": {{"allowedTools": ["{"B" * (message_text.MAX_RULE + 1)}"]}}}}'
    ),
    "an id with a blank": '{"type": "shutdown_request", "requestId": "a b"}',
    "an id with a line break": '{"type": "shutdown_request", "requestId": "a\\nb"}',
    "a later version": '{"type": "shutdown_request", "requestId": "r", "version": 2}',
    "approved in words": '{"type": "permission_response", "requestId": "r", "approved": "yes"}',
    "approved and an error": '{"type": "permission_response", "requestId": "r", "approved": true, "subtype": "error"}',
    "two ids": '{"type": "shutdown_request", "requestId": "r", "request_id": "s"}',
    "no decision": '{"type": "permission_response", "requestId": "r"}',
    "a time-out that approves": (
        '{"type": "permission_response", "requestId": "r", "approved": true, "cause": "timeout"}'
    ),
    "input that is no object": '{"type": "permission_request", "requestId": "r", "tool": {"name": "B"}, "input": 1}',
    "an empty plan": '{"type": "plan_approval_request", "requestId": "r"}',
    "a rule for everything": '{"type": "team_permission_update", "rules": {"allowedTools": ["*"]}}',
    "no rule": '{"type": "team_permission_update", "rules": {"allowedTools": ["Bash(rm"]}}',
    "a rule of an unknown shape": (
        '{"type": "team_permission_update", "toolName": "Bash",'
        ' "permissionUpdate": {"behavior": "allow", "rules": [{"any": "json"}]}}'
    ),
    "a behaviour nobody knows": (
        '{"type": "team_permission_update", "permissionUpdate": {"behavior": "ask", "rules": ["Bash"]}}'
    ),
    "an update that is no object": '{"type": "team_permission_update", "permissionUpdate": "allow"}',
    "an update without rules": '{"type": "team_permission_update", "permissionUpdate": {"behavior": "allow"}}',
    "an update of no rules": (
        '{"type": "team_permission_update", "permissionUpdate": {"behavior": "deny", "rules": []}}'
    ),
    "a shutdown's end in words": '{"type": "shutdown_response", "requestId": "r", "approved": "yes"}',
    "texts that are none": '{"type": "task_completed", "requestId": "r", "result": {"artifacts": [1]}}',
    "suggestions that are no list": (
        '{"type": "permission_request", "requestId": "r", "toolName": "B", "permissionSuggestions": {"a": 1}}'
    ),
    "a phase nobody knows": '{"type": "task_progress", "requestId": "r", "phase": "dreaming"}',
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_is_not_of_the_union_is_a_value_that_says_why(text: str) -> None:
    """Kept whole, with a reason; never an exception."""
    found = message_text.parse(text)
    assert isinstance(found, Unknown)
    assert found.reason
    assert found.raw == text


def test_the_longest_id_and_the_longest_rule_are_taken() -> None:
    """One character more makes the message none of the union."""
    asked = m.ShutdownRequest(request_id="r" * MAX_ID)
    assert message_text.parse(message_text.written(asked)) == asked
    assert message_text.check_rule("B" * message_text.MAX_RULE)


def test_who_names_a_host_asks_for_the_network() -> None:
    """A request without a host says nothing of the kind."""
    for more, capability in (
        ({"host": "a.example"}, "network"),
        ({"hostPattern": {"host": "a.b"}}, "network"),
        ({}, ""),
    ):
        found = message_text.parse(json.dumps({"type": "sandbox_permission_request", "requestId": "r", **more}))
        assert isinstance(found, m.SandboxRequest)
        assert found.capability == capability


def test_an_empty_text_in_one_place_leaves_the_other_place_its_say() -> None:
    """An empty tool's name beside a full one is none; a time that no clock shows is left out."""
    said = '{"type":"permission_request","requestId":"r","toolName":"","tool":{"name":"B"},"createdAt":%d}'
    for at, told in ((1 << 45, None), ((1 << 45) - 1, (1 << 45) - 1)):
        found = message_text.parse(said % at)
        assert isinstance(found, m.PermissionRequest)
        assert (found.tool, found.timestamp) == ("B", told)


@pytest.mark.parametrize("mode", ["bypassPermissions", "bypass_permissions", "dontAsk", "auto", "yolo", "", 0, None])
@pytest.mark.parametrize(
    "shape",
    [
        {"type": "mode_set_request", "mode": ...},
        {"type": "mode_set_request", "mode": "plan", "policy": {"permissionMode": ...}},
        {"type": "plan_approval_response", "requestId": "r", "approved": True, "permissionMode": ...},
        {"type": "permission_response", "requestId": "r", "approved": True, "mode": ...},
        {
            "type": "permission_response",
            "requestId": "r",
            "subtype": "success",
            "response": {"permissionUpdates": [{"type": "setMode", "mode": ..., "destination": "session"}]},
        },
    ],
    ids=["mode", "policy", "plan", "permission", "update"],
)
def test_no_message_sets_a_mode_that_bypasses_permissions(shape: dict[str, Any], mode: Any) -> None:
    """However it is spelt, and wherever in the message: it is none of the union, or says no mode at all."""
    filled = json.loads(json.dumps(shape, default=lambda _: mode))
    found = message_text.parse(json.dumps(filled))
    if mode is None and not isinstance(found, Unknown):
        assert getattr(found, "mode", "") in ("", "plan")
    else:
        assert isinstance(found, Unknown)


def test_of_two_modes_the_narrower_counts() -> None:
    """A message that says two things is taken at the one that permits less."""
    found = message_text.parse(
        '{"type": "mode_set_request", "mode": "acceptEdits", "policy": {"permissionMode": "plan"}}'
    )
    assert isinstance(found, m.ModeSet)
    assert found.mode == "plan"


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_any_text_in_a_control_envelope_is_read_without_a_failure(text: str) -> None:
    """Whatever is in an envelope, a value comes out."""
    assert isinstance(message_text.parse(text), m.Payload | Unknown)


@given(st.sampled_from(VERBATIM), st.data())
def test_no_change_of_a_sample_breaks_the_reader(text: str, data: st.DataObject) -> None:
    """Any value in it may be replaced by any other."""
    obj = json.loads(text)
    key = data.draw(st.sampled_from(sorted(obj)))
    obj[key] = data.draw(PLAIN)
    found = message_text.parse(json.dumps(obj))
    assert isinstance(found, m.Payload | Unknown)
    if isinstance(found, m.Payload):
        assert message_text.parse(message_text.written(found)) == found


@pytest.mark.parametrize("first", MODES)
@pytest.mark.parametrize("second", MODES)
def test_of_two_modes_in_a_message_the_narrower_counts(first: str, second: str) -> None:
    """It does not matter in which place each is said."""
    said = json.loads(CATALOG["mode_set_request"]) | {"mode": first, "policy": {"permissionMode": second}}
    payload = message_text.parse(json.dumps(said))
    narrower = ("locked-down", "plan", "safe", "default", "acceptEdits")
    assert payload.mode == next(mode for mode in narrower if mode in (first, second))
