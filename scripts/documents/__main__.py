"""``scripts/docs``: write the generated pages, or check them; build the site."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import pages, site


def main() -> int:
    """Run what was asked for; exit 1 where a page is stale or the site has a fault."""
    parser = argparse.ArgumentParser(prog="scripts/docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a generated page is stale; write none")
    parser.add_argument(
        "--build",
        metavar="DIR",
        type=Path,
        nargs="?",
        const=pages.ROOT / "build/site",
        help="build the site (into build/site)",
    )
    given = parser.parse_args()
    if given.check:
        stale = pages.stale()
        for name in stale:
            print(f"error: docs/{name} is stale\nhint: run scripts/docs and commit it", file=sys.stderr)
        if stale:
            return 1
    else:
        pages.write()
    return 0 if given.build is None else site.build(given.build)


if __name__ == "__main__":
    sys.exit(main())
