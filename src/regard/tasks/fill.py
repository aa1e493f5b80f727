"""Filling: say which words were hidden in plain text (masked language modelling, Devlin et al. 2019, §3.1)."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.data.batches import batches
from regard.data.byte_level import MASK, RESERVED
from regard.data.special import PAD
from regard.models.bert_config import BertConfig
from regard.tasks.language import VALIDATED, PreparedText, TextBatch, TextParts, TextSettings, TextTask
from regard.tasks.masking import find_word_starts, hide_tokens
from regard.tasks.model_settings import Hyperparameter, fill_config, with_hyperparameters
from regard.tasks.read_and_written import ShownExample, save_examples
from regard.tokens import read
from regard.trace.watch import watch
from regard.training.device import to_device
from regard.training.loss import Loss, smoothed_loss
from regard.training.settings import with_defaults

SHOWN = 4  # texts


@with_hyperparameters(
    BertConfig,
    width=Hyperparameter("model width (hidden size)", 160),
    heads=Hyperparameter("attention heads per layer", 5),
    layers=Hyperparameter("number of layers", 4),
    hidden=Hyperparameter("feed-forward size", 560),
    tied=Hyperparameter("tie the output layer to the embeddings"),
    dropout=Hyperparameter("dropout probability", 0.1),
)
@with_defaults(steps=4000, lr=1e-3, warmup_steps=400)
class FillSettings(TextSettings):
    """The text, and the sizes of a BERT."""

    whole_words: bool = Field(False, description="hide whole words instead of single tokens")


class PreparedFill(PreparedText):
    """Documents with hidden words, each a row of its own so that it sees no other, and a BERT that says which."""

    head, token_types = "masked_words", 1  # of the model

    def __init__(self, settings: FillSettings, folder: Path) -> None:
        super().__init__(settings, folder)
        self.config = fill_config(
            BertConfig, settings,
            vocab_size=self.tokenizer.get_vocab_size(), token_types=self.token_types, head=self.head,
        )  # fmt: skip
        self.model = self.config.build()
        self.word_starts = find_word_starts(self.tokenizer) if settings.whole_words else None

    def encode(self, texts: TextParts) -> None:
        super().encode(texts)
        self.rows, self.held_rows = self.train.pieces(), self.held.texts.pieces()

    # An example has the number epoch · rows + row, so that other words are hidden each time that it is read.

    def batches(self, epoch: int) -> list[np.ndarray]:
        given, count = self.given, len(self.rows.lengths)
        made = batches({"text": self.rows.lengths}, tokens=given.batch_tokens, seed=given.seed, epoch=epoch)
        return [epoch * count + rows for rows in made]

    def read(self, indices: np.ndarray) -> np.ndarray:
        return self.rows.pad(indices % len(self.rows.lengths))

    def ask(self, ids: np.ndarray, indices: np.ndarray) -> TextBatch:
        """The hidden words of each row, hidden anew each time it is read in training."""
        some = [
            hide_tokens(row, self.config.vocab_size, (self.given.seed, int(index), 2), self.word_starts)
            for row, index in zip(ids, indices)
        ]
        return TextBatch(*(torch.from_numpy(np.stack(part)) for part in zip(*some)))

    def states(self, model: Any, batch: Any) -> Tensor:
        """The hidden states (b, t, m) of what the model reads."""
        states: Tensor = model.hidden(batch.ids)
        return states

    def masked_loss(self, model: Any, states: Tensor, target: Tensor) -> Loss:
        """The loss of the hidden words; only their states go through the head."""
        asked = target != PAD
        x, table = model.words.transform(states[asked]), model.words.choose_table(model.embed.weight)
        return smoothed_loss(x, table, model.words.bias, target[asked], smoothing=0.0, pad=PAD)

    def loss(self, model: Any, batch: Any) -> Loss:
        return self.masked_loss(model, self.states(model, batch), batch.target)

    def held_batches(self) -> Iterator[Any]:
        """What the model is judged by, always the same."""
        for rows in batches({"text": self.held_rows.lengths}, tokens=VALIDATED, seed=0, epoch=0):
            yield self.ask(self.held_rows.pad(rows), rows)

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """The loss of a hidden token in nats, its perplexity, and the share that is guessed right at once."""
        device = next(model.parameters()).device
        given = (to_device(batch, device) for batch in self.held_batches())
        totals: Any = sum(self.count_scores(model, self.states(model, batch), batch) for batch in given)
        return self.summarise_scores(totals.tolist())

    def count_scores(self, model: Any, states: Tensor, batch: Any) -> np.ndarray:
        """Of a batch, to be added up: the loss, and how many words are hidden, and are guessed at once."""
        asked = batch.target != PAD
        words, logits = batch.target[asked], model.words(states[asked], model.embed.weight)
        lost = F.cross_entropy(logits, words, reduction="sum")
        return np.array([float(lost), len(words), int((logits.argmax(-1) == words).sum())])

    def summarise_scores(self, totals: list[float]) -> dict[str, float]:
        """Scores from the sums of all batches."""
        loss, count, right = totals[:3]
        if not count:
            return {"loss": 0.0, "perplexity": 1.0, "accuracy": 0.0}
        return {"loss": loss / count, "perplexity": math.exp(loss / count), "accuracy": right / count}

    def show(self, model: nn.Module, folder: Path) -> None:
        count = min(SHOWN, len(self.held.texts.lengths))
        texts = (self.held.texts.document(at)[: self.given.context] for at in range(count))
        save_examples(folder, [self.fill_gap(model, ids) for ids in texts])

    @torch.no_grad()
    def fill_gap(self, model: Any, ids: list[int], types: list[int] | None = None) -> ShownExample:
        """A text whose middle word is hidden, what the model says there, and what it attended to."""
        places = [at for at, token in enumerate(ids) if token >= len(RESERVED)] or [len(ids) // 2]
        gap = places[len(places) // 2]
        given = [*ids[:gap], MASK, *ids[gap + 1 :]]
        rows = [None if row is None else torch.tensor([row]) for row in (given, types)]
        with watch(model) as trace:
            states = model.hidden(*to_device(rows, next(model.parameters()).device))
        words = model.words(states[0, gap], model.embed.weight)
        said = [*ids[:gap], int(words.argmax()), *ids[gap + 1 :]]
        tokens = read(self.tokenizer, given)
        for layer in trace.layers:
            layer.queries, layer.keys = (tokens,), (tokens,)
        return ShownExample(tokens.shown, read(self.tokenizer, said).shown, trace)


class Fill(TextTask):
    """Fill gaps: plain text with hidden words in, the words out."""

    name, prepared = "fill", PreparedFill
    settings: type[TextSettings] = FillSettings

    def next_command(self, run: str) -> str:
        return f'fill "The [MASK] sat on the mat." --model {run}'
