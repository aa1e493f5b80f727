"""Pre-training: say which words were hidden in two texts, and whether the second follows (Devlin et al. 2019, §3.1).

What a model learns so of plain text alone, `--pretrained RUN` of other tasks goes on from.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from pydantic import Field
from tokenizers import Tokenizer
from torch import Tensor, nn

from regard.data.batches import batches
from regard.data.documents import DocumentSet
from regard.data.examples import RaggedArray
from regard.data.sentence_pairs import PairLayout, SentencePair, SentencePairs
from regard.data.special import PAD
from regard.tasks.encoder import train_tokenizer
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.fill import SHOWN, Fill, FillSettings, PreparedFill
from regard.tasks.language import VALIDATED, TextParts
from regard.tasks.masking import ASKED
from regard.tasks.read_and_written import save_examples
from regard.training.loss import Loss
from regard.training.settings import with_defaults

IGNORED = -100  # the order of a pair that does not count


@with_defaults(steps=6000, split="heading")
class PretrainSettings(FillSettings):
    """The text, and the sizes of a BERT with both of its heads."""

    lowercase: bool = Field(False, description="lowercase the text")


class PretrainBatch(NamedTuple):
    """What a model reads, of which text each token is, what it should say at each position, and of the order."""

    ids: Int[Tensor, "b t"]
    target: Int[Tensor, "b t"]  # PAD where nothing is asked
    types: Int[Tensor, "b t"]
    order: Int[Tensor, " b"]  # 0: the second text follows the first; 1: it is any other; IGNORED: nothing is asked


class PreparedPretrain(PreparedFill):
    """Pairs of texts with hidden words, and a BERT that says which, and whether the second text follows the first."""

    head, token_types = "pretrain", 2
    why_left_out = "documents of one sentence"

    def learn_tokenizer(self, texts: DocumentSet) -> Tokenizer:
        return train_tokenizer(texts, self.given.vocab_size, lowercase=self.given.lowercase)

    def encode(self, texts: TextParts) -> None:
        self.framing = EncoderTokenizer.wrap(self.tokenizer)
        longest = (self.given.context - self.framing.extra) // 2  # of each text
        self.pairs, self.held_pairs = (
            SentencePairs.encode(part, self.tokenizer, longest=longest) for part in (texts.train, texts.validation)
        )
        self.latest = 0, self.pairs.layout(seed=self.given.seed, epoch=0)
        self.held_layout = self.held_pairs.layout(seed=0, epoch=0)
        lengths = self.pairs.lengths(self.latest[1]) + self.framing.extra
        self.examples, self.left_out = len(lengths), self.pairs.left_out
        self.order_weight = ASKED * float(lengths.mean())  # a pair counts as much as the words that are hidden in it

    # An example has the number epoch · sentences + the sentence that its first text begins with.

    def layout_of(self, epoch: int) -> PairLayout:
        """The pairs of an epoch."""
        if self.latest[0] != epoch:
            self.latest = epoch, self.pairs.layout(seed=self.given.seed, epoch=epoch)
        return self.latest[1]

    def batches(self, epoch: int) -> list[np.ndarray]:
        layout, given = self.layout_of(epoch), self.given
        lengths = self.pairs.lengths(layout) + self.framing.extra
        made = batches({"text": lengths}, tokens=given.batch_tokens, seed=given.seed, epoch=epoch)
        return [epoch * self.pairs.sentences + layout.first[rows] for rows in made]

    def read_pairs(self, indices: np.ndarray) -> list[SentencePair]:
        """The pairs with these numbers."""
        pairs = []
        for epoch, sentence in zip(*(part.tolist() for part in np.divmod(indices, self.pairs.sentences))):
            layout = self.layout_of(epoch)
            pairs.append(self.pairs.read(layout, int(np.searchsorted(layout.first, sentence))))
        return pairs

    def collate(self, indices: np.ndarray) -> PretrainBatch:  # type: ignore[override]
        if not len(indices):  # a process without a row still takes part, with one in which nothing counts
            one = self.collate(self.layout_of(0).first[:1])
            return one._replace(target=torch.full_like(one.target, PAD), order=torch.full_like(one.order, IGNORED))
        return self.ask_pairs(self.read_pairs(indices), indices)

    def count_tokens(self, indices: np.ndarray) -> int:
        return sum(len(pair.first) + len(pair.second) + self.framing.extra for pair in self.read_pairs(indices))

    def ask_pairs(self, pairs: Sequence[SentencePair], numbers: np.ndarray) -> PretrainBatch:
        """The hidden words and the order of these pairs; `numbers` say which words are hidden."""
        rows, every = [self.framing.frame(pair.first, pair.second) for pair in pairs], np.arange(len(pairs))
        ids, types = (
            RaggedArray([np.array(getattr(row, name)) for row in rows]).pad(every) for name in ("ids", "types")
        )
        order = torch.tensor([int(not pair.is_next) for pair in pairs])
        return PretrainBatch(*self.ask(ids, numbers), torch.from_numpy(types), order)

    def states(self, model: Any, batch: Any) -> Tensor:
        states: Tensor = model.hidden(batch.ids, batch.types)
        return states

    def loss(self, model: Any, batch: Any) -> Loss:
        """The loss of the hidden words, and that of the order, which together weighs as much; `nll` has the words."""
        states = self.states(model, batch)
        words = self.masked_loss(model, states, batch.target)
        order = F.cross_entropy(model.order(model.pool(states)), batch.order, reduction="sum", ignore_index=IGNORED)
        return words._replace(sum=words.sum + self.order_weight * order)

    def held_batches(self) -> Iterator[Any]:
        layout = self.held_layout
        lengths = self.held_pairs.lengths(layout) + self.framing.extra
        for rows in batches({"text": lengths}, tokens=VALIDATED, seed=0, epoch=0):
            yield self.ask_pairs([self.held_pairs.read(layout, at) for at in rows.tolist()], rows)

    def count_scores(self, model: Any, states: Tensor, batch: Any) -> np.ndarray:
        """Of a batch, to be added up: also how many pairs there are, and are told right."""
        told = model.order(model.pool(states)).argmax(-1)
        pairs = [len(told), int((told == batch.order).sum())]
        return np.concatenate([super().count_scores(model, states, batch), pairs])

    def summarise_scores(self, totals: list[float]) -> dict[str, float]:
        pairs, right = totals[3:]
        return super().summarise_scores(totals) | {"next_sentence": right / pairs}

    def show(self, model: nn.Module, folder: Path) -> None:
        layout = self.held_layout
        pairs = (self.held_pairs.read(layout, at) for at in range(min(SHOWN, len(layout.first))))
        rows = [self.framing.frame(pair.first, pair.second) for pair in pairs]
        save_examples(folder, [self.fill_gap(model, row.ids, row.types) for row in rows])


class Pretrain(Fill):
    """Pre-train: plain text in; a model that others go on from, with `--pretrained`."""

    name, settings, prepared = "pretrain", PretrainSettings, PreparedPretrain
