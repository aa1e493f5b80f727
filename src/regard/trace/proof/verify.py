"""Verification that a map is what the model used, layer by layer, in three parts that do not lean on each other.

1. weights @ v against output rows that were copied while the model ran (under dropout: the weights as used).
2. The kernel again, with values drawn at random, against our weights: constant or low-rank values hide nothing here.
   It gets the mask, causal flag and scale that the model's kernel got, not our small form of them. Where a softmax was
   seen, its own rows take the place of the kernel.
3. Row normalisers against the kernel's.

Errors are counted in units of the last place (ulps) of the model's dtype at the size of the numbers compared.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.axes.heads import multiply_grouped
from regard.attention.map import AttentionMap, Computed
from regard.attention.map.source import MapPiece, widen_dtype
from regard.errors import MapError, Stale
from regard.trace.record.findings import LayerState
from regard.trace.record.layer import Layer, ProofSample
from regard.trace.record.missed import MissedAttention
from regard.trace.record.trace import Run

ULPS = {torch.float64: 64.0, torch.float32: 64.0, torch.float16: 4.0, torch.bfloat16: 4.0}
LARGEST = 1 << 27  # cells that a replay of dropout may hold


class Status(StrEnum):
    """What a proof came to."""

    VERIFIED = "verified"  # the map is what the model used
    UNVERIFIED = "unverified"  # it may be, but something speaks against it or could not be compared
    REFUSED = "refused"  # there is no map


@dataclass(frozen=True)
class Proof:
    """The verification of one layer's map: its status, and how far it is from the model's own numbers, in ulps."""

    name: str
    kind: str  # how the map was obtained: computed, stored, implied; "" where there is none
    status: Status
    output: float | None = None  # part 1
    kernel: float | None = None  # part 2
    normaliser: float | None = None  # part 3
    why: str = ""  # it is not verified
    ulp: float = 0.0  # the size of an ulp, relative to the number: the eps of the model's dtype

    def __str__(self) -> str:
        return f"{self.name}: {self.sentence()}"

    def sentence(self) -> str:
        """In words: "verified: equals the model's output to 1.7 ulp (2e-7)"."""
        parts = (("output", self.output), ("kernel", self.kernel), ("normaliser", self.normaliser))
        errors = [(name, self.size(error)) for name, error in parts if error is not None]
        if self.status is Status.VERIFIED:
            equal = ", ".join(f"its {name} to {size}" for name, size in errors).replace("its", "the model's", 1)
            return f"{self.status}: equals {equal}"
        off = ", ".join(f"{name} off by {size}" for name, size in errors)
        return f"{self.status}: {self.why}{f' ({off})' if off else ''}"

    def size(self, error: float) -> str:
        """An error in ulps, and what that is of the number."""
        relative = f"{error * self.ulp:.0e}".replace("e-0", "e-").replace("e+0", "e+")
        return f"{error:.2g} ulp ({relative})" if error else "0 ulp"


@dataclass(frozen=True)
class Proofs:
    """The proofs of all layers of a run, in order; `bool(proofs)`: every one is verified, and none is known to lack.

    `missed` is the attention that ran and was not heard (`docs/decisions/0021-what-complete-means.md`).
    """

    layers: list[Proof] = field(default_factory=list)
    missed: list[MissedAttention] = field(default_factory=list)

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int) -> Proof:
        return self.layers[index]

    def __bool__(self) -> bool:
        return self.complete and bool(self.layers) and all(proof.status is Status.VERIFIED for proof in self.layers)

    @property
    def complete(self) -> bool:
        """Whether no attention is known to have run unheard."""
        return not self.missed

    def __repr__(self) -> str:
        lines = [*map(str, self.layers), *(f"incomplete: {one}" for one in self.missed)]
        return "\n".join(lines) or "nothing to verify: no layer was seen"

    def records(self) -> list[dict[str, object]]:
        """One dictionary per layer, for tables."""
        return [vars(proof).copy() for proof in self.layers]


def verify(run: Run) -> Proofs:
    """Verify every layer of a run, and name what was refused."""
    with torch.no_grad():
        proofs = [prove(layer) for layer in run.layers]
    refused = [Proof(name, "", Status.REFUSED, why=why) for name, why in run.refused.items()]
    return Proofs([*proofs, *refused], list(run.missed))


def prove(layer: Layer) -> Proof:
    """The three parts for one layer."""
    if layer.parts is not None:  # what was put together shows the numbers of its windows, at their places
        return prove(layer.parts)
    kind, seen = layer.weights.kind, layer.seen
    if layer.doubts:
        return Proof(layer.name, kind, Status.UNVERIFIED, why=layer.doubts[0])
    if seen is None or seen.mix is None or not seen.rows:
        return Proof(
            layer.name, kind, Status.UNVERIFIED, why="no output of this call could be copied while the model ran"
        )
    if seen.mix.device != layer.weights.device:
        seen.mix = seen.mix.to(layer.weights.device)
    pieces = layer.weights.source.pieces()
    if layer.weights.source.computed is None and pieces:
        return prove_pieces(layer, pieces)
    if LayerState.PADDING_ROWS_EMPTY in layer.states:
        blind = ~layer.weights.allowed[..., list(seen.rows), :].any(-1, keepdim=True)
        softmax_seen = None if seen.weights is None else seen.weights.masked_fill(blind, 0.0)
        seen = layer.seen = replace(seen, mix=seen.mix.masked_fill(blind, 0.0), weights=softmax_seen)
    assert seen.mix is not None
    rows = torch.tensor(seen.rows, device=layer.weights.device)
    try:
        weights: Tensor = layer.weights[..., rows, :]  # b h r k
        output, why = output_error(layer, weights)
        kernel = kernel_error(layer, weights, rows)
        normaliser = normaliser_error(layer, rows)
    except Stale as stale:
        return Proof(layer.name, kind, Status.UNVERIFIED, why=str(stale))
    limit = ULPS.get(seen.mix.dtype, 64.0)
    found = [error for error in (output, kernel, normaliser) if error is not None]
    wrong = [
        name
        for name, error in (("output", output), ("kernel", kernel), ("normaliser", normaliser))
        if error is not None and not error <= limit
    ]
    if wrong:
        why = f"the {' and the '.join(wrong)} differ{'s' if len(wrong) == 1 else ''} by more than {limit:g} ulp"
    elif why:
        pass
    elif kernel is None and (kind == "computed" or LayerState.COMPARED_BY_OUTPUT in layer.states):
        why = "only the output could be compared, which leaves freedom where values are alike"
    status = Status.UNVERIFIED if wrong or why or not found else Status.VERIFIED
    return Proof(layer.name, kind, status, output, kernel, normaliser, why, torch.finfo(as_rounded(seen).dtype).eps)


def prove_pieces(layer: Layer, pieces: tuple[MapPiece, ...]) -> Proof:
    """A map of several stretches of keys is verified where each of them is, by rows of its own."""
    proofs = []
    for part in pieces:
        v = part.v
        if part is pieces[-1] and layer.v is not None:
            v = layer.v[:, :, part.columns]
        one = replace(layer, weights=AttentionMap(part.source), q=part.source.q, k=part.source.k, v=v)
        one.seen = rows_from(layer.seen, range(part.row, part.rows.stop), part.columns)
        one.states = [state for state in layer.states if state is LayerState.PADDING_ROWS_EMPTY]
        proofs.append(prove(one))
    errors = {name: [getattr(proof, name) for proof in proofs] for name in ("output", "kernel", "normaliser")}
    worst = {name: max((x for x in found if x is not None), default=None) for name, found in errors.items()}
    doubt = next((proof.why for proof in proofs if proof.status is not Status.VERIFIED), "")
    why = f"rows that saw other keys than the last ones: {doubt}" if doubt and not proofs[-1].why else doubt
    status = Status.UNVERIFIED if doubt else Status.VERIFIED
    return Proof(layer.name, layer.weights.kind, status, **worst, why=why, ulp=proofs[-1].ulp)


def rows_from(seen: ProofSample | None, rows: range, columns: slice) -> ProofSample | None:
    """What was copied at some rows, counted from the first of them."""
    if seen is None or seen.mix is None:
        return seen
    at = [i for i, row in enumerate(seen.rows) if row in rows]
    weights = None if seen.weights is None else seen.weights[:, :, at, columns]
    return ProofSample(tuple(seen.rows[i] - rows.start for i in at), seen.mix[:, :, at], weights=weights)


def output_error(layer: Layer, weights: Tensor) -> tuple[float | None, str]:
    """Part 1: (error, why it could not be had)."""
    seen = layer.seen
    assert seen is not None
    assert seen.mix is not None
    if layer.v is None:
        return None, "values were not kept, so the output cannot be compared"
    if seen.used is not None:
        weights = seen.used
    elif seen.dropout:
        if layer.weights.shape[-1] * layer.weights.shape[-2] * layer.heads * layer.batch > LARGEST:
            return None, "the call dropped weights, and the map is too large to replay that"
        try:
            weights = layer.weights.used()[..., list(seen.rows), :]
        except MapError as error:
            return None, str(error)
    dtype = torch.promote_types(widen(weights).dtype, widen(layer.v).dtype)  # a library may round its softmax
    weights, v = weights.to(dtype), layer.v.to(dtype)
    mixed, bound = multiply_grouped(weights, v), multiply_grouped(weights, v.abs()) * size_of(layer)
    return ulps(mixed, seen.mix, bound, as_rounded(seen)), ""


def as_rounded(seen: ProofSample) -> Tensor:
    """What says how exact a call was: its output, or a softmax that was seen and is coarser."""
    assert seen.mix is not None
    made = (seen.mix, seen.mix if seen.weights is None else seen.weights)
    return max(made, key=lambda x: torch.finfo(x.dtype).eps)


def size_of(layer: Layer) -> Tensor | float:
    """How large the scores of the sampled rows are: an error in a score is one factor in a weight. (b, h, r, 1)"""
    seen = layer.seen
    assert seen is not None
    if layer.weights.source.computed is None or layer.q is None or layer.q.dtype in (torch.float16, torch.bfloat16):
        return 1.0
    rows = torch.tensor(seen.rows, device=layer.weights.device)
    scores = layer.weights.scores[..., rows, :].masked_fill(~layer.weights.allowed[..., rows, :], 0.0)
    return 1.0 + scores.abs().amax(-1, keepdim=True)


def kernel_error(layer: Layer, weights: Tensor, rows: Tensor) -> float | None:
    """Part 2."""
    seen = layer.seen
    assert seen is not None
    if seen.weights is not None:
        return ulps(weights, seen.weights, torch.ones_like(weights) * size_of(layer), as_rounded(seen))
    facts = facts_of(layer, rows)
    if layer.door == "flex" and LayerState.COMPARED_BY_OUTPUT in layer.states:
        return None  # only flex itself could say what its function makes
    if facts is None:
        return 0.0 if layer.weights.kind == "stored" else None
    q, k, mask, scale = facts
    generator = torch.Generator().manual_seed(len(layer.name) + layer.weights.shape[-1])
    v = torch.randn(k.shape[0], k.shape[1], k.shape[2], 16, generator=generator).to(k)
    theirs = F.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=q.shape[1] != k.shape[1])
    some = ~torch.isnan(theirs).any(-1, keepdim=True)
    weights, v = widen(weights), widen(v)
    ours, bound = multiply_grouped(weights, v), multiply_grouped(weights, v.abs()) * size_of(layer)
    return ulps(torch.where(some, ours, 0.0), torch.where(some, widen(theirs), 0.0), bound, seen.mix)


def facts_of(layer: Layer, rows: Tensor) -> tuple[Tensor, Tensor, Tensor | None, float | None] | None:
    """q at these rows, k, the mask as the kernel got it, and the scale; None where no kernel of torch was called."""
    seen, source = layer.seen, layer.weights.source.computed
    assert seen is not None
    if layer.q is None or layer.k is None or source is None:
        return None
    q = layer.q.index_select(-2, rows)
    if seen.keys is not None and seen.facts:
        mask = seen.allowed
        if seen.causal:
            mask = rows[:, None] >= torch.arange(seen.keys, device=rows.device)
        if mask is not None and mask.dtype != torch.bool:
            mask = mask.to(q.dtype)
        return q, layer.k, mask, seen.scale
    return facts_from(source, rows)


def facts_from(source: Computed, rows: Tensor) -> tuple[Tensor, Tensor, Tensor | None, float | None] | None:
    """The same from what our map holds, where no kernel of torch told more."""
    if not source.is_softmax or not source.is_dot or source.softcap is not None or source.sink is not None:
        return None
    mask = source.allowed(rows)
    if source.bias is not None:
        bias = source.bias_at(rows, slice(None))
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
        mask = mask.to(source.q.dtype)
    return source.q.index_select(-2, rows), source.k, mask, source.scale


def normaliser_error(layer: Layer, rows: Tensor) -> float | None:
    """Part 3: the log-normaliser of softmax that torch's own flash kernel gives, on a CPU."""
    source = layer.weights.source.computed
    facts = facts_of(layer, rows)
    if facts is None or source is None or not source.is_softmax or layer.weights.device.type != "cpu":
        return None
    q, k, mask, scale = facts
    if q.dtype not in (torch.float32, torch.float64) or source.softcap is not None or source.sink is not None:
        return None
    if k.shape[1] != q.shape[1]:
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    if mask is not None:
        mask = mask.expand(*q.shape[:2], len(rows), k.shape[2]) if mask.ndim == 4 else mask
        mask = (
            torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else mask
        )
    q, k = q.contiguous(), k.contiguous()  # called directly, it takes for granted that channels lie side by side
    _, theirs = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, k, 0.0, False, attn_mask=mask, scale=scale
    )
    scores = layer.weights.scores[..., rows, :]
    ours = scores.masked_fill(~layer.weights.allowed[..., rows, :], -torch.inf).logsumexp(-1)
    some = torch.isfinite(theirs) & torch.isfinite(ours)
    bound = scores.abs().amax(-1).clamp_min(1.0)
    return ulps(torch.where(some, ours, 0.0), torch.where(some, theirs, 0.0), bound)


def widen(x: Tensor) -> Tensor:
    """In float32 or better."""
    return x.to(widen_dtype(x.dtype))


def ulps(ours: Tensor, theirs: Tensor, bound: Tensor, like: Tensor | None = None) -> float:
    """The largest difference, in units of the last place of `theirs` at the size `bound` of what was added up."""
    eps = torch.finfo((theirs if like is None else like).dtype).eps
    if not ours.numel():
        return 0.0
    unit = widen(bound).clamp_min(1e-3) * eps
    error = ((widen(ours) - widen(theirs)).abs() / unit).max()
    return float(error)
