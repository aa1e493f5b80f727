"""Answering: a question and a passage in, the span of the passage that answers it out (Devlin et al. 2019, §4.2)."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from pydantic import Field
from torch import Tensor, nn

from regard.data.squad import SquadData, read_squad
from regard.errors import ConfigError, DataError
from regard.models import store
from regard.models.bert import Bert
from regard.models.bert_config import BertConfig
from regard.models.read_tokenizer import TOKENIZER
from regard.tasks.answer_questions import AskedQuestions, QuestionParts, sample_questions, split_questions
from regard.tasks.answer_spans import read_spans
from regard.tasks.answer_trace import show_answers
from regard.tasks.answer_windows import WindowEncoder
from regard.tasks.base import BaseTask, EvaluationOptions
from regard.tasks.encoder import EncoderSettings, make_encoder
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.prepared_examples import PreparedExamples
from regard.training.loss import Loss
from regard.training.settings import with_defaults
from regard.training.task import Better

SHOWN = 3  # questions
UNCOUNTED = -100  # a place that the loss passes over


@with_defaults(steps=3000, lr=5e-4, warmup_steps=300, max_length=384, batch_tokens=6000)
class AnswerSettings(EncoderSettings):
    """Which questions, and how passages are cut."""

    data: str = Field("", description="questions to learn from: a SQuAD 1.1 or 2.0 file, .json or .json.gz")
    validation: str = Field("", description="questions to validate by, in the same form; by default a part of data")
    validation_size: int = Field(1000, ge=1, description="questions held out for validation, without a file")
    skip_bad_answers: bool = Field(False, description="leave out answers that do not stand where they say")
    stride: int = Field(128, ge=1, description="tokens between two windows of a passage that does not fit in one")
    max_question: int = Field(64, ge=1, description="max tokens of a question; longer ones are cut")
    max_answer: int = Field(30, ge=1, description="max tokens of an answer")
    match: bool = Field(False, description="mark the words of the passage that stand in the question")
    freeze: int = Field(0, ge=0, description="first layers, with the embeddings below them, that are not trained")
    eval_samples: int = Field(1000, ge=1, description="questions answered at each validation")

    def make_window_encoder(self, tokens: EncoderTokenizer) -> WindowEncoder:
        """What makes rows of questions and passages, in training and ever after."""
        return WindowEncoder(
            tokens, max_length=self.max_length, stride=self.stride, max_question=self.max_question, match=self.match
        )

    def read_parts(self) -> QuestionParts:
        """The questions to learn from, and those to be judged by."""
        if not self.data:
            raise ConfigError("no questions were named; give a SQuAD file with --data")
        if self.validation:
            paths = Path(self.data), Path(self.validation)
            return QuestionParts(*(read_squad(path, skip_bad_answers=self.skip_bad_answers) for path in paths))
        return split_questions(
            Path(self.data), held_out=self.validation_size, seed=self.seed, skip_bad_answers=self.skip_bad_answers
        )


class SpanBatch(NamedTuple):
    """Rows of a question and a window, and where its answer starts and ends: at 0 where the window holds none."""

    ids: Int[Tensor, "b t"]
    types: Int[Tensor, "b t"]
    passages: Int[Tensor, "b 2"]  # the first place of the passage, and the one after its last
    spans: Int[Tensor, "b 2"]
    lengths: Int[Tensor, " b"]


class PreparedAnswer(PreparedExamples):
    """Questions made ready, and a BERT that points at their answers."""

    why_left_out = "their answers do not stand in the passage"

    def __init__(self, settings: AnswerSettings, folder: Path) -> None:
        if settings.match and settings.freeze:
            raise ConfigError("match adds a segment to learn, but freeze holds the embeddings; leave one of them out")
        parts = settings.read_parts()
        texts = (text for some in (parts.train.passages, [one.text for one in parts.train.questions]) for text in some)
        segments = 3 if settings.match else 2
        made = make_encoder(BertConfig, settings, folder, texts, segments=segments, head="span")
        self.model, self.config, self.tokens = made.model, made.config, made.tokens
        if settings.match and self.config.token_types < segments:
            raise ConfigError(
                f"{settings.pretrained} tells no texts apart, so that nothing can be marked; drop --match"
            )
        freeze_layers(self.model, settings.freeze)
        self.encoder = settings.make_window_encoder(self.tokens)
        train, lost = AskedQuestions(parts.train, self.encoder).make_examples()
        super().__init__(settings, train, left_out=parts.train.skipped + lost)
        self.examples = len(parts.train.questions) - lost
        self.better = Better("best_f1" if parts.validation.has_unanswerable else "f1")
        self.held = sample_questions(parts.validation, settings.eval_samples, settings.seed)
        self.validation = AskedQuestions(self.held, self.encoder)

    def collate(self, indices: np.ndarray) -> SpanBatch:
        if not len(indices):  # a process without a row still takes part, with one that does not count
            one = self.collate(np.zeros(1, dtype=np.int64))
            return one._replace(spans=torch.full_like(one.spans, UNCOUNTED))
        return SpanBatch(**self.train.collate(indices), lengths=torch.from_numpy(self.train.lengths["ids"][indices]))

    def loss(self, model: Any, batch: SpanBatch) -> Loss:
        """The mean of the cross-entropies of start and end, over the places of the passage and place 0."""
        logits = read_spans(model, batch.ids, batch.types, batch.lengths)  # b t 2
        places = torch.arange(logits.shape[1], device=logits.device)
        first, stop = batch.passages[:, :1], batch.passages[:, 1:]
        allowed = ((places >= first) & (places < stop)) | (places == 0)  # b t
        logits = logits.masked_fill(~allowed[..., None], -torch.inf)
        lost = F.cross_entropy(logits, batch.spans, reduction="sum", ignore_index=UNCOUNTED) / 2
        return Loss(lost, len(batch.ids), lost.detach())

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Exact match and F1 of a sample of the questions."""
        return self.validation.score(model, max_answer=self.given.max_answer)

    def show(self, model: nn.Module, folder: Path) -> None:
        few = AskedQuestions(sample_questions(self.held, SHOWN, self.given.seed), self.encoder)
        show_answers(model, self.tokens, few.asked, folder, max_answer=self.given.max_answer)

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        files = {TOKENIZER: self.tokens.tokenizer.to_str().encode()}
        store.write(folder, model, self.config, facts | {"name": "answer"}, files=files)


