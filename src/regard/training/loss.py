"""What a model's words cost: cross-entropy with smoothed labels, and its gradients in the same few passes.

At width 128 and 8,000 words half of a training step is this loss. Written down plainly it makes the whole matrix of
logits several times over: logits, log-probabilities, their gradient, the gradient of the logits. Here a chunk of rows
is made, turned into its own gradient in place, multiplied into the gradients of what it came from, and written over by
the next chunk; rows that are padding are left out before the first product.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.errors import ConfigError, DeviceError, DtypeError, PathError, ShapeError

CHUNK = 2**21  # logits held at once on a CPU: 8 MB, near its cache; elsewhere 16 times as many keep the cores busy

# Logits so far below the largest count as this far below: their share of the sum, e⁻⁶⁰, is lost in float64 too.
# Without it shares reach the denormal numbers (e⁻⁸⁸), or their products do, which many processors add ever so slowly.
DEEPEST = -60.0


class Loss(NamedTuple):
    """The loss of a batch: its `sum` over the tokens, which has a gradient; their number; the sum without smoothing.

    `sum / count` is what is minimised, e to the power of `nll / count` is the perplexity.

    >>> Loss(torch.tensor(6.0), 3, torch.tensor(4.5)).count
    3
    """

    sum: Tensor
    count: int  # type: ignore[assignment]  # a tuple's own count() is nothing that a loss is asked for
    nll: Tensor


def smoothed_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    smoothing: float | int = 0.1,
    pad: int = 0,
    chunk: int | None = None,
) -> Loss:
    r"""Sum the cross-entropy of $p = \mathrm{softmax}(\mathrm{hidden}\, W^\top + b)$ and labels that are nearly sure.

    $-(1-s) \log p_y - \frac{s}{n} \sum_j \log p_j$ for each target y that is not `pad`, with s the `smoothing`
    (Szegedy et al. 2016, §7): the same as `F.cross_entropy(logits, targets, label_smoothing=s, ignore_index=pad,
    reduction="sum")`, without ever holding the logits. `hidden` is (…, m), `targets` (…), `weight` (n, m), `bias` (n,)
    or None. `chunk` is how many rows are worked on at a time.

    Sums are float32 at least, whatever comes in. A batch of padding alone costs 0, and its gradients are 0. Gradients
    are computed here, not in the backward pass, and only where one is wanted; there is no second derivative.

    >>> hidden, weight = torch.eye(3), torch.eye(3)
    >>> loss = smoothed_loss(hidden, weight, None, torch.tensor([2, 1, 0]))
    >>> loss.count, round(loss.sum.item(), 4), round(loss.nll.item(), 4)
    (2, 2.1362, 2.1029)
    """
    check(hidden, weight, bias, targets, smoothing, chunk)
    rows, said = find_words(targets, len(weight), pad)
    size = choose_chunk(weight, 1) if chunk is None else chunk
    through = partial(through_chunks, said=said, smoothing=float(smoothing), chunk=size)
    return compute_fused(hidden, weight, bias, None if len(rows) == targets.numel() else rows, through, len(rows))


def find_words(targets: Tensor, n: int, pad: int) -> tuple[Tensor, Tensor]:
    """(rows of the tokens that count, counted over all axes, their ids); an id that is no word is refused."""
    flat = targets.reshape(-1)
    rows = (flat != pad).nonzero().squeeze(1)
    said = flat if len(rows) == len(flat) else flat[rows]
    must_be_known(said, n)
    return rows, said.long()


def choose_chunk(weight: Tensor, buffers: int) -> int:
    """How many rows are worked on at a time, where each needs so many buffers of a row of logits."""
    return max(64, CHUNK * (1 if weight.device.type == "cpu" else 16) // (buffers * len(weight)))


def compute_fused(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, rows: Tensor | None, through: "Through", count: int
) -> Loss:
    """The loss that `through` makes of some rows of `hidden` (…, m), with its gradients; without `rows`, of all."""
    gradients = torch.is_grad_enabled()
    with torch.autocast(hidden.device.type, enabled=False):
        flat = hidden.reshape(-1, hidden.shape[-1])
        total, nll = FusedLoss.apply(flat, weight, bias, rows, through, gradients)
    return Loss(total, count, nll)


class FusedLoss(torch.autograd.Function):
    """The loss of the chosen rows of `hidden`, and the sum of -log p; gradients are ready when backward asks."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        rows: Tensor | None,
        through: "Through",
        gradients: bool,
    ) -> tuple[Tensor, Tensor]:
        kind = torch.promote_types(torch.promote_types(hidden.dtype, weight.dtype), torch.float32)
        x = (hidden if rows is None else hidden.index_select(0, rows)).to(kind)  # t m
        w = weight.to(kind)  # n m
        b = None if bias is None else bias.to(kind)  # n
        made = through(x, w, b, wanted=[gradients and bool(need) for need in ctx.needs_input_grad[:3]])
        into_x = made.into_x
        if into_x is not None and rows is not None:
            into_x = torch.zeros_like(hidden, dtype=kind).index_copy_(0, rows, into_x)
        pairs = ((into_x, hidden), (made.into_w, weight), (made.into_b, bias))
        ctx.save_for_backward(*(None if g is None or of is None else g.to(of.dtype) for g, of in pairs))
        ctx.mark_non_differentiable(made.nll)
        return made.total, made.nll

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # create_graph=True
            raise PathError(
                "a fused loss has no second derivative; leave create_graph=True out, or use F.cross_entropy, which "
                "has all of them"
            )
        grads = (None if g is None else g * given[0].to(g.dtype) for g in ctx.saved_tensors)
        return *grads, None, None, None


