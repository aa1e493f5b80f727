"""Induction: continue a random string that repeats.

It takes two attention layers, one after the other: a head that tells each token which came before it, and one that
looks for a token that came after the present one (Elhage et al. 2021; Olsson et al. 2022, arXiv 2209.11895).
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from pydantic import Field
from torch import Tensor, nn

from regard.data import repeats
from regard.data.repeats import SEPARATORS, Repeats
from regard.models import GPTConfig, store
from regard.models.gpt import POSITIONS
from regard.tasks.base import BaseTask
from regard.tasks.head_scores import accuracy, head_scores
from regard.tasks.model_settings import Hyperparameter, fill_config, with_hyperparameters
from regard.tasks.read_and_written import ShownExample, save_examples
from regard.tokens import Tokens
from regard.trace.watch import watch
from regard.training.loss import Loss
from regard.training.settings import Settings, with_defaults
from regard.training.task import Better

ABOUT = (
    "Two layers of attention, nothing else, that continue what repeats: a previous-token head, then induction heads."
)
MOST_WORDS = len(repeats.VOCABULARY)
SHOWN = 3  # sequences, each of at most so many tokens:
SHOWN_LENGTH = 32


@with_hyperparameters(
    GPTConfig,
    vocab_size=Hyperparameter("number of distinct tokens", MOST_WORDS, least=5, most=MOST_WORDS),
    width=Hyperparameter("model width (hidden size)", 64),
    heads=Hyperparameter("attention heads per layer", 4),
    layers=Hyperparameter("number of layers", 2),
    context=Hyperparameter("length of a sequence", 256, least=4),
    positions=Hyperparameter("position encoding", "rotary", choices=POSITIONS),
    hidden=Hyperparameter("feed-forward size; 0: attention only", 0, least=0),
    tied=Hyperparameter("tie the output layer to the embeddings", default=False),
    dropout="dropout probability",
)
@with_defaults(steps=1200, lr=3e-3, warmup_steps=100, eval_every=200, save_every=400)
class InductionSettings(Settings):
    """The sizes of a GPT, and how long its sequences are.

    By default it is attention alone, with a head of its own: where the embeddings are the head, a token that looks at
    itself says itself, and that has to be unlearned first.
    """

    batch_tokens: int = Field(2048, ge=4, description="tokens per batch, summed over all processes")
    stage_steps: int = Field(
        400, ge=1, description="steps before sequences double in length: a quarter of the context, half, all of it"
    )

    def config(self) -> GPTConfig:
        """The model of these sizes."""
        return fill_config(GPTConfig, self)


class PreparedInduction:
    """Sequences that repeat, an endless list of them, and a GPT.

    An epoch has `stage_steps` updates. Sequences are short in the first epochs: in long ones a repeat is so far away
    that two heads which have found nothing yet do not find it.
    """

    better = Better("accuracy")
    left_out = 0

    def __init__(self, settings: InductionSettings) -> None:
        self.given = settings
        self.config = settings.config()
        self.words = (*repeats.VOCABULARY[: self.config.vocab_size - len(SEPARATORS)], *SEPARATORS)
        self.model: nn.Module = self.config.build()
        self.examples = sum(self.rows_of(step // settings.stage_steps) for step in range(settings.steps))
        self.sequence = lru_cache(maxsize=4096)(self.make_sequence)

    def __getstate__(self) -> dict[str, Any]:  # a cache cannot be sent to a process that loads data
        return {name: value for name, value in vars(self).items() if name != "sequence"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, sequence=lru_cache(maxsize=4096)(self.make_sequence))

    def length_of(self, epoch: int) -> int:
        """How long the sequences of an epoch are."""
        return max(4, self.config.context >> max(0, 2 - epoch))

    def rows_of(self, epoch: int) -> int:
        """How many sequences an update of an epoch has."""
        return max(1, self.given.batch_tokens // self.length_of(epoch))

    def first_of(self, epoch: int) -> int:
        """The number of the first sequence of an epoch."""
        return self.given.stage_steps * sum(self.rows_of(before) for before in range(epoch))

    def make_sequence(self, index: int) -> Repeats:
        epoch = sum(index >= self.first_of(after) for after in (1, 2))
        return repeats.sequence(
            index, length=self.length_of(epoch), vocabulary=self.config.vocab_size, seed=self.given.seed
        )

    def batches(self, epoch: int) -> list[np.ndarray]:
        first, count = self.first_of(epoch), self.given.stage_steps * self.rows_of(epoch)
        return np.split(np.arange(first, first + count), self.given.stage_steps)

    def parts(self, indices: np.ndarray, count: int) -> list[np.ndarray]:
        return np.array_split(indices, count)

    def collate(self, indices: np.ndarray) -> Repeats:
        if not len(indices):  # a process without a sequence still takes part, with one in which nothing counts
            one = self.sequence(0)
            return Repeats(one.ids[None], torch.zeros_like(one.known)[None])
        some = [self.sequence(int(index)) for index in indices]
        return Repeats(torch.stack([one.ids for one in some]), torch.stack([one.known for one in some]))

    def weight(self, indices: np.ndarray) -> int:
        return max(1, sum(int(self.sequence(int(index)).known.sum()) for index in indices))

    def count_tokens(self, indices: np.ndarray) -> int:
        return self.weight(indices)

    def loss(self, model: nn.Module, batch: Repeats) -> Loss:
        """Of the tokens that can be known: the others are noise, and hide at first the little that there is to find."""
        ids, known = batch  # b t each
        logits = model(ids[:, :-1])  # b t n
        lost = F.cross_entropy(logits[known[:, 1:]], ids[:, 1:][known[:, 1:]], reduction="sum")
        return Loss(lost, int(known.sum()), lost.detach())

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Shares of what can be known that the model knows, and the strongest head of each kind."""
        scores = score(model, self.config)
        strongest = {name: max(map(max, scores[name])) for name in ("previous", "induction")}
        return {"accuracy": scores["accuracy"], "accuracy_clean": scores["accuracy_clean"], **strongest}

    def show(self, model: nn.Module, folder: Path) -> None:
        length = min(self.config.context, SHOWN_LENGTH)
        sequences = repeats.batch(range(SHOWN), length=length, vocabulary=self.config.vocab_size, clean=True).ids
        save_examples(folder, [show_sequence(model, ids[None], self.words) for ids in sequences])

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        card = {"name": "induction", "about": ABOUT, "vocabulary": list(self.words)}
        store.write(folder, model, self.config, facts | card | {"scores": score(model, self.config)})


