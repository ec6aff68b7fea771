"""Several requests decided at once, each as it would be alone; and the page of what was decided."""

from __future__ import annotations

import html
import json
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.console import calls, cards
from agent_mailbox.control import past_requests
from agent_mailbox.control.past_requests import past_page
from agent_mailbox.core.control.control_requests import ControlRequest
from agent_mailbox.core.control.messages import PermissionRequest
from agent_mailbox.mailbox.mail_pages import MailPages
from agent_mailbox.mailbox.mailbox import Mailbox
from tests.helpers import MESSAGES, record, stamp

if TYPE_CHECKING:
    import pytest

    from tests.console.conftest import Running
    from tests.helpers import Post


def asked(running: Running, tool: str) -> str:
    """A request of ada's; its id."""
    words = ("control", "request", "permission", "--tool", tool, "--input", '{"a": 1}', "--session", "ada")
    return str(running.post.ok(*words)["request"]["id"])


def test_the_chosen_are_decided_and_each_is_told(running: Running) -> None:
    """One decision covers all chosen requests and tells each result. A request that cannot be decided does not stop the
    others."""
    running.post.register("ada")
    ids = [asked(running, f"Tool{n}") for n in range(4)]
    page = running.ask("/").text
    assert all(f'name="chosen:{one}" value="1" form="together"' in page for one in ids)
    assert page.count('action="/decide-chosen"') == 1
    running.does("/decide", request=ids[0], decision="deny")
    chosen = {f"chosen:{one}": "1" for one in (*ids[:3], "perm-none")}
    told = running.does("/decide-chosen", decision="approve", reason="go on", **chosen)
    assert told["kind"] == "done"
    assert told["said"].startswith("2 approved: ada uses Tool1; ada uses Tool2. ada uses Tool0: denied by you, ")
    again = running.does("/decide", request=ids[0], decision="approve")["said"]
    assert re.match(r"ada uses Tool0: denied by you, \d\d:\d\d\. the first decision counts", again), again
    assert "perm-none is not decided" in told["said"]
    page = running.ask("/decided").text
    assert [page.count(f"<code>{one}</code>") for one in ids] == [1, 1, 1, 0]
    assert (page.count("<strong>approved</strong>"), page.count("“go on”")) == (2, 2)
    for fields, said in (
        ({"decision": "approve"}, "0 requests are chosen"),
        ({"decision": "perhaps", f"chosen:{ids[3]}": "1"}, "unknown decision"),
        ({"decision": "approve", "chosen:perm-none": "1"}, "perm-none is not decided"),
        ({"decision": "deny", **{f"chosen:{n}": "1" for n in range(201)}}, "201 requests are chosen"),
    ):
        answer = running.does("/decide-chosen", **fields)
        assert (answer["kind"], said in answer["said"]) == ("problem", True)
    assert f'id="r-{ids[3]}"' in running.ask("/").text


def test_an_inbox_of_unproven_requests_says_that_nothing_proven_waits(running: Running) -> None:
    """Their group is beside that sentence. A status counts none of them either."""
    running.post.register("ada")
    text = '{"type":"permission_request","requestId":"perm-x","tool":{"name":"Bash","input":{"command":"ls"}}}'
    running.post.append(MESSAGES, record("ada", "user", text, type="control"))
    assert "Nothing that is proven waits for you." in running.ask("/").text
    assert running.post.ok("status", "--session", "user")["to_decide"] == 0
    assert running.post.ok("statusline", "--session", "ada")["waiting"] == 0
    running.post.ok("deny", "perm-x", "--reason", "no", "--session", "user")
    assert "Nothing waits for you." in running.ask("/").text


def test_a_request_that_nothing_proves_has_no_button_that_approves_it(running: Running) -> None:
    """The other one has; the denial is there, and counts. Four hundred of them are folded apart, call nobody, and show
    their number."""
    running.post.register("ada")
    asked(running, "Read")
    text = '{"type":"permission_request","requestId":"perm-x","tool":{"name":"Bash","input":{"command":"ls"}}}'
    running.post.append(MESSAGES, record("ada", "user", text, type="control"))
    page = running.ask("/").text
    opened = [running.ask(f"/?open={one}").text for one in re.findall(r'id="r-[^"]*"[^>]*data-message="([^"]*)"', page)]
    buttons = [[one.count(f'name="decision" value="{word}" class="{word}"') for word in ("approve", "deny")]
               for one in opened]  # fmt: skip
    assert buttons == [[2, 2], [1, 2]]  # with those of several chosen
    assert "Nothing proves who asks, so it can only be denied." in opened[1]
    for n in range(399):
        running.post.append(MESSAGES, record("ada", "user", text.replace("perm-x", f"forged-{n}"), type="control"))
    page = running.ask("/").text
    assert 'Stops an agent <span class="count">1<' in page
    assert 'Unverified <span class="count">400<' in page
    assert page.count("data-decides") == 21
    assert page.count('form="together"') == 1
    assert 'data-decisions="1"' in page
    many = {f"chosen:forged-{n}": "1" for n in range(399)}
    assert "399 requests are chosen" in running.does("/decide-chosen", decision="deny", **many)["said"]
    assert running.does("/decide", request="perm-x", decision="deny")["kind"] == "done"


