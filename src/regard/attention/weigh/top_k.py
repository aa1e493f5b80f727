"""Only the best few keys of each query take part."""

from dataclasses import dataclass

from regard.attention.weigh.softmax import hide, softmax
from regard.shapes import Allowed, Scores, Weights


def top_k(k: int) -> "TopK":
    """A weigher that softmaxes over the `k` best visible keys of each row and gives the others 0.

    Equal scores go to the key that comes first. With fewer than `k` visible keys all of them take part.
    (Gupta et al. 2021, "Memory-efficient transformers via top-k attention".)

    >>> import torch
    >>> weigh = top_k(2)
    >>> weigh
    top_k(2)
    >>> weigh(torch.tensor([[1.0, 2.0, 1.0, 0.0]]))
    tensor([[0.2689, 0.7311, 0.0000, 0.0000]])
    """
    return TopK(k)


@dataclass(frozen=True, repr=False)
class TopK:
    """What `top_k` returns."""

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"top_k({self.k}) keeps no key; keep at least 1")

    def __repr__(self) -> str:
        return f"top_k({self.k})"

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Weights:
        """Weights that are positive for at most `k` keys of each row."""
        logits, hidden = hide(scores, allowed)  # *b q k
        best_first = logits.detach().argsort(dim=-1, descending=True, stable=True)
        place = best_first.argsort(-1)  # where each key stands in that order
        return softmax(scores, (place < self.k) & ~hidden)
