"""Translation: pairs of sentences in, a model that writes the other language out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from torch import nn

from regard.data.examples import PairExamples
from regard.data.grammar import AlignedPair, sentences
from regard.data.pairs import Pair, Pairs, read_pairs
from regard.data.special import END
from regard.data.split import references, split
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError, DataError, ModelError
from regard.models import store
from regard.tasks.base import BaseTask, EvaluationOptions
from regard.tasks.read_and_written import label_ids, show
from regard.tasks.recut import RecutPairs, make_recut
from regard.tasks.score import load_sacrebleu, score_texts, tokenizer_for
from regard.tasks.writing import PreparedPairs, WriterSettings, write
from regard.training.task import Better

Kind = Literal["auto", "bpe", "unigram", "characters", "words"]
SOURCE, TARGET = "source.json", "target.json"


class TranslateSettings(WriterSettings):
    """Which sentences, and how they are cut into tokens."""

    data: str = Field(
        "grammar", description="training data: 'grammar', a .tsv or .jsonl file, or two files as 'a.en,a.zh'"
    )
    validation: str = Field("", description="validation data, in the same form; by default a part of data")
    validation_size: int = Field(1000, ge=1, description="distinct sentences held out for validation, without a file")
    test_size: int = Field(0, ge=0, description="distinct sentences held out for a test set")
    swap: bool = Field(False, description="translate from the second language to the first")
    lowercase: bool = Field(False, description="lowercase the text")
    vocab_size: int = Field(8000, ge=10, description="vocabulary size per language")
    source_kind: Kind = Field("auto", description="source tokenization; auto: characters for Chinese, else bpe")
    target_kind: Kind = Field("auto", description="target tokenization")
    joint: bool = Field(False, description="learn one vocabulary for both languages; implied by shared")
    bpe_dropout: float = Field(
        0.0, ge=0, le=1, description="BPE-dropout: share of merges passed over, drawn anew each epoch; 0: none"
    )
    bpe_dropout_sides: Literal["both", "source", "target"] = Field("both", description="what BPE-dropout is applied to")
    examples: int = Field(60_000, ge=10, description="sentences to generate from the grammar")
    eval_samples: int = Field(200, ge=1, description="sentences translated at each validation")


def pairs_from(named: str, *, swap: bool = False) -> Pairs:
    """The sentences in one file, or in two."""
    files = [Path(part.strip()) for part in named.split(",")]
    if len(files) > 2:
        raise ConfigError(f"data names {len(files)} files; give one, or two as source,target")
    missing = next((file for file in files if not file.name or not file.exists()), None)
    if missing is not None:
        raise DataError(
            f"there is no file {str(missing)!r} to read sentences from; give 'grammar', a .tsv or .jsonl file, or two "
            "files as 'a.en,a.zh'"
        )
    return read_pairs(*files, skip_empty=True, swap=swap)


def pairs_of(aligned: Sequence[AlignedPair], *, swap: bool) -> list[Pair]:
    """Sentences of the grammar as pairs, the other way round where that is wanted."""
    return [Pair(one.target, one.source) if swap else Pair(one.source, one.target) for one in aligned]


def parts_of(settings: TranslateSettings) -> tuple[Pairs, list[Pair], list[Pair]]:
    """What to learn from, with the lines of the file that were left out, to validate by, and to test by."""
    if settings.data == "grammar":
        made = {
            part: pairs_of(sentences(count, seed=settings.seed, part=part), swap=settings.swap)
            for part, count in (
                ("train", settings.examples),
                ("validation", settings.validation_size),
                ("test", settings.test_size),
            )
        }
        return Pairs(made["train"]), made["validation"], made["test"]
    pairs = pairs_from(settings.data, swap=settings.swap)
    if settings.validation:
        return pairs, pairs_from(settings.validation, swap=settings.swap), []
    parts = split(pairs, validation=settings.validation_size, test=settings.test_size, seed=settings.seed)
    return Pairs(parts.train, pairs.skipped), list(parts.validation), list(parts.test)


class PreparedTranslation(PreparedPairs):
    """A translation task made ready."""

    better = Better("bleu")

    def __init__(self, settings: TranslateSettings, folder: Path) -> None:
        train, validation, _ = parts_of(settings)
        self.asked = references(validation)
        self.source, self.target = vocabularies(settings, train, folder)
        encoded = [
            PairExamples.encode(pairs, self.source, self.target, longest=settings.max_length)
            for pairs in (train, validation)
        ]
        super().__init__(settings, *encoded, left_out=len(train.skipped))
        self.recut: RecutPairs | None = None
        if settings.bpe_dropout:
            self.recut = make_recut(
                train, self.train, (self.source, self.target), p=settings.bpe_dropout,
                sides=settings.bpe_dropout_sides, seed=settings.seed,
                longest=min(settings.max_length, settings.batch_tokens - 1),
            )  # fmt: skip
        self.config = settings.config(len(self.source), len(self.target))
        self.model = self.config.build()

    def read_in(self, epoch: int) -> PairExamples:
        return self.train if self.recut is None else self.recut(epoch)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Loss over all, BLEU and chrF of a part that is translated freely."""
        asked = self.asked[: self.given.eval_samples]
        written = translate(model, self.source, self.target, [source for source, _ in asked])
        right = [answers for _, answers in asked]
        tokenizer = tokenizer_for([text for answers in right for text in answers])
        scores = score_texts(written, right, tokenizer=tokenizer, lower=self.given.lowercase)
        return {"loss": self.validation_loss(model), "bleu": scores.bleu, "chrf": scores.chrf}

    def show(self, model: nn.Module, folder: Path) -> None:
        asked = [[*self.source.encode(one.source), END] for one in self.asked[:3]]
        written = [found.ids for found in write(model, asked)]
        show(model, [label_ids(self.source, self.target, *one) for one in zip(asked, written)], folder)

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        files = {SOURCE: self.source.json.encode(), TARGET: self.target.json.encode()}
        store.write(folder, model, self.config, facts | {"name": "translate"}, files=files)


