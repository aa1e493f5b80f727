"""Models that read one sequence and write another: what all such tasks have in common."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import nn

from regard.attention.observe import muted
from regard.data.batches import batches, share
from regard.data.examples import PairBatch, PairExamples
from regard.data.special import BEGIN, END, PAD, UNKNOWN
from regard.decode import DecodedText, Limits, beam, greedy
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.t5 import T5Config
from regard.models.translator import POSITIONS, TranslatorConfig
from regard.tasks.model_settings import Hyperparameter, fill_config, with_hyperparameters
from regard.training.device import to_device
from regard.training.loss import Loss, smoothed_loss
from regard.training.settings import Settings


@with_hyperparameters(
    TranslatorConfig,
    Seq2SeqConfig,
    width=Hyperparameter("model width (hidden size)", 128),
    heads=Hyperparameter("attention heads per layer (transformer)", 4),
    layers=Hyperparameter("number of encoder layers, and of decoder layers", 4),
    hidden=Hyperparameter("feed-forward size (transformer)", 256),
    dropout=Hyperparameter("dropout probability", 0.1),
    order=Hyperparameter("pre- or post-layer-norm blocks (transformer)", choices=("pre", "post")),
    positions=Hyperparameter("position encoding (transformer)", choices=POSITIONS),
    attention=Hyperparameter("score function: scaled dot, …; recurrent: additive, dot, general, none", ""),
    cell=Hyperparameter("recurrent cell (recurrent)", choices=("gru", "lstm")),
    bidirectional="bidirectional encoder (recurrent)",
    input_feeding=Hyperparameter("feed the previous attention output into the next step (recurrent)", default=False),
    tied="tie the output layer to the target embeddings",
    shared="share one vocabulary and its embeddings between source and target",
)
class WriterSettings(Settings):
    """The settings of every task that reads one sequence and writes another."""

    batch_tokens: int = Field(4096, ge=1, description="tokens per batch, padding included, summed over all processes")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="label smoothing")
    max_length: int = Field(256, ge=1, description="max tokens per example; longer examples are dropped")
    model: Literal["transformer", "recurrent"] = Field("transformer", description="model type")

    def config(self, source: int, target: int) -> TranslatorConfig | Seq2SeqConfig:
        """The model for vocabularies of these sizes."""
        config: Any = TranslatorConfig if self.model == "transformer" else Seq2SeqConfig
        made: TranslatorConfig | Seq2SeqConfig = fill_config(
            config, self, source_vocab_size=source, target_vocab_size=target
        )
        return made


class PreparedPairs:
    """What all prepared tasks have in common whose examples are pairs of sequences."""

    model: nn.Module

    def __init__(
        self, settings: WriterSettings, train: PairExamples, validation: PairExamples, *, left_out: int = 0
    ) -> None:
        self.given, self.train, self.validation = settings, train, validation
        self.examples, self.left_out = len(train), left_out + train.dropped

    def batches(self, epoch: int) -> list[np.ndarray]:
        settings = self.given
        return batches(self.train.lengths, tokens=settings.batch_tokens, seed=settings.seed, epoch=epoch)

    def parts(self, indices: np.ndarray, count: int) -> list[np.ndarray]:
        if count == 1:
            return [indices]
        lengths = np.add.reduce(list(self.train.lengths.values()))
        return [share(indices, rank, count, lengths) for rank in range(count)]

    def collate(self, indices: np.ndarray) -> PairBatch:
        if not len(indices):  # a process without an example still takes part, with one that does not count
            one = self.train.collate([0])
            return one._replace(target_out=torch.zeros_like(one.target_out))
        return self.train.collate(indices)

    def weight(self, indices: np.ndarray) -> int:
        return int(self.train.lengths["target"][indices].sum())

    def loss(self, model: Any, batch: PairBatch, smoothing: float | None = None) -> Loss:
        source, fed, wanted = batch
        hidden = model.hidden(source, fed)
        smoothing = self.given.label_smoothing if smoothing is None else smoothing
        return smoothed_loss(hidden, model.head_weight, model.head_bias, wanted, smoothing=smoothing)

    def validation_loss(self, model: nn.Module) -> float:
        """Mean negative log likelihood of a token that was not learnt from."""
        total, count, device = 0.0, 0, next(model.parameters()).device
        examples = self.validation
        for chosen in batches(examples.lengths, tokens=8192, seed=0, epoch=0):
            found = self.loss(model, to_device(examples.collate(chosen), device), smoothing=0.0)
            total, count = total + float(found.nll), count + int(examples.lengths["target"][chosen].sum())
        return total / max(1, count)


class WritingIds(NamedTuple):
    """The ids that begin and end what a model writes and fill up what it reads, and those that it never says."""

    begin: int = BEGIN
    end: int = END
    pad: int = PAD
    never: tuple[int, ...] = (PAD, BEGIN)
    unknown: int | None = UNKNOWN  # what stands for a word that the vocabulary lacks


def writing_ids(model: Any) -> WritingIds:
    """Those of our own vocabularies, or what the config of a T5 says.

    >>> from regard.models import T5Config
    >>> writing_ids(T5Config(vocab_size=11, width=8, heads=2, layers=1).build())
    WritingIds(begin=0, end=1, pad=0, never=(0,), unknown=None)
    """
    config = getattr(model, "config", None)
    if isinstance(config, T5Config):
        never = tuple(sorted({config.pad, config.begin} - {config.end}))
        return WritingIds(config.begin, config.end, config.pad, never, unknown=None)
    return WritingIds()


@torch.inference_mode()
def write(
    model: Any, sources: Sequence[Sequence[int]], *, beams: int = 1, tokens: int = 8192, **more: Any
) -> list[DecodedText]:
    """What the model writes for each source (ids, the one that ends a text at their end), free of any target.

    Sources of like length go together, so that little is computed for padding.
    """
    written: dict[int, DecodedText] = {}
    device, special = next(model.parameters()).device, writing_ids(model)
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
        source = torch.full((len(chosen), longest), special.pad)
        for row, i in enumerate(chosen):
            source[row, : len(sources[i])] = torch.as_tensor(sources[i])
        longest_written = [2 * len(sources[i]) + 20 for i in chosen]
        limits = Limits(longest=longest_written, begin=special.begin, end=special.end, never=special.never)
        with muted():  # who watches is told of all that was written, in one pass
            steps = model.begin(source.to(device))
        if beams == 1:
            found = greedy(steps, len(chosen), limits=limits)
        else:
            found = [best[0] for best in beam(steps, len(chosen), beams=beams, limits=limits, **more)]
        written.update(zip(chosen, found))
        start = stop
    return [written[i] for i in range(len(sources))]
