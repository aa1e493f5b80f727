"""What was changed about a model while it was watched: edits and swaps, as the notes of a run tell them."""

from collections.abc import Iterable, Sequence

EDITED, SWAPPED = "edited: ", "swapped: "
LISTED = 3  # in one line; the rest is counted


def changes_in(notes: Iterable[str]) -> list[str]:
    """Those notes that tell of a change, each once.

    >>> changes_in(["edited: mute(heads 0)", "the text was cut", "edited: mute(heads 0)"])
    ['edited: mute(heads 0)']
    """
    return list(dict.fromkeys(note for note in notes if note.startswith((EDITED, SWAPPED))))


def edits_in(notes: Iterable[str]) -> list[str]:
    """The changes as calls: what an editor was asked for, and what was swapped in.

    >>> edits_in(["edited: mute(heads 0)", "swapped: window(2, 2)"])
    ['mute(heads 0)', 'swap(window(2, 2))']
    """
    return [
        note.removeprefix(EDITED) if note.startswith(EDITED) else f"swap({note.removeprefix(SWAPPED)})"
        for note in changes_in(notes)
    ]


def edited_line(edits: Sequence[str]) -> str:
    """One line for all edits; empty where there are none.

    >>> edited_line(["mute(heads 0)", "block(key 1)", "zero(key 2)", "zero(key 3)", "zero(key 4)"])
    'edited: mute(heads 0), block(key 1), zero(key 2) and 2 more'
    """
    if not edits:
        return ""
    more = f" and {len(edits) - LISTED} more" if len(edits) > LISTED else ""
    return f"{EDITED}{', '.join(edits[:LISTED])}{more}"
