"""How ``scripts/docs`` builds the site: every page is Markdown that a plain Git host shows as well.

The source directory is the checkout, so README.md is the home page and its links are checked as all others are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SECTIONS = {
    "Install": ("installing", "clients", "claude-code"),
    "First team": ("concepts", "coordination", "teams"),
    "Approve from your phone": ("console",),
    "Many repositories": ("repositories",),
    "Many machines": ("engine", "swarm"),
    "When something is wrong": ("operations", "trust", "owasp", "status"),
    "Remove": ("removing",),
    "Reference": ("commands", "configuration", "file-format"),
    "Internals": (
        *("internals/life-of-a-message", "internals/hot-path", "internals/threat-model", "internals/claude-code"),
        *("internals/clients", "internals/console", "internals/shared-mailbox", "internals/gateway"),
        *("internals/client-observations", "internals/clients-newest", "internals/team-files", "internals/swarm-wire"),
        *(
            "internals/reliability",
            "internals/benchmarks",
            "internals/quiet",
            "internals/night",
            "internals/simulation",
        ),
    ),
}
"""The pages of docs/, as the navigation lists them."""
TOP = {"Project": ("CONTRIBUTING", "SECURITY", "CHANGELOG")}

project = html_title = "agent-mailbox"
copyright = "agent-mailbox authors"
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/**.md"]
exclude_patterns = [".*", "agent_mailbox", "tests", "scripts"]
extensions = ["myst_parser"]
myst_heading_anchors = 4
nitpicky = True
smartquotes = False  # what is quoted may be typed

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_use_index = False


def navigation() -> str:
    """Return the navigation as MyST writes it: a hidden list for each section."""
    listed = {title: [f"docs/{page}" for page in pages] for title, pages in SECTIONS.items()} | TOP
    blocks = (f":caption: {title}\n:hidden:\n\n" + "\n".join(pages) for title, pages in listed.items())
    home = ":hidden:\n\nHome <self>"
    return "".join(f"\n\n```{{toctree}}\n{block}\n```\n" for block in (home, *blocks))


def add_navigation(_: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation to the home page, where a Git host would show it as code."""
    if page == root_doc:
        source[0] += navigation()


def setup(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.connect("source-read", add_navigation)
