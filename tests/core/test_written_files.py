"""The files that a command names as written."""

from __future__ import annotations

import pytest

from agent_mailbox.permissions.written_files import MOST, files_written


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("echo x > a.py", "a.py"),
        ("echo x >> 'a b.py' 2>/dev/null", "a b.py"),
        ("cat <<END > notes.md\n> no.md\nEND", "notes.md"),
        ("make 2>&1 | tee -a log.txt other.txt", "log.txt|other.txt"),
        ("sed -i 's/x/y/' a.py b.py", "a.py|b.py"),
        ("sed -i.bak -e 's/x/y/' a.py", "a.py"),
        ("sed -n 1,5p a.py", ""),
        ("perl -pi -e 's/x/y/' a.py", "a.py"),
        ("mv a.py src/b.py", "a.py|src/b.py|src/b.py/a.py"),
        ("cp -r one two dir", "dir|dir/one|dir/two"),
        ("cp -t dir one", "dir|dir/one"),
        ("rm -f a.py -- -b.py", "a.py|-b.py"),
        ("dd if=x of=a.img bs=1", "a.img"),
        ("cd src && touch a.py", "src/a.py"),
        ("cd /x; truncate -s0 a.py", "/x/a.py"),
        ("sudo -n env A=1 tee a.py", "a.py"),
        ("bash -c 'cd src; echo x > a.py'", "src/a.py"),
        ("git checkout -- a.py && git commit -m 'x > y'", "a.py"),
        ("if true; then echo > a.py; fi; $(rm b.py)", "a.py|b.py"),
        ("echo x > $OUT; rm *.py; cd $D; echo > a.py", ""),
        ("grep -n 'a > b' a.py; python3 -m pytest", ""),
        ("echo 'unclosed > a.py", ""),
    ],
)  # fmt: skip
def test_the_files_that_a_command_writes_are_found(text: str, paths: str) -> None:
    """The files that a command writes are found by its redirections and known programs, relative to where it runs."""
    assert files_written(text, "/w") == [
        path if path.startswith("/") else f"/w/{path}" for path in filter(None, paths.split("|"))
    ]


def test_a_long_text_costs_little() -> None:
    """A number of files is enough, however deep and long the text is."""
    assert len(files_written("; ".join(f"rm f{n}" for n in range(5000)), "/w")) == MOST
    assert files_written("bash -c 'bash -c \"bash -c x\"'" * 20, "/w") == []
