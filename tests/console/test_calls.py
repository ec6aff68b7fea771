"""A call as the person reviews it: the change as a diff, all of the input, nothing that looks like something else."""

from __future__ import annotations

from typing import Any

import pytest

from agent_mailbox.console import calls, cards


def shown(tool: str, given: dict[str, Any]) -> list[tuple[str, str]]:
    """The parts by their labels; a diff's lines carry their signs."""
    return [(part.label, "".join(run.text for run in part.runs)) for part in calls.parts_of_call(tool, given)]


def test_an_edit_is_a_diff_and_its_other_fields_stand_beside_it() -> None:
    """Line by line; what stays is there, too."""
    given = {"file_path": "/a.py", "old_string": "one\ntwo\nthree", "new_string": "one\n2\nthree", "replace_all": True}
    assert shown("Edit", given) == [
        ("file_path", "/a.py"),
        ("replace_all", "true"),
        ("change", "  one\n- two\n+ 2\n  three\n"),
    ]


def test_each_edit_of_several_is_a_diff_and_a_new_file_is_all_new() -> None:
    """Each edit of several is shown as a diff with its other fields. A new file is shown as all new."""
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "", "replace_all": True}]
    assert shown("MultiEdit", {"file_path": "/a", "edits": edits})[1:] == [
        ("edit 1 of 2: change", "- a\n+ b\n"),
        ("edit 2 of 2: replace_all", "true"),
        ("edit 2 of 2: change", "- c\n+ \n"),
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
    for odd in (questions, [{**questions[0], "options": ["Red"]}], ["x"], [], {}, None):
        assert [label for label, _ in shown("AskUserQuestion", {"questions": odd})] == ["questions"]
        assert cards.describe_call("AskUserQuestion", {"questions": odd}).text.startswith("asks ")


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