def vocabularies(settings: TranslateSettings, train: Sequence[Pair], folder: Path) -> tuple[Vocabulary, Vocabulary]:
    """Of the two languages: those in the folder where there are any, else learnt from the pairs and written there."""
    places = folder / SOURCE, folder / TARGET
    if all(place.exists() for place in places):
        return Vocabulary.load(places[0]), Vocabulary.load(places[1])
    if (folder / store.MANIFEST).exists():  # a model that is done reads by the vocabularies that it was trained with
        raise ModelError(f"{folder} holds a model without {SOURCE} and {TARGET}; take a whole copy of the model")
    sides = [pair.source for pair in train], [pair.target for pair in train]
    kinds = [
        ("characters" if tokenizer_for(texts) == "zh" else "bpe") if kind == "auto" else kind
        for kind, texts in zip((settings.source_kind, settings.target_kind), sides)
    ]
    if settings.joint or settings.shared:  # type: ignore[attr-defined]
        both = Vocabulary.train(
            [*sides[0], *sides[1]], kind=kinds[0], size=settings.vocab_size, lower=settings.lowercase
        )
        made = both, both
    else:
        made = tuple(  # type: ignore[assignment]
            Vocabulary.train(texts, kind=kind, size=settings.vocab_size, lower=settings.lowercase)
            for kind, texts in zip(kinds, sides)
        )
    for place, vocabulary in zip(places, made):
        vocabulary.save(place)
    return made


def translate(
    model: nn.Module, source: Vocabulary, target: Vocabulary, texts: Sequence[str], *, beams: int = 1, **more: Any
) -> list[str]:
    """Each text in the other language."""
    asked = [[*source.encode(text), END] for text in texts]
    return [target.decode(found.ids) for found in write(model, asked, beams=beams, **more)]


class TranslateOptions(EvaluationOptions):
    """The options of `regard evaluate` for a translator."""

    data: str = Field("", description="a file of pairs, two as a,b, or 'grammar'; by default the training data")
    part: str = Field("validation", description="validation, test, unseen or long, where no file is named")
    beams: int = Field(5, ge=1, description="beam size; 1 is greedy")
    lowercase: bool = Field(False, description="compare lowercased text; by default as the run was trained")
    cased: bool = Field(False, description="compare cased text, even if the run was trained on lowercased text")
    count: int = Field(1000, ge=1, description="sentences to generate from the grammar")
    samples: int = Field(5, ge=0, description="translations to print")
    alignment: bool = Field(True, description="measure the word alignment where the true one is known")


class Translate(BaseTask):
    """English to Chinese, or whatever pairs of sentences are given."""

    name, settings, options = "translate", TranslateSettings, TranslateOptions

    def check_requirements(self, settings: TranslateSettings) -> None:
        """BLEU and chrF are those of sacrebleu."""
        load_sacrebleu()

    def prepare(self, settings: TranslateSettings, folder: Path) -> PreparedTranslation:
        return PreparedTranslation(settings, folder)

    def evaluate(self, folder: Path, options: TranslateOptions) -> dict[str, Any]:
        from regard.tasks.translation_scores import (
            evaluate_translator,
        )

        return evaluate_translator(folder, options)

    def report(self, result: dict[str, Any]) -> str:
        from regard.tasks.translation_scores import report_scores

        return report_scores(result)

    def next_command(self, run: str) -> str:
        return f'translate -m {run} "The cat sat on the mat."'