def test_what_was_decided_stays_to_be_seen(running: Running) -> None:
    """Newest first, with who decided, why, and the rules that were added; what waits is not among it."""
    running.post.register("ada")
    first, second, third = (asked(running, f"Tool{n}") for n in range(3))
    assert "Nothing was decided yet." in running.ask("/decided").text
    running.does("/decide", request=first, decision="deny", reason="not on <main>")
    running.does("/decide", request=second, decision="approve")
    page = running.ask("/decided").text.partition("<main")[2]
    assert -1 < page.index(second) < page.index(first)
    assert third not in page
    for said in ("<strong>denied</strong>", "“not on &lt;main&gt;”", "uses Tool0", "by you"):
        assert said in page


def test_a_number_that_became_a_word_of_json_is_a_change(running: Running) -> None:
    """One and true are equal for Python, and not for the tool: it ran with what the person wrote."""
    running.post.register("ada")
    given = {"request": asked(running, "T"), "decision": "approve"}
    assert "changed" in running.does("/decide", **given, input='{"a": true}')["said"]
    assert "approved with changes" in running.ask("/decided").text


def test_what_ran_is_told_beside_what_was_asked_and_outlives_the_archive(running: Running) -> None:
    """The page tells both calls, who decided, why and how long it waited; the same of what the steward archived. Its
    filters leave the others out, and a page further is the rest."""
    post = running.post
    for name in ("ada", "bo"):
        post.register(name, "--name", name.title())
    words = ("control", "request", "permission", "--tool", "Bash", "--input")
    push = {"command": "git push origin main --force-with-lease"}
    first = post.ok(*words, json.dumps(push), "--session", "ada")["request"]["id"]
    written = {"input": '{"command": "git push --dry-run"}', "reason": "first look"}
    told = running.submit("/", "/decide", {"request": first}, "approve", **written)
    assert "with your changed input" in told["said"]
    second = post.ok(*words, '{"command": "make"}', "--session", "bo")["request"]["id"]
    third = asked(running, "Read")
    running.does("/decide-chosen", decision="deny", reason="no", **{f"chosen:{one}": "1" for one in (second, third)})

    def shown(query: str = "") -> list[str]:
        return re.findall(r'<li data-key="([^"]+)">', running.ask(f"/decided?{query}").text)

    for _ in ("live", "archived"):
        page = html.unescape(running.ask("/decided").text)
        newest = shown()  # two were decided together: perhaps in one millisecond
        assert ({*newest[:2]}, newest[2:]) == ({second, third}, [first])
        for said in ("asked: Bash", "--force-with-lease", "ran: Bash", "git push --dry-run", "approved with changes",
                     "by you", "“first look”", "it waited"):  # fmt: skip
            assert said in page, said
        assert "(unverified)" not in page
        assert shown("agent=Ada") == [third, first]
        assert shown("tool=bash&decision=denied") == [second]
        assert shown("decision=changed") == [first]
        assert shown("decision=timed_out") == []
        assert "no agent" in running.ask("/decided?agent=nobody").text
        for name in ("ada", "bo"):
            post.check(name)
        post.ok("steward", "run", "--max-live", "0")
    live = [m["content"] for m in post.objects(MESSAGES)]
    assert not [content for content in live if first in content]


def test_old_decisions_are_a_page_further() -> None:
    """Each decided request is on one page, those of one instant on the same one."""
    payload = PermissionRequest(request_id="r", tool="T")
    at = [10, 20, 30, 30, 50, 60, 70]
    requests = {
        f"r{n}": ControlRequest(f"r{n}", "permission", "ada", "", payload, f"m{n}", n, n, "denied", decided=at[n - 1])
        for n in range(1, 8)
    }
    fold = SimpleNamespace(requests=requests)
    box: Any = SimpleNamespace(part=lambda _: SimpleNamespace(plane=lambda: fold), logs=None)
    library: Any = SimpleNamespace(newest_alone=True)
    seen, before = [], None
    while True:
        page = past_page(box, library, before, 3, lambda _: True)
        seen.append([one.id for one in page.shown])
        if not page.older:
            break
        before = page.older
    assert seen == [["r7", "r6", "r5"], ["r4", "r3", "r2"], ["r1"]]


