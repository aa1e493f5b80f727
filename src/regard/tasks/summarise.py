"""Summaries: texts with their summaries in, a model that writes, or copies, the summary of another text out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field
from torch import nn

from regard.data.examples import PairBatch, PairExamples, encode_texts
from regard.data.special import END
from regard.data.summaries import (
    REFERENCES,
    FieldNames,
    SummaryExample,
    SummaryParts,
    SummarySet,
    hold_out,
    read_summaries,
)
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError, DataError, ModelError
from regard.models import store
from regard.models.pointer_generator import PointerGeneratorConfig
from regard.models.read_tokenizer import TOKENIZER
from regard.models.translator import POSITIONS
from regard.tasks.base import BaseTask, EvaluationOptions
from regard.tasks.model_settings import Hyperparameter, fill_config, with_hyperparameters
from regard.tasks.read_and_written import label_ids, show
from regard.tasks.rouge import load_rouge, score_rouge
from regard.tasks.score import tokenizer_for
from regard.tasks.writing import PairSettings, PreparedPairs, write
from regard.training.loss import Loss, smoothed_loss
from regard.training.pointer_loss import pointer_loss
from regard.training.settings import with_defaults
from regard.training.task import Better

SHOWN = 3  # texts


@with_hyperparameters(
    PointerGeneratorConfig,
    width=Hyperparameter("model width (hidden size)", 192),
    heads=Hyperparameter("attention heads per layer", 4),
    layers=Hyperparameter("number of encoder layers, and of decoder layers", 2),
    hidden=Hyperparameter("feed-forward size", 512),
    dropout=Hyperparameter("dropout probability", 0.2),
    order=Hyperparameter("pre- or post-layer-norm blocks", choices=("pre", "post")),
    positions=Hyperparameter("position encoding", choices=POSITIONS),
    copy="let the model copy tokens of the source (pointer)",
    coverage="let the pointer know what it has copied already",
)
@with_defaults(steps=6000, lr=1e-3, warmup_steps=800)
class SummariseSettings(PairSettings):
    """Which texts, and how they are cut into tokens."""

    data: str = Field("", description="training data: a .jsonl or .tsv file (.gz too)")
    validation: str = Field("", description="validation data, in the same form; by default a part of data")
    validation_size: int = Field(500, ge=1, description="distinct texts held out for validation, without a file")
    text_field: str = Field("", description="field of the text in a .jsonl; by default document, text, body, article…")
    summary_field: str = Field("", description="field of the summary; by default summary, subject, title, headline…")
    reference_field: str = Field(REFERENCES, description="field of further summaries, a list, for evaluation")
    lowercase: bool = Field(False, description="lowercase the text")
    vocab_size: int = Field(8000, ge=10, description="vocabulary size, shared by texts and summaries")
    kind: Literal["auto", "bpe", "unigram", "characters", "words"] = Field(
        "auto", description="tokenization; auto: characters for Chinese, else bpe"
    )
    max_source: int = Field(160, ge=1, description="tokens of a text that are read; longer texts are cut")
    max_target: int = Field(40, ge=1, description="max tokens of a summary; longer ones are left out of training")
    coverage_loss: float = Field(0.1, ge=0, description="weight of the loss for copying the same place twice")
    eval_samples: int = Field(200, ge=1, description="texts summarised at each validation")


def read_parts(settings: SummariseSettings) -> SummaryParts:
    """What to learn from, and to validate by."""
    train = read_named(settings.data, settings)
    if settings.validation:
        return SummaryParts(train, read_named(settings.validation, settings))
    return hold_out(train, settings.validation_size, seed=settings.seed)


def read_named(file: str, settings: SummariseSettings) -> SummarySet:
    """The examples of a file that a setting or an option names."""
    if not file:
        raise ConfigError("no texts were named; give a .jsonl or .tsv file with --data")
    if not Path(file).is_file():
        raise DataError(f"there is no file {file!r} to read summaries from; give a .jsonl or a .tsv (also .gz)")
    fields = FieldNames(settings.text_field, settings.summary_field, settings.reference_field)
    return read_summaries(file, fields=fields, skip_empty=True)


class EncodedSummaries(NamedTuple):
    """Examples as ids, how many of their texts were cut, and how many had too long a summary."""

    pairs: PairExamples
    cut: int
    dropped: int


def encode_summaries(
    examples: Sequence[SummaryExample], vocabulary: Vocabulary, *, max_source: int, max_target: int
) -> EncodedSummaries:
    """Texts cut to `max_source` tokens with their summaries; one with a longer summary than `max_target` is dropped.

    >>> vocabulary = Vocabulary.train(["a b c d"], kind="words")
    >>> examples = [SummaryExample("a b c", "a"), SummaryExample("a", "a b c d")]
    >>> found = encode_summaries(examples, vocabulary, max_source=2, max_target=3)
    >>> found.pairs[0], found.cut, found.dropped
    (PairExample(source=[4, 5, 2], target=[4, 2]), 1, 1)
    """
    texts = encode_texts([one.text for one in examples], vocabulary)
    summaries = encode_texts([one.summary for one in examples], vocabulary)
    sources: list[Sequence[int]] = []
    targets: list[Sequence[int]] = []
    cut = 0
    for text, summary in zip(texts, summaries):
        if len(summary) <= max_target:
            sources.append(text[:max_source])
            targets.append(summary)
            cut += len(text) > max_source
    if not sources:
        raise DataError(f"all {len(examples)} summaries are longer than {max_target} tokens; raise --max-target")
    pairs = PairExamples(sources, targets, longest=max(max_source, max_target))
    return EncodedSummaries(pairs, cut, len(examples) - len(sources))


def find_vocabulary(settings: SummariseSettings, train: Sequence[SummaryExample], folder: Path) -> Vocabulary:
    """The one in the folder where there is one, else learnt from texts and summaries and written there."""
    place = folder / TOKENIZER
    if place.exists():
        return Vocabulary.load(place)
    if (folder / store.MANIFEST).exists():
        raise ModelError(f"{folder} holds a model without {TOKENIZER}; take a whole copy of the model")
    texts = [text for one in train for text in (one.text, one.summary)]
    kind = settings.kind
    if kind == "auto":
        kind = "characters" if tokenizer_for(texts) == "zh" else "bpe"
    made = Vocabulary.train(texts, kind=kind, size=settings.vocab_size, lower=settings.lowercase)
    made.save(place)
    return made


class PreparedSummaries(PreparedPairs):
    """A task of summaries made ready."""

    better = Better("rouge1")
    given: SummariseSettings

    def __init__(self, settings: SummariseSettings, folder: Path) -> None:
        train, validation = read_parts(settings)
        self.held = spread_out(validation, settings.eval_samples)
        self.vocabulary = find_vocabulary(settings, train, folder)
        limits = {"max_source": settings.max_source, "max_target": settings.max_target}
        learnt, judged = (encode_summaries(part, self.vocabulary, **limits) for part in (train, validation))
        super().__init__(settings, learnt.pairs, judged.pairs, left_out=len(train.skipped) + learnt.dropped)
        self.notices = (
            [f"{learnt.cut:,} of {len(learnt.pairs):,} texts were cut to their first {settings.max_source} tokens"]
            if learnt.cut
            else []
        )
        size = len(self.vocabulary)
        self.config = fill_config(PointerGeneratorConfig, settings, source_vocab_size=size, target_vocab_size=size)
        self.model = self.config.build()

    def loss(self, model: Any, batch: PairBatch) -> Loss:
        return self.measure(model, batch, self.given.label_smoothing)

    def judge(self, model: Any, batch: PairBatch) -> Loss:
        return self.measure(model, batch, 0.0)

    def measure(self, model: Any, batch: PairBatch, smoothing: float) -> Loss:
        """The loss of a batch, copying or not."""
        source, fed, wanted = batch
        if model.pointer is None:
            hidden = model.hidden(source, fed)
            return smoothed_loss(hidden, model.head_weight, model.head_bias, wanted, smoothing=smoothing)
        again = self.given.coverage_loss if model.config.coverage else 0.0
        mixture = model.mix(source, fed)
        return pointer_loss(mixture, model.head_weight, source, wanted, smoothing=smoothing, coverage=again)

    def read(self, text: str) -> list[int]:
        return [*self.vocabulary.encode(text)[: self.given.max_source], END]

    def write(self, model: nn.Module, texts: Sequence[str]) -> list[list[int]]:
        """The ids of a summary of each text, the likeliest token each time."""
        asked = [self.read(text) for text in texts]
        return [one.ids for one in write(model, asked, longest=self.given.max_target)]

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Loss over all, ROUGE of a part that is summarised freely."""
        written = [self.vocabulary.decode(ids) for ids in self.write(model, [one.text for one in self.held])]
        scores = score_rouge(written, [[one.summary] for one in self.held])
        return {"loss": self.validation_loss(model), **scores._asdict()}

    def show(self, model: nn.Module, folder: Path) -> None:
        texts = [one.text for one in self.held[:SHOWN]]
        pairs = zip(map(self.read, texts), self.write(model, texts))
        show(model, [label_ids(self.vocabulary, self.vocabulary, *one) for one in pairs], folder)

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        files = {TOKENIZER: self.vocabulary.json.encode()}
        store.write(folder, model, self.config, facts | {"name": "summarise"}, files=files)


