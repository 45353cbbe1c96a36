"""docs/reliability.md names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reliability.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)((?:::\w+)*)`")


def test_every_test_that_the_page_names_exists() -> None:
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 50
    missing = [f"{path}{names}" for path, names in named if not _exists(ROOT / path, names)]
    assert missing == []


def _exists(path: Path, names: str) -> bool:
    if not path.is_file():
        return False
    text = path.read_text(encoding="utf-8")
    return all(
        re.search(rf"^\s*(?:def|class) {name}\b", text, re.MULTILINE) for name in names.split("::")[1:]
    )
