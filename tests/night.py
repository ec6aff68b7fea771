"""Tests that take too long for every push: ``scripts/night suite`` runs them."""

from __future__ import annotations

import os

import pytest

NIGHT = bool(os.environ.get("AGENT_MAILBOX_NIGHT"))
nightly = pytest.mark.skipif(not NIGHT, reason="takes long: scripts/night suite")
