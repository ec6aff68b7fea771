"""What ``scripts/package`` says of its steps, and looks for in the archives; CI runs it whole."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from scripts.packaging import archives, steps
from tests.helpers import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_no_step_passes_silently(capsys: pytest.CaptureFixture[str]) -> None:
    """A failure and a step that cannot be done offline are named, each with its reason, and counted."""

    def fails() -> None:
        raise steps.Failed("the wheel is empty")

    def is_offline() -> None:
        raise steps.Offline("no package index can be reached")

    endings = [steps.told(name, step) for name, step in (("a", lambda: None), ("b", fails), ("c", is_offline))]
    assert endings == ["done", "failed", "skipped"]
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("done    a (")
    assert second.startswith("FAILED  b (")
    assert second.endswith(": the wheel is empty")
    assert third.startswith("SKIPPED c (")
    assert third.endswith(": no package index can be reached")
    assert steps.summary(endings) == "scripts/package: 1 done, 1 skipped, 1 failed"


def test_a_command_that_fails_is_a_failure_that_shows_what_it_said() -> None:
    """A packaging command that fails is an error that shows its words, its code, and both its streams."""
    with pytest.raises(steps.Failed, match=r"(?s)sh -c .* ended with 3\nout\nerr"):
        steps.run("sh", "-c", "echo out; echo err >&2; exit 3")


def wheel(directory: Path, names: set[str]) -> None:
    """A wheel of these files of the package."""
    with zipfile.ZipFile(directory / "p-0-py3-none-any.whl", "w") as archive:
        for name in names:
            archive.write(ROOT / name, name)
        archive.write(ROOT / "LICENSE", "p-0.dist-info/licenses/LICENSE")
        archive.write(ROOT / "agent_mailbox/start/agent-mailbox", "p-0.data/scripts/agent-mailbox")
        archive.writestr(
            "p-0.dist-info/entry_points.txt", "[console_scripts]\nagent-mailbox-python = agent_mailbox.launch:start"
        )


def test_a_wheel_has_the_package_and_nothing_else(tmp_path: Path) -> None:
    """Whole it passes; without one of the console's pages, or with a test in it, it does not."""
    wheel(tmp_path, archives.expected())
    archives.check_wheel(tmp_path)
    for other in (
        archives.expected() - {"agent_mailbox/console/templates/base.html"},
        archives.expected() | {"tests/test_docs.py"},
    ):
        wheel(tmp_path, other)
        with pytest.raises(steps.Failed, match=r"base\.html|test_docs"):
            archives.check_wheel(tmp_path)


def test_the_command_says_that_another_project_of_its_name_is_there(tmp_path: Path) -> None:
    """Either may have overwritten the other's files, so it starts nothing; our own package's record is no other."""
    packages, command = tmp_path / "lib/python3.11/site-packages", tmp_path / "bin/agent-mailbox"
    python = tmp_path / "bin/python3.11"
    for file in (packages / "agent_mailbox/__main__.py", command, python):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((ROOT / "agent_mailbox/start/agent-mailbox").read_bytes() if file == command else b"")
    python.write_text("#!/bin/sh\necho started\n")
    python.chmod(0o755)
    (packages / "agent_mailbox_protocol-0.1.0.dist-info").mkdir()
    assert steps.run("sh", command, "check") == "started\n"
    (packages / "agent_mailbox-1.2.3.dist-info").mkdir()
    with pytest.raises(steps.Failed, match=r"(?s)ended with 5\nerror: .*another project of that name.*\nhint: .*pipx"):
        steps.run("sh", command, "check")


def test_ci_builds_docs_and_packages_and_ends_with_the_readme_s_tests() -> None:
    """CI runs its steps in this order. Three are beside the tests, which wait for their programs, and end it."""
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    found = [line.partition(" &")[0] for line in lines[-9:]]
    wanted = [
        "scripts/docs --check # makes the environment",
        "scripts/package",
        "scripts/docs --check --build",
        "scripts/bare",
        'wait "$programs"',
        "scripts/test",
        'wait "$packages"',
        'wait "$pages"',
        'wait "$bare"',
    ]
    assert found == wanted
