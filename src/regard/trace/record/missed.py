"""What computed attention in a run and was not heard."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import WatchError

SHOWN = 6  # modules that are named in one line


@dataclass(frozen=True)
class MissedAttention:
    """Attention-like products of one module that no door heard: where, what they looked like, and how many."""

    name: str  # the path of the module
    what: str  # what it looked like, with its shapes
    count: int = 1

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.name} was not heard: {self.what}{times}"


def incomplete_line(missed: Sequence[MissedAttention]) -> str:
    """One line that names the modules, the first few of them.

    >>> incomplete_line([MissedAttention(name, "q × k …") for name in ("layers.1", "layers.1", "mix")])
    'incomplete: attention in layers.1, mix was not heard'
    """
    names = list(dict.fromkeys(one.name for one in missed))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"incomplete: attention in {', '.join(names[:SHOWN])}{more} was not heard"


def no_attention_error(missed: Sequence[MissedAttention], called: Sequence[str] = ()) -> WatchError:
    """Why a trace would be empty; `called` are the modules that are called attention."""
    if missed:
        others = len({one.name for one in missed}) - 1
        more = f", and the like in {others} more modules" if others else ""
        return WatchError(f"the watch saw no attention that has a map it can show: {missed[0]}{more}")
    if called:
        more = f" and {len(called) - SHOWN} more" if len(called) > SHOWN else ""
        return WatchError(
            "the watch saw no attention: the model was not called in this thread inside the block, it ran under "
            f"torch.func or as an exported program, or what {', '.join(called[:SHOWN])}{more} compute cannot be heard, "
            "as attention without a product of weights and values"
        )
    return WatchError(
        "the watch saw no attention: the model was not called in this thread inside the block, it ran under "
        "torch.func or as an exported program, or it has no attention (recurrent mixers have none)"
    )
