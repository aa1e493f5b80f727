"""Embedding: texts that belong together get vectors that lie together (Reimers & Gurevych 2019, Gao et al. 2021)."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.data.documents import split_paths
from regard.data.text_pairs import TextPair, TextPairs, drop_words, hold_out_pairs, read_text_pairs, tell_unread
from regard.errors import DataError
from regard.models import store
from regard.models.pooling import POOLINGS
from regard.models.read_tokenizer import TOKENIZER
from regard.models.sentence_encoder import SentenceEncoderConfig
from regard.tasks.base import BaseTask, EvaluationOptions
from regard.tasks.contrastive_batches import ContrastiveBatch, EncodedPairs
from regard.tasks.contrastive_loss import NONE, pair_loss
from regard.tasks.encoder import EncoderSettings, make_encoder
from regard.tasks.language import must_be_there
from regard.tasks.model_settings import Hyperparameter, with_hyperparameters
from regard.tasks.nearest import nearest
from regard.tasks.read_and_written import ShownExample, save_examples
from regard.tasks.retrieval_scores import correlate_ranks, score_retrieval
from regard.tasks.sentence_vectors import encode_rows
from regard.tokens import read
from regard.trace.watch import watch
from regard.training.gather_rows import gather_rows
from regard.training.loss import Loss
from regard.training.settings import settings_from, with_defaults
from regard.training.task import Better

SHOWN = 4  # texts


@with_hyperparameters(
    SentenceEncoderConfig,
    pooling=Hyperparameter("how the tokens of a text become one vector", choices=POOLINGS),
)
@with_defaults(max_length=128, lr=5e-4, warmup_steps=100)
class EmbedSettings(EncoderSettings):
    """Which texts belong together, and how they are learned from."""

    data: str = Field(
        "",
        description="training data: pairs (.tsv, .csv, .jsonl with text, other and perhaps negative), or a text file "
        "with one text per line; several as 'a.tsv,b.txt'",
    )
    validation: str = Field("", description="validation data, in the same form; by default a part of data")
    validation_size: int = Field(
        0, ge=0, description="pairs held out for validation, without a file; 0 is a tenth, at most 500"
    )
    min_score: float = Field(0.0, description="where data has scores: pairs with a lower one are not learned from")
    batch_pairs: int = Field(64, ge=2, description="pairs per batch, summed over all processes; each sees all others")
    temperature: float = Field(0.05, gt=0, description="what cosines are divided by")
    batch_tokens: int = Field(1024, ge=1, description="tokens encoded at once at validations, padding included")


def parts_of(settings: EmbedSettings) -> tuple[TextPairs, TextPairs]:
    """What to learn from, and what to be judged by: pairs, made of single texts where there is nothing else."""
    pairs = read_text_pairs(split_paths(settings.data))
    if settings.validation:
        train, held = pairs, read_text_pairs(split_paths(settings.validation))
    else:
        train, held = hold_out_pairs(pairs, settings.validation_size, seed=settings.seed)
    some = [pair for pair in train if pair.score is None or pair.score >= settings.min_score]
    if len(some) < 2:
        raise DataError(
            f"{len(some)} pairs came to learn from, but each needs others to be told from; give two or more"
        )
    if all(pair.single for pair in held):
        held = TextPairs(TextPair(pair.text, thin) for pair in held if (thin := drop_words(pair.text)))
    else:
        held = TextPairs(pair for pair in held if not pair.single)
    if not held:
        raise DataError("no text to validate by has more than three words; give pairs, or longer texts")
    return TextPairs(some, train.skipped + len(train) - len(some)), held


class PreparedEmbed:
    """Pairs of texts, and a sentence encoder that tells which belong together."""

    why_left_out = "a text is empty"

    def __init__(self, settings: EmbedSettings, folder: Path) -> None:
        self.given = settings
        train, held = parts_of(settings)
        texts = (text for pair in train for text in {pair.text, pair.other, pair.negative} if text)
        made = make_encoder(
            SentenceEncoderConfig, settings, folder, texts,
            pooling=settings.pooling,  # type: ignore[attr-defined]
        )  # fmt: skip
        self.tokens, self.config, self.model = made
        self.train, self.held = (EncodedPairs(self.tokens, part, settings.max_length) for part in (train, held))
        self.examples, self.left_out = len(train), train.skipped
        self.notices = tell_unread(split_paths(settings.data))
        scores = [pair.score for pair in held]
        self.scores = np.asarray(scores, dtype=np.float64) if None not in scores else None
        self.better = Better("mrr@10" if self.scores is None else "spearman")

    def batches(self, epoch: int) -> list[np.ndarray]:
        return self.train.batches(self.given.batch_pairs, seed=self.given.seed, epoch=epoch)

    def parts(self, indices: np.ndarray, count: int) -> list[np.ndarray]:
        """One part for each process. Micro-batches are no parts: a pair is told from all others of the batch."""
        world = count // self.given.gradient_accumulation
        return [*self.train.shares(indices, world), *[indices[:0]] * (count - world)]

    def collate(self, indices: np.ndarray) -> ContrastiveBatch:
        return self.train.collate(indices, self.given.gradient_accumulation)

    def weight(self, indices: np.ndarray) -> int:
        return len(indices)

    def count_tokens(self, indices: np.ndarray) -> int:
        return int(self.train.tokens[indices].sum())

    def loss(self, model: Any, batch: ContrastiveBatch) -> Loss:
        """Sums over the pairs of this process; the wrong answers are those of all processes.

        With micro-batches, what was computed for one is thrown away and computed again for its gradients, with the same
        dropout: memory is that of one, and the gradients are exact.
        """
        vectors = torch.cat([self.encode(model, *piece) for piece in batch.pieces])[batch.places]  # n m
        own = stack_pairs(vectors, batch.said)  # b 3 m
        every, start = gather_rows(own)
        texts, _ = gather_rows(batch.said)
        total = pair_loss(own, batch.said, every, texts, start=start, temperature=self.given.temperature)
        return Loss(total, len(own), total.detach())

    def encode(self, model: Any, ids: Int[Tensor, "b t"], lengths: Int[Tensor, " b"]) -> Float[Tensor, "b m"]:
        if self.given.gradient_accumulation == 1 or not torch.is_grad_enabled():
            return model(ids, lengths=lengths)
        return checkpoint(model, ids, lengths=lengths, use_reentrant=False)

    @torch.no_grad()
    def validate(self, model: Any) -> dict[str, float]:
        """Whether a text finds its other among all others, and the loss; with scores, whether cosines go with them."""
        vectors = nn.functional.normalize(encode_rows(model, self.held.rows, batch_tokens=self.given.batch_tokens))
        pairs = torch.from_numpy(self.held.pairs)
        if self.scores is not None:
            cosines = (vectors[pairs[:, 0]] * vectors[pairs[:, 1]]).sum(1)
            return {"spearman": correlate_ranks(cosines.double().numpy(), self.scores)}
        said = torch.from_numpy(self.held.said)
        found = score_retrieval(vectors[pairs[:, :2]], said[:, :2])
        return {"loss": self.validation_loss(vectors, pairs, said), "accuracy@1": found.accuracy, "mrr@10": found.mrr}

    def validation_loss(
        self, vectors: Float[Tensor, "t m"], pairs: Int[Tensor, "n 3"], said: Int[Tensor, "n 3"]
    ) -> float:
        """The mean loss of a pair, among as many others as in training."""
        total = 0.0
        for rows in torch.arange(len(pairs)).split(self.given.batch_pairs):
            own = vectors[pairs[rows].clamp(min=0)]  # where there is no negative, nobody looks at what stands there
            total += float(pair_loss(own, said[rows], own, said[rows], temperature=self.given.temperature))
        return total / len(pairs)

    def show(self, model: Any, folder: Path) -> None:
        """Texts as the model reads them, each with the text that it finds nearest among those of the validation."""
        vectors = encode_rows(model, self.held.rows, batch_tokens=self.given.batch_tokens)
        asked = list(dict.fromkeys(self.held.pairs[:, 0].tolist()))[:SHOWN]
        offered = list(dict.fromkeys(self.held.pairs[:, 1].tolist()))
        found = nearest(vectors[asked], vectors[offered], 2).indices.tolist()
        save_examples(
            folder,
            [
                self.show_text(model, text, next((offered[at] for at in near if offered[at] != text), text))
                for text, near in zip(asked, found)
            ],
        )

    @torch.no_grad()
    def show_text(self, model: Any, text: int, near: int) -> ShownExample:
        ids, other = self.held.rows[text], self.held.rows[near]
        with watch(model) as trace:
            model(torch.tensor([ids], device=next(model.parameters()).device), lengths=[len(ids)])
        tokens = read(self.tokens.tokenizer, ids)
        for layer in trace.layers:
            layer.queries, layer.keys = (tokens,), (tokens,)
        return ShownExample(tokens.shown, read(self.tokens.tokenizer, other).shown, trace)

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        files = {TOKENIZER: self.tokens.tokenizer.to_str().encode()}
        store.write(folder, model, self.config, facts | {"name": facts["task"]}, files=files)


def stack_pairs(vectors: Float[Tensor, "n m"], said: Int[Tensor, "b 3"]) -> Float[Tensor, "b 3 m"]:
    """Firsts, others and negatives, one below the other, side by side; zeros where there is no negative."""
    count, there = len(said), (said[:, 2] != NONE).nonzero().squeeze(1)
    negative = vectors.new_zeros(count, vectors.shape[1]).index_put((there,), vectors[2 * count :])
    return torch.stack([vectors[:count], vectors[count : 2 * count], negative], 1)


class EmbedOptions(EvaluationOptions):
    """The options of `regard evaluate` for a sentence encoder."""

    data: str = Field(
        "", description="pairs in the form of training; by default what was held out of the training data"
    )


class Embed(BaseTask):
    """Vectors of texts: near where texts mean the same."""

    name, settings, options = "embed", EmbedSettings, EmbedOptions

    def prepare(self, settings: EmbedSettings, folder: Path) -> PreparedEmbed:
        return PreparedEmbed(settings, folder)

    def evaluate(self, folder: Path, options: EmbedOptions) -> dict[str, Any]:
        """Scores of the model in a folder on pairs, or on what was held out of those that it was trained on."""
        settings = settings_from(self.settings, store.describe(folder).get("settings") or {})
        if options.data:
            settings = settings.model_copy(update={"data": options.data, "validation": options.data})
        else:
            must_be_there(settings)
        return {"task": self.name, "scores": self.prepare(settings, folder).validate(store.read(folder))}

    def next_command(self, run: str) -> str:
        return f'similar "Where is the station?" "How do I get to the station?" "I like tea." --model {run}'
