"""The two scripts of a checkout that is not installed, by a Python that lacks what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.helpers import ROOT, refused

if TYPE_CHECKING:
    from tests.helpers import Post


def test_a_python_without_click_is_told_what_to_install(post: Post) -> None:
    """The plain form goes without; any other says which package is missing, and how to have it."""
    script = str(ROOT / "scripts/agent_mailbox.py")
    code = f"import runpy, sys; sys.modules['click'] = None; runpy.run_path({script!r}, run_name='__main__')"
    words = ("--from", "ann", "--to", "bob", "--body", "hi")
    assert post.python(code, "send", *words).rc == 0
    found = post.python(code, "--dir", post.box, "send", *words)
    refused(found, 5, "click", "-m pip install click orjson portalocker")
