"""What is to be said of texts that a model learns from: where they come from, their licences, whom to name."""

import json
from pathlib import Path
from typing import Any

from regard.files import put


def write_card(path: Path, card: dict[str, Any]) -> None:
    """Write it as JSON that people can read; `regard.tasks.ship --card` takes it into the manifest of a model."""
    put(path, (json.dumps(card, indent=1, ensure_ascii=False) + "\n").encode())
