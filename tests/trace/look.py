"""One architecture, run once as it is and once watched: all that a test of the watcher compares."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor

from regard.attention.map import Computed
from regard.errors import WatchError
from regard.trace.proof.verify import Proofs
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace
from regard.trace.watch import watch
from tests.trace.species import Inputs, Species, Weights
from tests.trace.zoo import ZOO

logging.getLogger("transformers").setLevel(logging.ERROR)  # small sizes make many models warn


@dataclass(repr=False)
class Look:
    """What came out, plain and watched. `refusal` is the error of a watch that saw nothing."""

    species: Species
    model: torch.nn.Module
    inputs: Inputs
    plain: list[Tensor]
    watched: list[Tensor]
    random: tuple[Tensor, Tensor]  # the state of the generator after each
    trace: Trace
    refusal: str
    eager: bool  # whether attention was computed by the arithmetic that the reference uses

    def __repr__(self) -> str:
        return f"a look at {self.species}: {self.layers}"

    @property
    def layers(self) -> list[Layer]:
        return self.trace.layers

    @cached_property
    def proofs(self) -> Proofs:
        return self.trace.verify()

    @cached_property
    def reference(self) -> Weights | None:
        """What the model returns by itself; None where it returns nothing that could be compared."""
        return self.species.reference(self.model, self.inputs)

    @property
    def refused(self) -> dict[str, str]:
        """Why there is no map, by the path of the module; under "" where the watch refused all."""
        found = {proof.name: proof.why for proof in self.proofs if proof.status == "refused"}
        return {"": self.refusal} if self.refusal else found


@cache
def look(name: str, attn_implementation: str | None = None) -> Look:
    """The model run plainly and watched, from the same random state. Kept: several tests ask about one look."""
    species = ZOO[name]
    model, inputs = species.build(attn_implementation)
    with torch.no_grad():
        torch.manual_seed(1)
        plain, after_plain = list(tensors(model(**inputs))), torch.get_rng_state()
        torch.manual_seed(1)
        refusal, trace = "", Trace()
        try:
            with watch(model) as trace:
                watched = list(tensors(model(**inputs)))
        except WatchError as error:
            refusal = str(error)
        random = (after_plain, torch.get_rng_state())
        return Look(
            species, model, inputs, plain, watched, random, trace, refusal,
            getattr(model.config, "_attn_implementation", "eager") in ("eager", None),
        )  # fmt: skip


def tensors(outputs: Any) -> Iterator[Tensor]:
    """Every tensor of what a model returned, caches included."""
    if isinstance(outputs, Tensor):
        yield outputs
    elif isinstance(outputs, dict):
        yield from tensors(list(outputs.values()))
    elif isinstance(outputs, list | tuple):
        for part in outputs:
            yield from tensors(part)
    elif hasattr(outputs, "self_attention_cache"):
        yield from tensors([outputs.self_attention_cache, outputs.cross_attention_cache])
    elif hasattr(outputs, "layers"):
        yield from tensors([vars(layer) for layer in outputs.layers])


def real_rows(layer: Layer, inputs: Inputs) -> Tensor:
    """Which query rows are real tokens, (b, 1, q): by the padding mask that has these sizes; all where none has."""
    b, _, q, _ = layer.weights.shape
    for name in ("attention_mask", "decoder_attention_mask"):
        mask = inputs.get(name)
        if mask is not None and mask.shape == (b, q):
            return mask.bool()[:, None]
    return torch.ones(b, 1, q, dtype=torch.bool)


def by_hand(layer: Layer) -> Tensor | None:
    """The map in float64 from the q and k that the kernel received, one formula; None where it was not asked."""
    source = layer.weights.source
    if not isinstance(source, Computed) or layer.q is None or layer.k is None:
        return None
    q, k = layer.q.double(), layer.k.double()
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * source.scale
    if source.softcap is not None:
        scores = source.softcap * torch.tanh(scores / source.softcap)
    if source.bias is not None:
        scores = scores + source.bias_at(slice(None), slice(None)).double()
    scores = scores.masked_fill(~layer.weights.allowed[...], -torch.inf)
    top = scores.amax(-1, keepdim=True)
    parts = (scores - top).exp()
    total = parts.sum(-1, keepdim=True)
    if source.sink is not None:
        total = total + (source.sink.double() - top).exp()
    return parts / total
