"""What a run tells while it goes on."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Event(NamedTuple):
    """Something worth telling.

    Its kind: "begin", "notice", "step", "checkpoint", "log", "shown", "validating" (it begins), "validation" (it is
    done), "end".
    """

    kind: str
    step: int
    facts: dict[str, Any]


Tell = Callable[[Event], None]