def test_no_old_answer_is_lost_between_two_looks(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that ends among the answers of one instant leaves them to the next one."""
    denied = '{"type":"permission_response","requestId":"r","approved":false}'
    ids = [f"answer-{n}" for n in range(6)]
    lines = [
        record("user", "ada", denied, type="control", id=one, timestamp=stamp(n // 2)) for n, one in enumerate(ids, 1)
    ]
    post.append(MESSAGES, *lines)
    monkeypatch.setattr(past_requests, "STEP", 2)
    queries = MailPages(Mailbox(str(post.box)))
    seen: list[str] = []
    before = None
    while before != 0:
        answers, before = past_requests._answers_before(queries, before)
        seen += [one.id for one in answers]
    assert sorted(seen) == ids


def test_no_agent_s_request_comes_after_another_s_many(running: Running) -> None:
    """The inbox shows requests by their deadlines; what one agent asks beyond eight comes after all others'."""
    for name in ("ada", "bo"):
        running.post.register(name)
    text = '{"type":"permission_request","requestId":"perm-x","tool":{"name":"Bash","input":{"command":"ls"}}}'
    running.post.append(MESSAGES, record("bo", "user", text, type="control"))
    many = [asked(running, f"Tool{n}") for n in range(10)]
    words = ("--tool", "Bash", "--input", "{}", "--session", "bo")
    late, soon = (
        str(running.post.ok("control", "request", "permission", *words, *more)["request"]["id"])
        for more in ((), ("--timeout", "600"))
    )
    page = running.ask("/").text
    shown = re.findall(r'<li class="item [^>]* id="r-([^"]*)"', page)
    assert shown == [soon, *many[:8], late, *many[8:], "perm-x"]


def test_an_approval_that_opens_nothing_says_so(running: Running) -> None:
    """The sandbox opens hosts alone. A request for something else tells that its approval is a word, and has no choice
    for how long. One for hosts tells which choice makes a rule."""
    running.post.register("ada")
    for words, said in ((("--capability", "gpu"), (1, 0)), (("--host", "a.example"), (1, 1))):
        running.post.ok("control", "request", "sandbox", *words, "--session", "ada")
        page = running.ask("/agent?id=ada").text
        assert (page.count("the sandbox stays as it is"), page.count('name="scope"')) == said
    assert page.count("it is told, no rule") == page.count("the session: a rule") == 1


def shown(tool: str, given: dict[str, Any]) -> list[tuple[str, str]]:
    """The parts by their labels; a diff's lines carry their signs."""
    return [(part.label, "".join(run.text for run in part.runs)) for part in calls.parts_of_call(tool, given)]


def test_an_edit_is_a_diff_and_its_other_fields_stand_beside_it() -> None:
    """Line by line; what stays is there, too."""
    given = {"file_path": "/a.py", "old_string": "one\ntwo\nthree", "new_string": "one\n2\nthree", "replace_all": True}
    assert shown("Edit", given) == [
        ("file_path", "/a.py"),
        ("replace_all", "true"),
        ("the change", "  one\n- two\n+ 2\n  three\n"),
    ]


def test_each_edit_of_several_is_a_diff_and_a_new_file_is_all_new() -> None:
    """Each edit of several is shown as a diff with its other fields. A new file is shown as all new."""
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "", "replace_all": True}]
    assert shown("MultiEdit", {"file_path": "/a", "edits": edits})[1:] == [
        ("edit 1 of 2: the change", "- a\n+ b\n"),
        ("edit 2 of 2: replace_all", "true"),
        ("edit 2 of 2: the change", "- c\n+ \n"),
    ]
    assert shown("Write", {"file_path": "/a", "content": "x\ny\n"})[1] == ("content", "+ x\n+ y\n+ \n")


def test_a_question_of_the_model_s_is_text_with_its_choices() -> None:
    """Each question has its own words and choices. One of another shape is shown as it is."""
    choices = [
        {"label": "Red", "description": "warm\n<b>"},
        {"label": "Blue", "preview": {"x": 1}},
    ]  # the second has no description
    questions = [{"question": "Which colour?", "multiSelect": False, "options": choices}, {"question": "Why?\u202e"}]
    assert shown("AskUserQuestion", {"questions": questions[:1], "answers": {}}) == [
        ("answers", "{}"),
        ("question 1 of 1: question", "Which colour?"),
        ("question 1 of 1: multiSelect", "false"),
        ("question 1 of 1: choice 1", "Red\nwarm\n<b>"),
        ("question 1 of 1: choice 2: label", "Blue"),
        ("question 1 of 1: choice 2: preview", '{\n  "x": 1\n}'),
    ]
    assert cards.describe_call("AskUserQuestion", {"questions": questions}).text == "asks Which colour? ↵ Why?\\u202e"
    unlike = [[{**questions[0], "options": options}] for options in (["Red"], [{}], [*choices, {}], [])]
    for odd in (questions, *unlike, ["x"], [], {}, None):
        assert [label for label, _ in shown("AskUserQuestion", {"questions": odd})] == ["questions"]
        assert cards.describe_call("AskUserQuestion", {"questions": odd}).text.startswith("asks ")


