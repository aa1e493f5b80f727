"""Filling: say which words were hidden in plain text (masked language modelling, Devlin et al. 2019, §3.1)."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from regard.data.batches import batches
from regard.data.byte_level import MASK, RESERVED
from regard.data.special import PAD
from regard.models.bert_config import BertConfig
from regard.tasks.language import VALIDATED, PreparedText, TextBatch, TextSettings, TextTask
from regard.tasks.model_settings import Hyperparameter, fill_config, with_hyperparameters
from regard.tasks.read_and_written import ShownExample, save_examples
from regard.tokens import read
from regard.trace.watch import watch
from regard.training.device import to_device
from regard.training.loss import Loss
from regard.training.settings import with_defaults

ASKED, HIDDEN, REPLACED = 0.15, 0.8, 0.1  # share of tokens that are asked for; of those: hidden, and any other instead
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


def hide_tokens(ids: Int[np.ndarray, " t"], vocabulary: int, seed: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """What a model reads instead of these tokens, and what it should say: PAD where nothing is asked.

    Of all tokens of text 15 % are asked for: 80 % of them are hidden, 10 % are any other token, 10 % stay.
    """
    drawn = np.random.default_rng(seed).random((len(ids), 3))  # a row for each token, however many follow it
    asked = (drawn[:, 0] < ASKED) & (ids >= len(RESERVED))
    other = len(RESERVED) + (drawn[:, 2] * (vocabulary - len(RESERVED))).astype(np.int64)
    instead = np.where(drawn[:, 1] < HIDDEN, MASK, np.where(drawn[:, 1] < HIDDEN + REPLACED, other, ids))
    return np.where(asked, instead, ids), np.where(asked, ids, PAD)


class PreparedFill(PreparedText):
    """Documents with hidden words, each a row of its own so that it sees no other, and a BERT that says which."""

    def __init__(self, settings: FillSettings, folder: Path) -> None:
        super().__init__(settings, folder)
        vocabulary = self.tokenizer.get_vocab_size()
        self.config = fill_config(BertConfig, settings, vocab_size=vocabulary, token_types=1, head="masked_words")
        self.model = self.config.build()
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
            hide_tokens(row, self.config.vocab_size, (self.given.seed, int(index), 2))
            for row, index in zip(ids, indices)
        ]
        return TextBatch(*(torch.from_numpy(np.stack(part)) for part in zip(*some)))

    def answer(self, model: Any, batch: TextBatch) -> tuple[Tensor, Tensor]:
        """Logits (c, n) of the hidden words, and which they were (c,)."""
        asked = batch.target != PAD
        return model.apply_head(model.hidden(batch.ids)[asked]), batch.target[asked]

    def loss(self, model: Any, batch: TextBatch) -> Loss:
        logits, words = self.answer(model, batch)
        lost = F.cross_entropy(logits, words, reduction="sum")
        return Loss(lost, len(words), lost.detach())

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """The loss of a hidden token, its perplexity, and the share that is guessed right at once."""
        total, right, count = 0.0, 0, 0
        device = next(model.parameters()).device
        for rows in batches({"text": self.held_rows.lengths}, tokens=VALIDATED, seed=0, epoch=0):
            batch = self.ask(self.held_rows.pad(rows), rows)
            logits, words = self.answer(model, to_device(batch, device))
            total += float(F.cross_entropy(logits, words, reduction="sum"))
            right, count = right + int((logits.argmax(-1) == words).sum()), count + len(words)
        if not count:
            return {"loss": 0.0, "perplexity": 1.0, "accuracy": 0.0}
        return {"loss": total / count, "perplexity": math.exp(total / count), "accuracy": right / count}

    def show(self, model: nn.Module, folder: Path) -> None:
        count = min(SHOWN, len(self.held.texts.lengths))
        texts = (self.held.texts.document(at)[: self.given.context] for at in range(count))
        save_examples(folder, [self.fill_gap(model, ids) for ids in texts])

    @torch.no_grad()
    def fill_gap(self, model: Any, ids: list[int]) -> ShownExample:
        """A text whose middle token is hidden, what the model says there, and what it attended to."""
        gap = len(ids) // 2
        given = [*ids[:gap], MASK, *ids[gap + 1 :]]
        with watch(model) as trace:
            logits = model(torch.tensor([given], device=next(model.parameters()).device))
        said = [*ids[:gap], int(logits[0, gap].argmax()), *ids[gap + 1 :]]
        tokens = read(self.tokenizer, given)
        for layer in trace.layers:
            layer.queries, layer.keys = (tokens,), (tokens,)
        return ShownExample(tokens.shown, read(self.tokenizer, said).shown, trace)


class Fill(TextTask):
    """Fill gaps: plain text with hidden words in, the words out."""

    name, settings, prepared = "fill", FillSettings, PreparedFill