class ChunkSums(NamedTuple):
    """What one way through the chunks makes: two sums, and the gradients of the first that were wanted."""

    total: Tensor
    nll: Tensor
    into_x: Tensor | None  # t m
    into_w: Tensor | None  # n m
    into_b: Tensor | None  # n


Through = Callable[..., ChunkSums]  # x (t, m), w (n, m), b (n,) or None, and which gradients are wanted


def through_chunks(
    x: Tensor, w: Tensor, b: Tensor | None, *, said: Tensor, smoothing: float, chunk: int, wanted: list[bool]
) -> ChunkSums:
    """Loss and gradients, `chunk` rows at a time, all in one buffer.

    The smoothing needs no pass over the logits: the mean of a row of them is x times the mean row of w, and its
    gradient is the same in every column.
    """
    n, count = len(w), len(x)
    into_x, into_w = (torch.zeros_like(like) if want else None for like, want in ((x, wanted[0]), (w, wanted[1])))
    into_b = x.new_zeros(n) if wanted[2] else None
    mean_w, mean_b = w.mean(0), 0.0 if b is None else b.mean()  # m
    nll, spread = x.new_zeros(count), x.new_zeros(count)
    pieces = -(-count // chunk)
    size = -(-count // pieces) if pieces else 0  # all about equal: a small rest would cost as much as a whole
    buffer = x.new_empty(size, n)
    for first in range(0, count, max(1, size)):
        at = slice(first, min(first + size, count))
        some, to = x[at], said[at, None]  # c m, c 1
        z = buffer[: len(some)]  # c n
        if b is None:
            torch.mm(some, w.t(), out=z)
        else:
            torch.addmm(b, some, w.t(), out=z)
        top = z.amax(1, keepdim=True)  # c 1
        right = z.gather(1, to) - top
        weights = z.sub_(top).clamp_(min=DEEPEST).exp_()  # c n, still to be divided by their sum
        whole = weights.sum(1, keepdim=True)
        log_whole = whole.log()
        nll[at] = (log_whole - right).squeeze(1)
        spread[at] = (log_whole + top).squeeze(1) - some @ mean_w - mean_b
        if True not in wanted:
            continue
        weights.scatter_add_(1, to, whole * (smoothing - 1.0))
        if into_x is not None:
            torch.mm(weights, w, out=into_x[at])
            into_x[at].div_(whole).sub_(mean_w, alpha=smoothing)
        if into_w is not None:
            into_w.addmm_(weights.t(), some / whole)
        if into_b is not None:
            into_b.addmv_(weights.t(), whole.reciprocal().squeeze(1))
    if into_w is not None:
        into_w.sub_(x.sum(0), alpha=smoothing / n)
    if into_b is not None:
        into_b.sub_(count * smoothing / n)
    nll_sum = nll.sum()
    total = torch.lerp(nll_sum, spread.sum(), smoothing) if smoothing else nll_sum.clone()
    return ChunkSums(total, nll_sum, into_x, into_w, into_b)


def check(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float | int, chunk: int | None
) -> None:
    """Whether everything fits; each refusal says what came, what was wanted and what to do."""
    if not hidden.is_floating_point() or not weight.is_floating_point():
        raise DtypeError(
            f"hidden came as {hidden.dtype} and weight as {weight.dtype}, wanted floating point; convert with .float()"
        )
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        raise DtypeError(f"targets came as {targets.dtype}, wanted ids as whole numbers; convert with targets.long()")
    if weight.dim() != 2 or not hidden.dim() or hidden.shape[-1] != weight.shape[1] or not len(weight):
        raise ShapeError(
            f"hidden has shape {tuple(hidden.shape)} and weight {tuple(weight.shape)}, wanted (…, m) and (n, m); "
            "give the head's weight, one row per word"
        )
    if hidden.shape[:-1] != targets.shape:
        raise ShapeError(
            f"hidden has shape {tuple(hidden.shape)} and targets {tuple(targets.shape)}, wanted (…, m) and (…); "
            "give one target per row of hidden"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError(f"bias has shape {tuple(bias.shape)}, wanted ({len(weight)},); give one number per word")
    for name, one in (("weight", weight), ("bias", bias), ("targets", targets)):
        if one is not None and one.device != hidden.device:
            raise DeviceError(f"{name} is on {one.device}, but hidden on {hidden.device}; move it with .to()")
    if not 0.0 <= smoothing <= 1.0:
        raise ConfigError(f"smoothing is {smoothing}, but it is a share; give a number from 0 to 1")
    if chunk is not None and chunk < 1:
        raise ConfigError(f"chunk is {chunk}, but it counts rows; give 1 or more, or leave it out")


def must_be_known(said: Tensor, n: int) -> None:
    """Raises where a target is no word: gather would read elsewhere, or say nothing of which."""
    if not len(said):
        return
    low, high = (int(end) for end in said.aminmax())
    if low < 0 or high >= n:
        raise ShapeError(
            f"a target is {low if low < 0 else high}, but there are {n} words; give ids from 0 to {n - 1}, "
            "or say by pad= which id is no word"
        )
