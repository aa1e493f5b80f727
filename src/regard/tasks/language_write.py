"""Writing: say what comes next in plain text, and so write on (causal language modelling, Radford et al. 2019)."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.attention.observe import muted
from regard.data.special import BEGIN, END, PAD
from regard.decode import Limits, greedy
from regard.models import GPTConfig
from regard.models.gpt import POSITIONS
from regard.tasks.language import VALIDATED, PreparedText, TextBatch, TextSettings, TextTask
from regard.tasks.model_settings import Hyperparameter, fill_config, with_hyperparameters
from regard.tasks.read_and_written import ShownExample, save_examples
from regard.tokens import read
from regard.trace.watch import watch
from regard.training.device import to_device
from regard.training.loss import Loss, smoothed_loss
from regard.training.settings import with_defaults

SHOWN = 4  # texts, each begun with so many tokens and written on by at most so many:
BEGUN, WRITTEN = 4, 28


@with_hyperparameters(
    GPTConfig,
    width=Hyperparameter("model width (hidden size)", 160),
    heads=Hyperparameter("attention heads per layer", 5),
    layers=Hyperparameter("number of layers", 4),
    hidden=Hyperparameter("feed-forward size", 416, least=0),
    positions=Hyperparameter("position encoding", "rotary", choices=POSITIONS),
    activation=Hyperparameter("activation of the feed-forward network", "swiglu"),
    norm=Hyperparameter("normalisation", "rms", choices=("layer", "rms")),
    bias=Hyperparameter("biases in projections and norms", default=False),
    tied=Hyperparameter("tie the output layer to the embeddings"),
    dropout=Hyperparameter("dropout probability", 0.1),
)
@with_defaults(steps=3000, lr=3e-3, warmup_steps=200)
class WriteSettings(TextSettings):
    """The text, and the sizes of a GPT."""


class PreparedWrite(PreparedText):
    """Packed text, and a GPT that says at each position what comes next."""

    def __init__(self, settings: WriteSettings, folder: Path) -> None:
        super().__init__(settings, folder)
        self.config = fill_config(GPTConfig, settings, vocab_size=self.tokenizer.get_vocab_size())
        self.model = self.config.build()
        self.latest: tuple[int, np.ndarray] | None = None  # the order of the documents in an epoch

    # A row has the number epoch · rows + place, so that its number alone says what stands in it.

    def batches(self, epoch: int) -> list[np.ndarray]:
        random = np.random.default_rng((self.given.seed, epoch, 1))
        rows = epoch * self.train.rows + random.permutation(self.train.rows)
        each = max(1, self.given.batch_tokens // self.given.context)
        return np.split(rows, range(each, len(rows), each))

    def order_of(self, epoch: int) -> np.ndarray:
        """How the documents follow each other in an epoch."""
        if self.latest is None or self.latest[0] != epoch:
            random = np.random.default_rng((self.given.seed, epoch))
            self.latest = epoch, random.permutation(len(self.train.lengths))
        return self.latest[1]

    def read(self, indices: np.ndarray) -> np.ndarray:
        """The tokens of these rows, (b, context + 1)."""
        epochs, rows = np.divmod(indices, self.train.rows)
        ids = np.empty((len(indices), self.train.context + 1), dtype=np.int64)
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            ids[here] = self.train.read(rows[here], self.order_of(epoch))
        return ids

    def ask(self, ids: np.ndarray, indices: np.ndarray) -> TextBatch:
        """The next token at each position, but for the beginning of a document, which no text has."""
        target = torch.from_numpy(ids[:, 1:])
        return TextBatch(torch.from_numpy(ids[:, :-1]), torch.where(target == BEGIN, PAD, target))

    def loss(self, model: Any, batch: TextBatch) -> Loss:
        hidden, weight = model.hidden(batch.ids), model.head_weight
        return smoothed_loss(hidden, weight, model.head_bias, batch.target, smoothing=0.0, pad=PAD)

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """The loss of a token, and the perplexity of a token, of a word, and bits per byte.

        The likelihood is that of all tokens and of the end of each document, each given what stands before it in its
        row of `context` tokens. Words stand between white space, and the end of a document counts as one; bytes are
        those of the text in UTF-8.
        """
        total, count = 0.0, 0
        device, rows = next(model.parameters()).device, np.arange(self.held.texts.rows)
        each = max(1, VALIDATED // self.given.context)
        for some in np.split(rows, range(each, len(rows), each)):
            found = self.loss(model, to_device(self.ask(self.held.texts.read(some), some), device))
            total, count = total + float(found.nll), count + found.count
        return {
            "loss": total / count,
            "perplexity": math.exp(total / count),
            "word_perplexity": math.exp(total / self.held.words),
            "bits_per_byte": total / math.log(2) / self.held.bytes,
        }

    def show(self, model: nn.Module, folder: Path) -> None:
        count = min(SHOWN, len(self.held.texts.lengths))
        begun = [self.held.texts.document(at)[:-1][: BEGUN + 1] for at in range(count)]
        save_examples(folder, [self.write_on(model, ids) for ids in begun])

    @torch.no_grad()
    def write_on(self, model: Any, begun: list[int]) -> ShownExample:
        """What the model writes after a beginning, most likely token by token, and what it attended to."""
        ids = torch.tensor([begun], device=next(model.parameters()).device)
        with muted():
            [written] = greedy(model.begin(ids), 1, limits=Limits(longest=min(WRITTEN, self.room(begun)), end=END))
        whole = [*begun, *written.ids]
        with watch(model) as trace:
            model(torch.tensor([whole], device=ids.device))
        tokens = read(self.tokenizer, whole)
        for layer in trace.layers:
            layer.queries, layer.keys = (tokens,), (tokens,)
        return ShownExample(tokens.shown[: len(begun)], tokens.shown[len(begun) :], trace)

    def room(self, begun: list[int]) -> int:
        """How many tokens fit after a beginning."""
        return max(0, self.given.context - len(begun) - 1)


class Write(TextTask):
    """Write on: plain text in, what comes next out."""

    name, settings, prepared = "write", WriteSettings, PreparedWrite

    def next_command(self, run: str) -> str:
        return f'generate {run} "A man"'
