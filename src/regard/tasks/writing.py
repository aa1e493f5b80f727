"""Models that read one sequence and write another: what all such tasks have in common."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import nn

from regard.attention.observe import muted
from regard.data.batches import batches
from regard.data.examples import PairBatch, PairExamples
from regard.data.special import BEGIN, END, PAD, UNKNOWN
from regard.decode import DecodedText, Limits, beam, greedy
from regard.errors import ConfigError
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.t5 import T5Config
from regard.models.translator import POSITIONS, TranslatorConfig
from regard.tasks.model_settings import Hyperparameter, fill_config, with_hyperparameters
from regard.tasks.prepared_examples import PreparedExamples
from regard.training.device import to_device
from regard.training.loss import Loss, smoothed_loss
from regard.training.r_drop import r_drop_loss
from regard.training.settings import Settings

ChooseText = Callable[[Sequence[DecodedText]], DecodedText]  # one of the texts that beams found, which come best first


class PairSettings(Settings):
    """The settings of every task whose examples are pairs of sequences."""

    batch_tokens: int = Field(4096, ge=1, description="tokens per batch, padding included, summed over all processes")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="label smoothing")


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
class WriterSettings(PairSettings):
    """The settings of every task that reads one sequence and writes another, with either kind of model."""

    r_drop: float = Field(
        0.0, ge=0, description="R-Drop: weight of the KL divergence between two passes with other dropout; 0: one pass"
    )
    max_length: int = Field(256, ge=1, description="max tokens per example; longer examples are dropped")
    model: Literal["transformer", "recurrent"] = Field("transformer", description="model type")

    def config(self, source: int, target: int) -> TranslatorConfig | Seq2SeqConfig:
        """The model for vocabularies of these sizes."""
        config: Any = TranslatorConfig if self.model == "transformer" else Seq2SeqConfig
        made: TranslatorConfig | Seq2SeqConfig = fill_config(
            config, self, source_vocab_size=source, target_vocab_size=target
        )
        return made


class PreparedPairs(PreparedExamples):
    """What all prepared tasks have in common whose examples are pairs of sequences."""

    model: nn.Module
    train: PairExamples

    def __init__(
        self, settings: PairSettings, train: PairExamples, validation: PairExamples, *, left_out: int = 0
    ) -> None:
        if isinstance(settings, WriterSettings) and settings.r_drop and not settings.dropout:  # type: ignore[attr-defined]
            raise ConfigError(
                f"r_drop is {settings.r_drop}, but dropout is 0, and both passes would be the same; raise dropout, or "
                "leave r_drop out"
            )
        super().__init__(settings, train, left_out=left_out)
        self.validation = validation

    def collate(self, indices: np.ndarray) -> PairBatch:
        examples, rows = self.find(indices)
        if not len(rows):  # a process without an example still takes part, with one that does not count
            one = examples.collate([0])
            return one._replace(target_out=torch.zeros_like(one.target_out))
        return examples.collate(rows)

    def weight(self, indices: np.ndarray) -> int:
        examples, rows = self.find(indices)
        return int(examples.lengths["target"][rows].sum())

    def count_tokens(self, indices: np.ndarray) -> int:
        return self.weight(indices)

    def loss(self, model: Any, batch: PairBatch) -> Loss:
        """What is minimised; with R-Drop each pair stands in the batch twice, with other dropout each time."""
        source, fed, wanted = batch
        head, smoothing, alpha = (model.head_weight, model.head_bias), self.given.label_smoothing, self.given.r_drop
        if not alpha:
            return smoothed_loss(model.hidden(source, fed), *head, wanted, smoothing=smoothing)
        hidden = model.hidden(source.repeat(2, 1), fed.repeat(2, 1)).unflatten(0, (2, -1))
        return r_drop_loss(hidden, *head, wanted, smoothing=smoothing, alpha=alpha)

    def judge(self, model: Any, batch: PairBatch) -> Loss:
        """The negative log likelihood of what should be said, without smoothing or anything else."""
        source, fed, wanted = batch
        return smoothed_loss(model.hidden(source, fed), model.head_weight, model.head_bias, wanted, smoothing=0.0)

    def validation_loss(self, model: Any) -> float:
        """Mean negative log likelihood of a token that was not learnt from."""
        total, count, device = 0.0, 0, next(model.parameters()).device
        examples = self.validation
        for chosen in batches(examples.lengths, tokens=8192, seed=0, epoch=0):
            found = self.judge(model, to_device(examples.collate(chosen), device))
            total, count = total + float(found.nll), count + found.count
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
    model: Any,
    sources: Sequence[Sequence[int]],
    *,
    beams: int = 1,
    tokens: int = 8192,
    longest: int | None = None,
    choose: ChooseText | None = None,
    **more: Any,
) -> list[DecodedText]:
    """What the model writes for each source (ids, the one that ends a text at their end), free of any target.

    At most `longest` tokens each, or twice as many as the source has and 20. Sources of like length go together, so
    that little is computed for padding. `choose` picks one of the texts that the beams found, best first; without it
    the best is taken.
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
        source = torch.full((len(chosen), len(sources[chosen[-1]])), special.pad)
        for row, i in enumerate(chosen):
            source[row, : len(sources[i])] = torch.as_tensor(sources[i])
        limit = [2 * len(sources[i]) + 20 if longest is None else longest for i in chosen]
        limits = Limits(longest=limit, begin=special.begin, end=special.end, never=special.never)
        with muted():  # who watches is told of all that was written, in one pass
            steps = model.begin(source.to(device))
        if beams == 1:
            found = greedy(steps, len(chosen), limits=limits)
        else:
            texts = beam(steps, len(chosen), beams=beams, best=beams if choose else 1, limits=limits, **more)
            found = [choose(several) if choose else several[0] for several in texts]
        written.update(zip(chosen, found))
        start = stop
    return [written[i] for i in range(len(sources))]
