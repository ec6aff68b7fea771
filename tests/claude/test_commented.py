"""Settings with comments: what nobody changed keeps every byte, and what is taken out leaves no trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.clients.install import commented
from tests.helpers import each

if TYPE_CHECKING:
    from tests.helpers import Program

TEXT = """// mine
{
  /* "hooks": {} */
  "theme": "a // no comment",  // dark
  "hooks": {
    // theirs
    "AfterTool": [ /* one */ {"hooks": [{"type": "command", "command": "echo '/* hi */'"}]} ]
  },
  "general": {"enableAutoUpdate": false} // last
}
"""


COMMENTS = ("// mine", '/* "hooks": {} */', "// dark", "// theirs", "/* one */", "// last", "/* hi */", "// a")


def parsed(text: str) -> Any:
    """The settings in a text with comments."""
    return json.loads(commented.blanked(text))


@each("text", (TEXT, "{} // a", "{ /* a */ }", TEXT.replace("\n", "\r\n")))
def test_install_and_uninstall_keep_every_byte_of_settings_with_comments(program: Program, text: str) -> None:
    """Gemini CLI takes comments. Installed, each of them is there. Uninstalled, the file is what it was. If the person
    added a line meanwhile, that is there, too."""
    project = program.scratch / "project"
    path = project / ".gemini/settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    for added in ("", "// added\n"):
        path.write_bytes(text.encode())
        assert program.call("install", "gemini", "--project", project, "--json").json["changed"]
        installed = path.read_bytes().decode()
        assert [word for word in COMMENTS if (word in text) != (word in installed)] == []
        assert parsed(installed)["hooks"].keys() >= {"BeforeAgent", "AfterTool", "BeforeTool"}
        assert program.call("install", "gemini", "--project", project, "--json").json["changed"] == []
        path.write_bytes((installed + added).encode())
        assert program.call("uninstall", "gemini", "--project", project).rc == 0
        assert path.read_bytes().decode() == text + added


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TABLE = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


@each("text", ("// mine", "// mine\n", "/* mine\r\n */\r\n// too\r\n", "\ufeff// mine\n\n"))
def test_a_file_of_comments_alone_keeps_them(program: Program, text: str) -> None:
    """It has no settings yet. Ours stand behind the comments, and a later edit takes none of them away."""
    settings = program.cwd / ".gemini/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_bytes(text.encode())
    assert program.call("install", "gemini").rc == 0
    installed = settings.read_bytes()
    assert installed.startswith(text.rstrip().encode())
    assert parsed(installed.decode("utf-8-sig"))["hooks"]
    settings.write_bytes(installed + b"// more\n")
    assert program.call("uninstall", "gemini").rc == 0
    left = settings.read_bytes()
    assert left.startswith(text.rstrip().encode())
    assert parsed(left.decode("utf-8-sig")) == {}


@given(TABLE, TABLE, st.sampled_from([None, 2]))
def test_an_edited_text_has_the_new_settings(old: dict[str, Any], new: dict[str, Any], indent: int | None) -> None:
    """Whatever changes, the text holds the new settings, and the comments of what stays."""
    text = "// a\n" + json.dumps(old, indent=indent, ensure_ascii=False) + "\n/* b */"
    made = commented.edited(text, old, new)
    assert parsed(made) == new
    assert made.startswith("// a\n")
    assert made.endswith("/* b */")
