"""All parts of the suite one after the other, and one line at the end: passed, failed, skipped and why, seconds.

python -m tests.tally -- PYTEST_ARGUMENTS [-- PYTEST_ARGUMENTS …]

Every part runs, also after one that failed. `tests/conftest.py` writes what each part came to into the file that the
variable REGARD_TALLY names.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

COUNTED = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")


def outcome(stats: dict[str, list[Any]]) -> dict[str, Any]:
    """What pytest's terminal reporter has counted, and the reasons for what it skipped."""
    counts = {name: len(stats.get(name, ())) for name in COUNTED}
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in stats.get("skipped", ()))
    return counts | {"reasons": dict(reasons)}


def line_of(parts: list[dict[str, Any]], seconds: float) -> str:
    """All parts in one line.

    >>> part = {"passed": 1200, "failed": 0, "error": 0, "skipped": 3, "reasons": {"needs a font": 2, "needs a GPU": 1}}
    >>> line_of([part, {"passed": 34, "failed": 1, "error": 0, "skipped": 1, "reasons": {"needs a GPU": 1}}], 61.4)
    '1234 passed, 1 failed, 4 skipped (2: needs a GPU; 2: needs a font) in 61 seconds'
    """
    total: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for part in parts:
        total.update({name: part.get(name, 0) for name in COUNTED})
        reasons.update(part["reasons"])
    failed = total["failed"] + total["error"]
    why = "; ".join(
        f"{count}: {reason}" for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item))
    )
    skipped = f", {total['skipped']} skipped ({why})" if total["skipped"] else ", 0 skipped"
    return f"{total['passed']} passed, {failed} failed{skipped} in {seconds:.0f} seconds"


def split(words: list[str]) -> list[list[str]]:
    """What stands between the dashes."""
    parts: list[list[str]] = []
    for word in words:
        if word == "--":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def main(words: list[str]) -> int:
    start, codes, parts = time.monotonic(), [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tally.json"
        for arguments in split(words):
            file.unlink(missing_ok=True)
            command = [sys.executable, "-m", "pytest", *arguments]
            codes.append(subprocess.call(command, env=os.environ | {"REGARD_TALLY": str(file)}))
            if file.exists():
                parts.append(json.loads(file.read_text()))
    print(line_of(parts, time.monotonic() - start))
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