def score(model: nn.Module, config: GPTConfig) -> dict[str, Any]:
    """The scores of a model on sequences that training never shows; see `accuracy` and `head_scores`."""
    length, vocabulary = config.context, config.vocab_size
    return {
        "accuracy": accuracy(model, length=length, vocabulary=vocabulary),
        "accuracy_clean": accuracy(model, length=length, vocabulary=vocabulary, clean=True),
        **head_scores(model, period=min(50, length // 2, vocabulary), vocabulary=vocabulary),
    }


def show_sequence(model: nn.Module, ids: Int[Tensor, "1 t"], words: Sequence[str]) -> ShownExample:
    """One sequence, which token the model expects after each, and what it attended to."""
    device = next(model.parameters()).device
    with watch(model) as trace:
        logits = model(ids.to(device))
    read = [words[token] for token in ids[0].tolist()]
    tokens = Tokens(tuple(read))
    for layer in trace.layers:
        layer.queries, layer.keys = (tokens,), (tokens,)
    return ShownExample(read, [words[token] for token in logits[0].argmax(-1).tolist()], trace)


class Induction(BaseTask):
    """Continue what repeats, by a previous-token head and induction heads."""

    name, settings = "induction", InductionSettings

    def prepare(self, settings: InductionSettings, folder: Path) -> PreparedInduction:
        return PreparedInduction(settings)