def freeze_layers(model: Bert, count: int) -> None:
    """Let the embeddings and the first `count` layers stay as they are; nothing where `count` is 0."""
    if count > len(model.blocks):
        raise ConfigError(f"freeze is {count}, but this model has {len(model.blocks)} layers; give at most that many")
    below = (model.embed, model.types, model.added, model.embed_norm, model.project, *model.blocks[:count])
    for module in below if count else ():
        if module is not None:
            module.requires_grad_(False)


class AnswerOptions(EvaluationOptions):
    """The options of `regard evaluate` for a model that answers."""

    data: str = Field("", description="a SQuAD file; by default the validation data of the training, all of it")
    skip_bad_answers: bool = Field(False, description="leave out answers that do not stand where they say")
    samples: int = Field(0, ge=0, description="questions to answer, drawn at random; 0: all")
    threshold: float | None = Field(
        None, description="give no answer where that scores this much better than the best; by default the model's"
    )


class AnswerTask(BaseTask):
    """Questions on a passage."""

    name, settings, options = "answer", AnswerSettings, AnswerOptions

    def prepare(self, settings: AnswerSettings, folder: Path) -> PreparedAnswer:
        return PreparedAnswer(settings, folder)

    def evaluate(self, folder: Path, options: AnswerOptions) -> dict[str, Any]:
        from regard.tasks.text_answerer import open_answerer

        answerer = open_answerer(folder)
        data = read_evaluated(answerer.settings, options)
        some = sample_questions(data, options.samples or len(data.questions), 0)
        threshold = options.threshold if options.threshold is not None else answerer.threshold or 0.0
        asked = AskedQuestions(some, answerer.encoder)
        scores = asked.score(answerer.model, max_answer=answerer.settings.max_answer, threshold=threshold)
        return {"task": self.name, "questions": len(some.questions), "skipped": data.skipped, "scores": scores}

    def report(self, result: dict[str, Any]) -> str:
        skipped = f", {result['skipped']:,} bad answers left out" if result["skipped"] else ""
        lines = [f"{result['questions']:,} questions{skipped}"]
        return "\n".join([*lines, *(f"{name:18} {value:6.2f}" for name, value in result["scores"].items())])

    def next_command(self, run: str) -> str:
        return f'answer --model {run} --passage FILE "Who …?"'


def read_evaluated(settings: AnswerSettings, options: AnswerOptions) -> SquadData:
    """The questions to judge a model by: in a file that is named, or those that its training held out."""
    if options.data:
        return read_squad(Path(options.data), skip_bad_answers=options.skip_bad_answers)
    missing = next((one for one in (settings.data, settings.validation) if one and not Path(one).exists()), None)
    if missing is not None or not settings.data:
        raise DataError(
            f"the questions that this model was trained on are not here ({missing or 'none were named'}); name others "
            "with --data"
        )
    return settings.read_parts().validation
