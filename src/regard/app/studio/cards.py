"""What is known of a trace beside its numbers: a small JSON file that lies next to it."""

import json
import re
import secrets
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from regard.app.protocol.messages import TraceCard

FORMAT = "regard-card/1"
IDENTITY = re.compile(r"[0-9a-f]{16}", re.ASCII)
SHOWN = ("id", "name", "model", "text", "made")


def make_id() -> str:
    """A name that nobody can guess or bend into a path."""
    return secrets.token_hex(8)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass
class Card:
    """One trace: what was run on what, and what came out."""

    id: str = field(default_factory=make_id)
    name: str = ""
    model: str = ""  # by which it can be run again; "" where the trace came from elsewhere
    text: str = ""
    made: str = field(default_factory=now)
    output: dict[str, Any] | None = None
    given: dict[str, Any] | None = None
    edits: list[dict[str, Any]] = field(default_factory=list)
    picture: dict[str, Any] | None = None

    def describe(self) -> TraceCard:
        """What a page is told of it."""
        return TraceCard(id=self.id, name=self.name, model=self.model, text=self.text, made=self.made)

    def to_bytes(self) -> bytes:
        return json.dumps({"format": FORMAT, **asdict(self)}).encode()


def read_card(path: Path) -> Card | None:
    """The card in a file; None where it is none of ours, or damaged."""
    try:
        card = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(card, dict) or card.pop("format", None) != FORMAT:
        return None
    plain = all(isinstance(card.get(name), str) for name in SHOWN)
    known = {one.name for one in fields(Card)}
    mappings = all(isinstance(card.get(name), dict | None) for name in ("output", "given", "picture"))
    if not plain or not mappings or not set(card) <= known or not isinstance(card.get("edits", []), list):
        return None
    return Card(**card) if card["id"] == path.stem and IDENTITY.fullmatch(card["id"]) else None
