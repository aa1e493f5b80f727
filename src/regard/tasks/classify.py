"""Classification: texts with labels in, a model that says which label a text has out."""

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from pydantic import Field
from torch import Tensor, nn

from regard.data.label_survey import TRAIN, VALIDATION
from regard.errors import ConfigError
from regard.models import store
from regard.models.config import ModelConfig
from regard.models.read_tokenizer import TOKENIZER
from regard.models.recurrent_classifier import RecurrentClassifierConfig
from regard.models.text_classifier import TextClassifierConfig
from regard.tasks.base import BaseTask, EvaluationOptions
from regard.tasks.classification_scores import judge_examples
from regard.tasks.encoder import EncoderSettings, make_encoder
from regard.tasks.labelled_examples import encode_labelled, tell_cut
from regard.tasks.labelled_parts import find_texts
from regard.tasks.model_settings import Hyperparameter, with_hyperparameters
from regard.tasks.prepared_examples import PreparedExamples
from regard.tasks.read_and_written import ShownExample, save_examples
from regard.tokens import read
from regard.tokens.mask_token import find_mask_id
from regard.trace.watch import watch
from regard.training.loss import Loss
from regard.training.settings import with_defaults
from regard.training.task import Better

IGNORED = -100  # the label of a row that does not count
SHOWN = 4  # texts


@with_hyperparameters(
    RecurrentClassifierConfig,
    cell=Hyperparameter("recurrent cell (recurrent)", choices=("gru", "lstm")),
)
@with_defaults(max_length=256, batch_tokens=2048, steps=2000, warmup_steps=200)
class ClassifySettings(EncoderSettings):
    """Which texts, where their labels stand, and how the classifier learns from them."""

    data: str = Field(
        "", description="training texts: .tsv, .csv or .jsonl files (.gz too) as 'a,b', or a folder of class folders"
    )
    validation: str = Field("", description="validation texts, in the same form; by default a part of data")
    validation_size: int = Field(
        0, ge=0, description="distinct texts held out for validation, without a file; 0 is a tenth, at most 1,000"
    )
    test_size: int = Field(0, ge=0, description="distinct texts held out for a test set")
    text_field: str = Field("", description="column of the texts; by default the usual names are looked for")
    label_field: str = Field("", description="column of the labels; by default the usual names are looked for")
    label_names: str = Field("", description="what labels are called, such as '0=negative,1=positive'")
    model: Literal["transformer", "recurrent"] = Field(
        "transformer",
        description="model type, unless pretrained: self-attention, or a recurrent network read both ways",
    )
    pooling: Literal["auto", "attention", "mean", "max", "cls"] = Field(
        "auto", description="how tokens become one vector; auto: attention from scratch, mean if pretrained"
    )
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="label smoothing")
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="what a text counts in the loss; balanced: every class as much as every other"
    )
    word_dropout: float = Field(0.0, ge=0, lt=1, description="share of tokens hidden in training")


class LabelledBatch(NamedTuple):
    """Texts as ids, padded on the right, how long each is, and the number of its class."""

    ids: Int[Tensor, "b t"]
    lengths: Int[Tensor, " b"]
    labels: Int[Tensor, " b"]


