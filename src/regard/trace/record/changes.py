"""What was changed about a model while it was watched, in one line."""

from collections.abc import Sequence

LISTED = 3  # in one line; the rest is counted


def edited_line(edits: Sequence[str]) -> str:
    """One line for all edits; empty where there are none.

    >>> edited_line(["mute(heads 0)", "block(key 1)", "zero(key 2)", "zero(key 3)", "zero(key 4)"])
    'edited: mute(heads 0), block(key 1), zero(key 2) and 2 more'
    """
    if not edits:
        return ""
    more = f" and {len(edits) - LISTED} more" if len(edits) > LISTED else ""
    return f"edited: {', '.join(edits[:LISTED])}{more}"
