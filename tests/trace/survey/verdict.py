"""What a row of the survey comes to."""

from collections import Counter
from collections.abc import Iterable

from tests.trace.survey.library import Row

RIGHT, SAID, WRONG, SILENT, NONE, UNBUILT = "right", "said", "wrong", "silent", "none", "not built"


def verdict(row: Row) -> str:
    """One word for a row; the worst that is true of it.

    wrong: verified and not what ran, or the model gave something else. silent: attention ran, and nothing was said of
    it. said: a map that is refused, unverified or not shown, and this is said. right: each attention that the recorder
    saw has a map that is exact and verified. none: no attention ran, and no map is shown.
    """
    if "crash" in row or not row["built"]:
        return UNBUILT
    if not row["same"] or any(is_wrong(layer) for layer in row["layers"]):
        return WRONG
    if row["silent"]:
        return SILENT
    if not row["attention"] and not row["layers"]:
        return NONE
    return SAID if row["unmatched"] or any(layer["status"] != "verified" for layer in row["layers"]) else RIGHT


def is_wrong(layer: Row) -> bool:
    """Whether a verified map is another than the one that ran, in its numbers, its axes or its names."""
    if layer["status"] != "verified":
        return False
    return not layer["exact"] or layer["axes"].startswith("wrong") or "other:" in layer["names"]


def tally(rows: Iterable[Row]) -> Counter[str]:
    """How many rows come to what; `whole` are right and complete."""
    found: Counter[str] = Counter()
    for row in rows:
        word = verdict(row)
        found[word] += 1
        found["whole"] += word == RIGHT and row["complete"] and not row["refused"]
    return found