def test_no_field_that_was_given_has_a_label_of_ours() -> None:
    """Ours are several words, and such a name is quoted."""
    fields = {"choice 1": "x", "change": "x", "the change": "x", "question 1 of 1: question": "x", "a\nb": "x"}
    question = {"question": "Why?", "options": [{"label": "Red", "description": "warm"}]}
    for tool, given in (
        ("AskUserQuestion", {"questions": [{**question, **fields}], **fields}),
        ("AskUserQuestion", {"questions": [{**question, "options": [fields]}]}),
        ("MultiEdit", {"edits": [{"old_string": "a", "new_string": "b", **fields}], **fields}),
        ("Edit", {"old_string": "a", "new_string": "b", **fields}),
        ("Write", {"content": "a", **fields}),
    ):
        labels = [label for label, _ in shown(tool, given)]
        assert len({*labels}) == len(labels), labels


def test_a_here_document_has_its_lines_and_no_field_is_left_out() -> None:
    """A here document is shown with its lines. No field of any tool's input is left out."""
    command = "cat > f <<'EOF'\nrm -rf \"$HOME\"\nEOF"
    given = {"command": command, "run_in_background": True, "odd": {"deep": ["x"]}}
    assert shown("Bash", given)[:2] == [("command", command), ("run_in_background", "true")]
    assert '"deep"' in shown("Bash", given)[2][1]
    for odd in ({"old_string": 1, "new_string": "x"}, {"edits": [{"old_string": "x"}]}, {"content": ["x"]}):
        for tool in ("Edit", "MultiEdit", "Write", "Other"):
            assert [label for label, _ in shown(tool, odd)] == list(odd)


def test_no_two_different_texts_look_the_same() -> None:
    """A carriage return ends no line, and what does not print is an escape."""
    unseen = ["a\u3164b", "a\u2800b", "a\u034fb", "a\ufe00b", "é\ufe00", "é"]  # Python says that these print
    texts = [
        *unseen,
        "a\nb",
        "a\rb",
        "a\x0bb",
        "a\u2028b",
        "a\u00a0b",
        "a b",
        "a\x1bb",
        "a\u202eb",
        "a\nb\n",
        "a\tb",
        "a    b",
    ]
    assert len({shown("Bash", {"command": text})[0][1] for text in texts}) == len(texts)
    assert all(run.isprintable() or run in "\n\t" for text in texts for run in shown("Bash", {"c": text})[0][1])
    assert shown("Bash", {"command": "ls\u3164-la"}) == [("command", "ls\\u3164-la")]
    assert shown("Other", {"deep": {"\u202ekey": "\u3164"}}) == [("deep", '{\n  "\\u202ekey": "\\u3164"\n}')]


def test_two_commands_are_no_one_command_in_a_title() -> None:
    """A title has a sign where a line ends; empty lines have none."""
    words = cards.describe_call("Bash", {"command": "make deploy\n\n  rm -rf /tmp/x\n"})
    assert words.text == "runs make deploy ↵ rm -rf /tmp/x"


@pytest.mark.parametrize("between", [" " * 5000, "\n" * 5000, "\t" * 5000 + ";"])
def test_no_space_hides_a_second_command_from_a_title(between: str) -> None:
    """However far it is behind the first, a reader sees it, or an ellipsis."""
    words = cards.describe_call("Bash", {"command": f"ls{between}rm -rf /tmp/x"})
    assert words.text.endswith("rm -rf /tmp/x")
    assert "rm" in cards.describe_call("Bash", {"command": f"{between}rm -rf /tmp/x"}).text


def test_a_hostile_change_costs_little_and_is_whole() -> None:
    """More lines than are compared: the old ones, then the new ones."""
    few = {"old_string": "\n".join(["x", "y"] * 150), "new_string": "\n".join(["y", "x", "z"] * 100)}
    assert [run.sign for part in calls.parts_of_call("Edit", few) for run in part.runs] == ["-", "+"]
    old, new = (["x", "y"] * 20_000, ["y", "x", "z"] * 15_000)
    text = shown("Edit", {"old_string": "\n".join(old), "new_string": "\n".join(new)})[0][1]
    assert [line[2:] for line in text.splitlines() if line[0] in " -"] == old
    assert [line[2:] for line in text.splitlines() if line[0] in " +"] == new
