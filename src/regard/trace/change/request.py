"""What one call of a model asked of attention, so that it can be computed in another way."""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.attention.attend import Attended, attend
from regard.attention.map.computed import Weigh
from regard.attention.mask import Mask, Sizes
from regard.attention.mask.causal import Causal
from regard.attention.mask.padding import Padding
from regard.attention.mask.spans import SpanMask
from regard.attention.matrix_free.mechanism import Mechanism
from regard.attention.score.base import Score
from regard.attention.score.bias import Bias
from regard.attention.weigh.softmax import softmax
from regard.trace.doors.compact_form import Memo
from regard.trace.doors.scope import Call

BY_HAND = (
    "its softmax is written out by hand, so that q and k are not seen; call F.scaled_dot_product_attention, or give "
    "attn_implementation='sdpa' or need_weights=False"
)


class PreparedScore:
    """A score function whose queries and keys are prepared already."""

    is_dot = False

    def __init__(self, score: Score) -> None:
        self.score = score

    def prepare(self, q: Float[Tensor, "..."], k: Float[Tensor, "..."]) -> tuple[Tensor, Tensor]:
        return q, k

    def compare(self, q: Float[Tensor, "..."], k: Float[Tensor, "..."]) -> Tensor:
        return self.score.compare(q, k)

    def scale(self, width: int) -> float:
        return self.score.scale(width)


@dataclass(frozen=True, eq=False)
class Request:
    """Everything that decides what `attend` gives."""

    q: Tensor
    k: Tensor
    v: Tensor
    scale: float
    mask: Mask | None = None
    bias: Tensor | Bias | None = None
    softcap: float | None = None
    sink: Tensor | None = None
    dropout: float = 0.0
    score: Score | None = None
    weigh: Weigh | None = None
    by: Mechanism | None = None

    def under(self, attention: Mask | Mechanism) -> "Request":
        """The same with another mechanism, or with a mask that holds beside the one that is there."""
        if not isinstance(attention, Mask):
            return replace(self, by=attention)
        return replace(self, mask=attention if self.mask is None else self.mask & attention)

    def attended(self) -> Attended:
        """Computed by `attend`."""
        dot = self.score is None or self.score.is_dot  # then q and k, which are prepared, are simply multiplied
        found = attend(
            self.q,
            self.k,
            self.v,
            score=None if dot or self.score is None else PreparedScore(self.score),
            mask=self.mask,
            weigh=None if self.weigh is softmax else self.weigh,
            scale=self.scale,
            bias=self.bias,
            softcap=self.softcap,
            sink_logits=self.sink,
            dropout=self.dropout,
            by=self.by,
        )
        computed = found.weights.source.computed
        if computed is not None:
            computed.score = self.score
        return found


def request_of(call: Call, memo: Memo) -> Request | str:
    """What a call asked for, or why that cannot be told. `call.cached` says whether keys may end in empty room."""
    if call.refused:
        return call.refused
    if call.doubts:
        return f"what it computes is unverified: {call.doubts[0]}"
    if call.map is not None:
        return of_map(call)
    if call.q is None or call.k is None or call.v is None:
        told = f"q and k do not explain its weights ({'; '.join(call.notes)})"
        return BY_HAND if call.door == "handwritten" else told
    q, k, v = call.q, call.k, call.v
    if q.is_nested or k.is_nested:
        return "its q and k are nested tensors, which have no one length"
    sizes = Sizes(tuple(q.shape[:2]), q.shape[2], k.shape[2])
    formed = memo.form(call, sizes)
    k, v = k[:, :, : formed.keys], v[:, :, : formed.keys]
    mask = None if formed.mask is None else simplify_mask(formed.mask, Sizes(sizes.lead, sizes.q, formed.keys))
    return Request(q, k, v, call.scale, mask, formed.bias, call.softcap, call.sink, call.dropout)


def of_map(call: Call) -> Request | str:
    """The request behind a map that knows itself, with as many axes as it was given."""
    assert call.map is not None
    source = call.map.source.exact
    if source is None or call.v is None:
        return "its map was given as weights, without q and k"
    rank = len(source.sizes.lead) + 2
    if rank > 4:
        return f"its q has {rank} axes, and (b, h, q, d) are the most that are swapped"
    v = call.v[(0,) * (4 - rank)]
    return Request(
        source.q,
        source.k,
        v,
        source.scale,
        source.mask,
        source.bias,
        source.softcap,
        source.sink,
        call.dropout,
        source.score,
        source.weigh,
    )


def simplify_mask(mask: Mask, sizes: Sizes) -> Mask:
    """One run of keys per query said as causal and padding where it is just that, for which there are quick ways."""
    if isinstance(mask, Causal) and sizes.q == sizes.k:
        return Causal("last")
    if not isinstance(mask, SpanMask):
        return mask
    start, stop = (x.long() for x in (mask.start, mask.stop))  # b|1 h|1 q|1
    seen = stop > start
    if start.shape[1] != 1 or not bool(seen.any()):
        return mask
    last = torch.where(seen, stop, 0).amax(-1)[..., None]  # b|1 1 1
    first = torch.where(seen, start, sizes.k).amin(-1)[..., None]
    ahead = torch.arange(sizes.q, device=stop.device) + 1 + sizes.offset
    for causal in (False, True):
        end = torch.minimum(last, ahead) if causal else last
        same = torch.where(end > first, (start == first) & (stop == end), ~seen)
        if not bool(same.all()):
            continue
        parts: list[Mask] = [Causal("last")] if causal else []
        if bool((last < sizes.k).any()):
            parts.append(Padding(per_entry(last, sizes), "right"))
        if bool((first > 0).any()):
            parts.append(Padding(per_entry(sizes.k - first, sizes), "left"))
        if len(parts) > 2:
            return mask
        return mask if not parts else parts[0] if len(parts) == 1 else parts[0] & parts[1]
    return mask


def per_entry(lengths: Tensor, sizes: Sizes) -> Tensor:
    """One length per sequence."""
    return lengths[:, 0, 0].expand(sizes.lead[0]).contiguous().cpu()


def own_way(call: Call, request: Request) -> Tensor:
    """The call again as the model computes it, for measuring: by torch's kernel, written out, or by `attend`."""
    if call.map is not None:
        return request.attended().mix
    assert call.q is not None
    assert call.k is not None
    assert call.v is not None
    shared = call.q.shape[1] != call.k.shape[1]
    if call.raw is not None:
        mask, causal, scale = call.raw
        return F.scaled_dot_product_attention(call.q, call.k, call.v, mask, 0.0, causal, scale=scale, enable_gqa=shared)
    k, v = (x.repeat_interleave(call.q.shape[1] // x.shape[1], 1) if shared else x for x in (call.k, call.v))
    scores = call.q @ k.mT * call.scale
    if call.mask is not None:
        hidden = call.mask.dtype == torch.bool
        scores = scores.masked_fill(~call.mask, -torch.inf) if hidden else scores + call.mask
    return scores.softmax(-1) @ v
