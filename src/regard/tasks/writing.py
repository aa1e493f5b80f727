"""Models that read one sequence and write another: what all such tasks have in common."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from regard.attention.observe import muted
from regard.data.batches import batches, share
from regard.data.examples import Batch, Examples
from regard.decode import Decoded, Limits, beam, greedy
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.translator import TranslatorConfig
from regard.training.device import moved
from regard.training.loss import Loss, smoothed_loss
from regard.training.settings import Settings


class WriterSettings(Settings):
    """The sizes of a model that reads and writes."""

    model: Literal["transformer", "recurrent"] = Field("transformer", description="model type")
    width: int = Field(128, ge=1, description="model width (hidden size)")
    heads: int = Field(4, ge=1, description="attention heads per layer (transformer)")
    layers: int = Field(4, ge=1, description="number of encoder layers, and of decoder layers")
    hidden: int = Field(256, ge=1, description="feed-forward size (transformer)")
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout probability")
    order: Literal["pre", "post"] = Field("pre", description="pre- or post-layer-norm blocks (transformer)")
    positions: Literal["sinusoid", "learned", "rotary", "alibi", "none"] = Field(
        "sinusoid", description="position encoding (transformer)"
    )
    attention: str = Field("", description="score function: scaled dot, …; recurrent: additive, dot, general, none")
    cell: Literal["gru", "lstm"] = Field("gru", description="recurrent cell (recurrent)")
    bidirectional: bool = Field(True, description="bidirectional encoder (recurrent)")
    input_feeding: bool = Field(False, description="feed the previous attention output into the next step (recurrent)")
    tied: bool = Field(True, description="tie the output layer to the target embeddings")
    shared: bool = Field(False, description="share one vocabulary and its embeddings between source and target")
    max_length: int = Field(256, ge=1, description="max tokens per example; longer examples are dropped")

    def sizes(self, source: int, target: int) -> TranslatorConfig | Seq2SeqConfig:
        """The model for vocabularies of these sizes."""
        if self.model == "transformer":
            return TranslatorConfig(
                source_vocabulary=source,
                target_vocabulary=target,
                width=self.width,
                heads=self.heads,
                layers=self.layers,
                hidden=self.hidden,
                dropout=self.dropout,
                order=self.order,
                positions=self.positions,
                attention=self.attention or "scaled dot",
                shared=self.shared,
                tied=self.tied,
            )
        return Seq2SeqConfig(
            source_vocabulary=source,
            target_vocabulary=target,
            width=self.width,
            layers=self.layers,
            cell=self.cell,
            bidirectional=self.bidirectional,
            attention=self.attention or "additive",
            input_feeding=self.input_feeding,
            dropout=self.dropout,
            tied=self.tied,
            shared=self.shared,
        )


class PreparedPairs:
    """What all prepared tasks have in common whose examples are pairs of sequences."""

    model: nn.Module

    def __init__(self, settings: WriterSettings, train: Examples, validation: Examples, *, left_out: int = 0) -> None:
        self.given, self.train, self.validation = settings, train, validation
        self.examples, self.left_out = len(train), left_out + train.dropped

    def batches(self, epoch: int) -> list[np.ndarray]:
        examples, settings = self.train, self.given
        return batches(
            examples.source_lengths,
            examples.target_lengths,
            tokens=settings.batch_tokens,
            seed=settings.seed,
            epoch=epoch,
        )

    def parts(self, indices: np.ndarray, count: int) -> list[np.ndarray]:
        if count == 1:
            return [indices]
        lengths = self.train.source_lengths + self.train.target_lengths
        return [share(indices, rank, count, lengths) for rank in range(count)]

    def collate(self, indices: np.ndarray) -> Batch:
        if not len(indices):  # a process without an example still takes part, with one that does not count
            one = self.train.collate([0])
            return one._replace(target_out=torch.zeros_like(one.target_out))
        return self.train.collate(indices)

    def weight(self, indices: np.ndarray) -> int:
        return int(self.train.target_lengths[indices].sum())

    def loss(self, model: Any, batch: Batch, smoothing: float | None = None) -> Loss:
        source, fed, wanted = batch
        hidden = model.hidden(source, fed)
        smoothing = self.given.label_smoothing if smoothing is None else smoothing
        return smoothed_loss(hidden, model.head_weight, model.head_bias, wanted, smoothing=smoothing)

    def validation_loss(self, model: nn.Module) -> float:
        """Mean negative log likelihood of a token that was not learnt from."""
        total, count, device = 0.0, 0, next(model.parameters()).device
        examples = self.validation
        for chosen in batches(examples.source_lengths, examples.target_lengths, tokens=8192, seed=0, epoch=0):
            found = self.loss(model, moved(examples.collate(chosen), device), smoothing=0.0)
            total, count = total + float(found.nll), count + int(examples.target_lengths[chosen].sum())
        return total / max(1, count)


@torch.inference_mode()
def write(
    model: Any, sources: Sequence[Sequence[int]], *, beams: int = 1, tokens: int = 8192, **more: Any
) -> list[Decoded]:
    """What the model writes for each source (ids that end in END), free of any target.

    Sources of like length go together, so that little is computed for padding.
    """
    written: dict[int, Decoded] = {}
    device = next(model.parameters()).device
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    start = 0
    while start < len(order):
        stop = start
        while stop < len(order) and (stop + 1 - start) * len(sources[order[stop]]) * beams <= max(
            tokens, len(sources[order[stop]]) * beams
        ):
            stop += 1
        chosen = order[start:stop]
        longest = len(sources[chosen[-1]])
        source = torch.zeros(len(chosen), longest, dtype=torch.long)
        for row, i in enumerate(chosen):
            source[row, : len(sources[i])] = torch.as_tensor(sources[i])
        limits = Limits(longest=[2 * len(sources[i]) + 20 for i in chosen])
        with muted():  # who watches is told of all that was written, in one pass
            steps = model.begin(source.to(device))
        if beams == 1:
            found = greedy(steps, len(chosen), limits=limits)
        else:
            found = [best[0] for best in beam(steps, len(chosen), beams=beams, limits=limits, **more)]
        written.update(zip(chosen, found))
        start = stop
    return [written[i] for i in range(len(sources))]
