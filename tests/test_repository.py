"""The files that a contributor expects beside the sources: they run what README says, and name no address of others."""

from __future__ import annotations

import re
from typing import Any

import yaml

from .helpers import ROOT
from .shell_blocks import blocks

FILES = (
    ".github/workflows/ci.yml",
    ".github/ISSUE_TEMPLATE/bug.yml",
    ".github/ISSUE_TEMPLATE/config.yml",
    ".pre-commit-config.yaml",
    ".editorconfig",
    "SECURITY.md",
)


def load(name: str) -> Any:
    """The content of a YAML file."""
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_no_file_names_an_address_of_others() -> None:
    """They hold no URL and no mail address."""
    for name in FILES:
        found = re.findall(r"https?://\S+|[\w.]+@[\w-]+\.\w+", (ROOT / name).read_text(encoding="utf-8"))
        assert found == [], name


def test_the_workflow_runs_what_readme_says_on_each_system_and_python() -> None:
    """README's install lines and the demo, then what CI runs, with and without the programs that some tests need."""
    jobs = load(".github/workflows/ci.yml")["jobs"]
    pythons, systems = ["3.11", "3.12", "3.13", "3.14"], ["ubuntu-latest", "macos-latest"]
    for job in jobs.values():
        assert (job["strategy"]["matrix"]["os"], job["strategy"]["matrix"]["python"]) == (systems, pythons)
    said = {name: "\n".join(step.get("run", "") for step in job["steps"]) for name, job in jobs.items()}
    shell = next(iter(blocks(ROOT / "README.md")))
    commands = [line.partition("#")[0].strip() for line in (*shell.installs, *shell.text.splitlines())]
    assert commands == ["pipx install '.[console]'", "cd ~/project", "agent-mailbox setup"]
    assert all(
        words in said["readme"] for words in ("pipx install '.[console]'", "agent-mailbox setup --yes", "scripts/demo")
    )
    assert jobs["suite"]["strategy"]["matrix"]["programs"] == ["with", "without"]
    assert ".ci/run" in said["suite"]


def test_a_bug_report_asks_for_the_doctor_s_answer() -> None:
    """The form wants ``doctor --json``, and leads elsewhere with what must stay private."""
    form = load(".github/ISSUE_TEMPLATE/bug.yml")["body"]
    wanted = [part for part in form if part.get("id") == "doctor"]
    assert "agent-mailbox doctor --json" in wanted[0]["attributes"]["label"]
    assert wanted[0]["validations"] == {"required": True}
    assert "SECURITY.md" in form[0]["attributes"]["value"]
    assert "docs/trust.md#the-threat-model" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_commit_hooks_are_the_suite_s_own_tools() -> None:
    """Each hook runs from .venv or scripts/, and downloads nothing."""
    (repository,) = load(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["language"] == "system", hook
        assert hook["entry"].startswith((".venv/bin/python -m ", "scripts/")), hook
