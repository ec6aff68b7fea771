"""``scripts/package``: build, look inside, install as people do, run the demo with each."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from . import archives, installs
from .steps import summary, told

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> int:
    """Run all steps; return 1 if one failed. Without the archives nothing else is tried."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        built = scratch / "dist"
        endings = [told("build sdist and wheel", partial(archives.build, built))]
        if endings == ["done"]:
            steps = [
                ("check the metadata", partial(archives.check_metadata, built)),
                ("check the wheel's contents", partial(archives.check_wheel, built)),
                ("check the sdist, and the wheel it builds", partial(archives.check_sdist, built)),
                (
                    "install, and remove, as the pages say",
                    partial(_with, installs.as_the_pages_say, built, scratch / "own"),
                ),
                (
                    "say that another project is there",
                    partial(_with, installs.beside_a_stranger, built, scratch / "two"),
                ),
                *((f"install by {way}, and run the demo", partial(_try, built, scratch, way)) for way in installs.WAYS),
            ]
            with ThreadPoolExecutor(2) as pool:
                endings += pool.map(lambda step: told(*step), steps)
    print(summary(endings))
    return int("failed" in endings)


def _with(step: Callable[[Path, Path], None], built: Path, place: Path) -> None:
    step(archives.wheel(built), place)


def _try(built: Path, scratch: Path, way: str) -> None:
    wheel = archives.wheel(built)
    installs.works(wheel, installs.WAYS[way](wheel, scratch / way.replace(" ", "-")))


if __name__ == "__main__":
    sys.exit(main())