class PreparedClassification(PreparedExamples):
    """A classification task made ready: encoded texts, and a classifier."""

    better = Better("accuracy")

    def __init__(self, settings: ClassifySettings, folder: Path) -> None:
        found = find_texts(settings)
        self.classes = found.survey.classes
        learned = (one.text for one, part in zip(found.texts, found.parts) if part == TRAIN)
        config_class, more = choose_model(settings)
        made = make_encoder(
            config_class, settings, folder, learned, prefix_space=True, labels=len(self.classes), **more
        )  # fmt: skip
        self.tokens, self.config, self.model = made
        encoded = encode_labelled(
            found.texts, self.tokens, self.classes, max_length=settings.max_length, parts=found.parts
        )
        if found.validation is not None:
            held = encode_labelled(found.validation, self.tokens, self.classes, max_length=settings.max_length)
            encoded[VALIDATION] = held[0]
        super().__init__(settings, encoded[TRAIN].examples)
        self.validation = encoded[VALIDATION].examples
        self.notices = [*found.notices, *tell_cut(sum(one.cut for one in encoded), settings.max_length)]
        self.class_weights = weigh_classes(self.train.fields["label"], len(self.classes), settings.class_weights)
        self.hidden_id = find_mask_id(self.tokens.tokenizer)
        if settings.word_dropout and self.hidden_id is None:
            raise ConfigError("word_dropout hides tokens, but this tokenizer has no mask token; leave it out")

    def collate(self, indices: np.ndarray) -> LabelledBatch:
        if not len(indices):  # a process without an example still takes part, with one that does not count
            one = self.collate(np.zeros(1, dtype=np.int64))
            return one._replace(labels=torch.full_like(one.labels, IGNORED))
        made = self.train.collate(indices)
        lengths = torch.from_numpy(self.train.lengths["text"][indices])
        return LabelledBatch(made["text"], lengths, made["label"])

    def loss(self, model: Any, batch: LabelledBatch) -> Loss:
        """Cross-entropy with smoothed labels, each text times the weight of its class; `nll` without either."""
        ids = batch.ids
        if model.training and self.given.word_dropout:
            ids = self.hide_tokens(ids)
        logits = model(ids, lengths=batch.lengths)
        weights = None if self.class_weights is None else self.class_weights.to(logits)
        options: dict[str, Any] = {"ignore_index": IGNORED, "reduction": "sum"}
        lost = F.cross_entropy(
            logits, batch.labels, weight=weights, label_smoothing=self.given.label_smoothing, **options
        )
        with torch.no_grad():
            nll = F.cross_entropy(logits, batch.labels, **options)
        return Loss(lost, int((batch.labels != IGNORED).sum()), nll)

    def hide_tokens(self, ids: Int[Tensor, "b t"]) -> Int[Tensor, "b t"]:
        """The same with a share of the tokens hidden; special tokens and padding stay."""
        special = torch.tensor([*self.tokens.before, *self.tokens.after, self.config.pad, 0], device=ids.device)
        drawn = torch.rand(ids.shape, device=ids.device) < self.given.word_dropout
        return ids.masked_fill(drawn & ~torch.isin(ids, special), self.hidden_id or 0)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Loss, accuracy and macro-F1."""
        return judge_examples(model, self.validation, len(self.classes)).scores

    def show(self, model: nn.Module, folder: Path) -> None:
        rows = self.validation.sequences["text"]
        save_examples(folder, [self.show_text(model, rows[at]) for at in range(min(SHOWN, len(self.validation)))])

    @torch.no_grad()
    def show_text(self, model: nn.Module, ids: list[int]) -> ShownExample:
        """One text, the class that the model gives it, and what it attended to."""
        tokens = read(self.tokens.tokenizer, ids)
        with watch(model, tokens) as trace:
            logits = model(torch.tensor([ids], device=next(model.parameters()).device), lengths=[len(ids)])
        return ShownExample(tokens.shown, [self.classes[int(logits[0].argmax())]], trace)

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        files = {TOKENIZER: self.tokens.tokenizer.to_str().encode()}
        store.write(folder, model, self.config, facts | {"name": "classify", "classes": self.classes}, files=files)


def choose_model(settings: ClassifySettings) -> tuple[type[ModelConfig], dict[str, Any]]:
    """The config of the classifier that the settings ask for, and what only its kind is told."""
    if settings.model == "transformer":
        usual = "mean" if settings.pretrained else "attention"
        return TextClassifierConfig, {"pooling": usual if settings.pooling == "auto" else settings.pooling}
    if settings.pooling not in ("auto", "attention"):
        raise ConfigError(f"a recurrent model pools by attention, but pooling is {settings.pooling!r}; leave it out")
    return RecurrentClassifierConfig, {}


def weigh_classes(labels: np.ndarray, classes: int, how: str) -> Tensor | None:
    """What a text of each class counts: n / (classes · n_c), so that all classes count the same; None: 1 each.

    >>> weigh_classes(np.array([0, 0, 0, 1]), 2, "balanced")
    tensor([0.6667, 2.0000], dtype=torch.float64)
    """
    if how == "none":
        return None
    return torch.from_numpy(len(labels) / (classes * np.maximum(1, np.bincount(labels, minlength=classes))))


class ClassifyOptions(EvaluationOptions):
    """The options of `regard evaluate` for a classifier."""

    data: str = Field("", description="labelled texts; by default what was held out of the training texts")
    part: Literal["validation", "test"] = Field("validation", description="which part, where no texts are named")
    text_field: str = Field("", description="column of the texts, where it is another than in training")
    label_field: str = Field("", description="column of the labels, where it is another than in training")
    explain: bool = Field(False, description="measure how well attention predicts leave-one-out")
    explain_texts: int = Field(500, ge=1, description="texts to measure that on, at most")


class Classify(BaseTask):
    """Texts in, their classes out."""

    name, settings, options = "classify", ClassifySettings, ClassifyOptions

    def prepare(self, settings: ClassifySettings, folder: Path) -> PreparedClassification:
        return PreparedClassification(settings, folder)

    def evaluate(self, folder: Path, options: ClassifyOptions) -> dict[str, Any]:
        from regard.tasks.evaluate_classifier import evaluate_classifier

        return evaluate_classifier(folder, options)

    def report(self, result: dict[str, Any]) -> str:
        from regard.tasks.evaluate_classifier import report_classifier

        return report_classifier(result)

    def next_command(self, run: str) -> str:
        return f'classify "What a film!" --model {run}'
