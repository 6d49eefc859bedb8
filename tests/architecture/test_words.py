"""The repository speaks of the product, and of nothing that exists on one machine only."""

import re
from pathlib import Path

from tests.support.tree import ROOT, tracked_files

# Where somebody's checkout lies, or papers that do not come with it: a reader cannot follow these.
FOREIGN = re.compile(
    r"/work/|(?<![\w.-]/)(?<!\w)shared/|\bspec/\w+\.md|brief\.md|/home/\w+/|~/\.(?:cache|config)/(?!qmsup)"
)


def test_no_file_points_at_what_a_reader_does_not_have() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in tracked_files()
        if path != Path(__file__) and path.name != ".gitignore"
        for match in FOREIGN.finditer(path.read_text(errors="replace"))
    ]

    assert found == []
