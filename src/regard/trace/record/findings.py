"""What is known of an attention besides its numbers: states that others decide by, and the sentences people read."""

from dataclasses import dataclass, field
from enum import StrEnum


class LayerState(StrEnum):
    """Something that is so of a layer, and that a proof, a name or a view depends on."""

    PADDING_ROWS_EMPTY = "padding_rows_empty"
    PADDING_ROWS_SKIPPED = "padding_rows_skipped"
    PARTS_OF_PICTURE = "parts_of_picture"
    WINDOWS = "windows"
    AXES_UNKNOWN = "axes_unknown"
    CHANNELS = "channels"
    KEYS_CHANGED = "keys_changed"
    COMPARED_BY_OUTPUT = "compared_by_output"


SENTENCES = {
    LayerState.PADDING_ROWS_EMPTY: (
        "rows of padding were even over all keys of their step, which is not kept; they are shown as seeing nothing"
    ),
    LayerState.PADDING_ROWS_SKIPPED: (
        "rows of padding were not computed, because torch's nested kernel leaves them out; they are shown as seeing "
        "nothing"
    ),
    LayerState.WINDOWS: "its batch axis holds the windows or chunks of each entry beside each other",
    LayerState.AXES_UNKNOWN: "batch and heads share an axis in an order that is not known; each entry is shown alone",
    LayerState.CHANNELS: "its rows and columns are channels, not positions: it attends across features",
    LayerState.PARTS_OF_PICTURE: "each map is of a part of the picture, such as a window",
    LayerState.KEYS_CHANGED: "keys in the cache changed between steps; each row is shown with the keys it saw",
    LayerState.COMPARED_BY_OUTPUT: "its score function could only be compared by the output",
}


@dataclass(kw_only=True, slots=True, eq=False)
class Findings:
    """Notes, states, doubts and edits of one attention, from the call that is heard to the layer that is kept.

    Nothing is ever decided by a sentence: `states` and `doubts` are there for that.
    """

    notes: list[str] = field(default_factory=list)  # remarks, one sentence each
    states: list[LayerState] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)  # why the map counts as unverified, whatever its numbers say
    edits: list[str] = field(default_factory=list)  # what was changed, as calls of `regard.edit` and `regard.swap`

    def mark(self, state: LayerState) -> None:
        """Note a state, once."""
        if state not in self.states:
            self.states.append(state)
            self.notes.append(SENTENCES[state])

    def take_findings(self, other: "Findings") -> None:
        """Begin with all that is known of another."""
        if other.notes or other.states or other.doubts or other.edits:
            self.notes, self.states = list(other.notes), list(other.states)
            self.doubts, self.edits = list(other.doubts), list(other.edits)

    def sentences(self) -> list[str]:
        """All of it for people to read, but for the edits."""
        return [*(f"unverified: {why}" for why in self.doubts), *self.notes]