def spread_out(examples: Sequence[SummaryExample], count: int) -> list[SummaryExample]:
    """So many of them, evenly from first to last: neighbours in a file often are alike.

    >>> [one.text for one in spread_out([SummaryExample(letter, "") for letter in "abcdefg"], 3)]
    ['a', 'c', 'e']
    """
    return list(examples[:: max(1, len(examples) // count)])[:count]


class SummariseOptions(EvaluationOptions):
    """The options of `regard evaluate` for a model that summarises."""

    data: str = Field("", description="a .jsonl or .tsv file of texts with summaries; by default the validation data")
    beams: int = Field(5, ge=1, description="beam size; 1 is greedy")
    count: int = Field(0, ge=0, description="texts to score, spread over the file; 0: all")
    samples: int = Field(5, ge=0, description="summaries to print")


class Summarise(BaseTask):
    """Texts in, summaries out."""

    name, settings, options = "summarise", SummariseSettings, SummariseOptions

    def check_requirements(self, settings: SummariseSettings) -> None:
        """ROUGE is that of rouge-score."""
        load_rouge()

    def prepare(self, settings: SummariseSettings, folder: Path) -> PreparedSummaries:
        return PreparedSummaries(settings, folder)

    def evaluate(self, folder: Path, options: SummariseOptions) -> dict[str, Any]:
        from regard.tasks.summary_scores import evaluate_summariser

        return evaluate_summariser(folder, options)

    def report(self, result: dict[str, Any]) -> str:
        from regard.tasks.summary_scores import report_scores

        return report_scores(result)

    def next_command(self, run: str) -> str:
        return f"summarise letter.txt --model {run}"
