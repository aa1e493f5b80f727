"""Captions: pictures with their captions in, a model that writes what another picture shows out."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from pydantic import Field
from torch import Tensor, nn

from regard.data.augment import Augmentation
from regard.data.caption_sets import CaptionSet, make_shapes, read_captions
from regard.data.random_bits import draw_bits
from regard.data.special import END, PAD
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError, ModelError
from regard.models import store
from regard.models.captioner import Captioner
from regard.models.captioner_config import ATTENTIONS, CaptionerConfig
from regard.models.read_tokenizer import TOKENIZER
from regard.tasks.base import BaseTask, EvaluationOptions
from regard.tasks.judge_captions import judge_captions
from regard.tasks.model_settings import Hyperparameter, fill_config, with_hyperparameters
from regard.tasks.picture import AT_ONCE, IN_MEMORY, MEASURED, measure_pixels, split_sizes
from regard.tasks.read_and_written import ShownExample, save_examples
from regard.tasks.score import load_sacrebleu, tokenizer_for
from regard.tasks.shuffled_examples import ShuffledExamples
from regard.tasks.text_translator import locate_trained
from regard.tasks.write_captions import pad_captions, trace_caption, write_captions
from regard.training.caption_loss import caption_loss
from regard.training.device import to_device
from regard.training.loss import Loss, smoothed_loss
from regard.training.settings import Settings, with_defaults
from regard.training.task import Better

SHAPES = "shapes"  # what to write as data for scenes that are drawn here
SHOWN = 4  # pictures
HELD_OUT = 1000  # pictures for validation, at most


@with_hyperparameters(
    CaptionerConfig,
    width=Hyperparameter("hidden size of the recurrent decoder", 128),
    embedding=Hyperparameter("embedding size of a token", 64),
    hidden=Hyperparameter("size in which state and location are compared", 64),
    cell=Hyperparameter("recurrent cell", choices=("lstm", "gru")),
    attention=Hyperparameter("soft, hard (one location, learned by reward) or none (their mean)", choices=ATTENTIONS),
    dropout=Hyperparameter("dropout probability", 0.0),
    context_dropout="share of steps whose context the recurrent cell is not given, so that each word looks for itself",
)
@with_defaults(steps=4000, lr=2e-3, warmup_steps=100, lr_schedule="cosine")
class CaptionSettings(Settings):
    """Which pictures and captions, how pictures are changed in training, and which model writes."""

    data: str = Field(
        SHAPES, description="training data: 'shapes', or a .jsonl (.gz too) with a file and a caption in each line"
    )
    validation: str = Field("", description="validation data, in the same form; by default a part of data")
    pretrained: str = Field("", description="a run or a captioner to go on from, with its words and its sizes")
    validation_size: int = Field(0, ge=0, description="pictures held out without a file; 0: a tenth, at most 1,000")
    examples: int = Field(20_000, ge=10, description="scenes of shapes to draw")
    image_size: int = Field(0, ge=0, description="height and width in pixels; 0: those of the first picture")
    crop: bool = Field(True, description="cut pictures around the middle to the size; otherwise stretch them")
    batch_size: int = Field(64, ge=1, description="pictures per batch, over all processes")
    lowercase: bool = Field(True, description="lowercase captions")
    vocab_size: int = Field(4000, ge=10, description="vocabulary size; rarer words are unknown")
    max_length: int = Field(40, ge=1, description="max words of a caption; longer ones are cut in training")
    features: str = Field("24,48,64,96", description="channels of each convolution")
    strides: str = Field("2,2,1,1", description="strides of the convolutions")
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="label smoothing")
    coverage_loss: float = Field(
        0.1, ge=0, description="doubly stochastic attention: weight of the loss for not looking everywhere alike"
    )
    reward_weight: float = Field(0.01, ge=0, description="weight of the reward of locations (hard)")
    entropy_weight: float = Field(0.002, ge=0, description="weight of the entropy of locations (hard)")
    shift: float = Field(0.0, ge=0, description="augmentation: pixels that pictures are moved by, at most")
    rotate: float = Field(0.0, ge=0, le=180, description="augmentation: degrees that pictures are turned by, at most")
    scale: float = Field(0.0, ge=0, lt=1, description="augmentation: share that pictures grow or shrink by, at most")
    flip: bool = Field(False, description="augmentation: mirror half of the pictures; captions may say left and right")
    brightness: float = Field(0.0, ge=0, description="augmentation: deviations that pixels get brighter or darker by")
    eval_samples: int = Field(200, ge=1, description="pictures captioned at each validation")

    @property
    def augmentation(self) -> Augmentation:
        """How pictures are changed in training."""
        return Augmentation(self.shift, self.rotate, self.scale, self.flip, self.brightness)


class CaptionBatch(NamedTuple):
    """Pictures as numbers, what the decoder is fed, and what it must say, padded on the right."""

    pictures: Float[Tensor, "b c y x"]
    fed: Int[Tensor, "b t"]
    targets: Int[Tensor, "b t"]


class CaptionParts(NamedTuple):
    """The pictures to learn from, and those to be judged by while learning."""

    train: CaptionSet
    validation: CaptionSet


def find_captions(settings: CaptionSettings) -> CaptionParts:
    """Both parts; where the data have no validation file, some pictures are held out, by seed and number."""
    size = settings.validation_size
    if settings.data == SHAPES:
        train, held = (
            make_shapes(count, seed=settings.seed, part=part)
            for count, part in ((settings.examples, "train"), (size or HELD_OUT, "validation"))
        )
        return CaptionParts(train, held)
    train = read_captions(Path(settings.data))
    if settings.validation:
        return CaptionParts(train, read_captions(Path(settings.validation)))
    size = size or min(HELD_OUT, max(1, len(train) // 10))
    if size >= len(train):
        raise ConfigError(f"validation_size is {size:,}, but there are {len(train):,} pictures in all; hold out fewer")
    order = np.random.default_rng((settings.seed, len(train))).permutation(len(train))
    return CaptionParts(train.select(np.sort(order[size:])), train.select(np.sort(order[:size])))


def find_vocabulary(settings: CaptionSettings, train: CaptionSet, folder: Path) -> Vocabulary:
    """The one in the folder where there is one, else the words of the captions, written there."""
    place = folder / TOKENIZER
    if settings.pretrained and not place.exists():
        known = Vocabulary.load(locate_captioner(settings.pretrained) / TOKENIZER)
        known.save(place)
        return known
    if place.exists():
        return Vocabulary.load(place)
    if (folder / store.MANIFEST).exists():
        raise ModelError(f"{folder} holds a model without {TOKENIZER}; take a whole copy of the model")
    texts = [text for at in range(len(train)) for text in train.captions_of(at)]
    kind = "characters" if tokenizer_for(texts) == "zh" else "words"
    made = Vocabulary.train(texts, kind=kind, size=settings.vocab_size, lower=settings.lowercase)
    made.save(place)
    return made


def make_captioner(settings: CaptionSettings, train: CaptionSet, vocab_size: int) -> tuple[CaptionerConfig, Captioner]:
    """The model that the settings ask for, with random weights, or with those of a pretrained one and its sizes."""
    if settings.pretrained:
        loaded = store.read(locate_captioner(settings.pretrained))
        assert isinstance(loaded, Captioner)
        dropped = {name: getattr(settings, name) for name in ("dropout", "context_dropout")}
        config = replace(loaded.config, **dropped)
        model = config.build()
        model.load_state_dict(loaded.state_dict())
        return config, model
    features, strides = (split_sizes(name, getattr(settings, name)) for name in ("features", "strides"))
    height, width = (settings.image_size or side for side in train.pictures.read(0, 3).shape[:2])
    sizes = {"image_height": height, "image_width": width, "features": features, "strides": strides}
    config = fill_config(CaptionerConfig, settings, **sizes, vocab_size=vocab_size)
    return config, config.build()


def locate_captioner(where: str) -> Path:
    """The folder of a captioner with its words: a run, or a model by its name."""
    folder = locate_trained(where, noun="captioner", train="regard train caption")
    kind = store.describe(folder).get("kind")
    if kind != "captioner" or not (folder / TOKENIZER).exists():
        raise ModelError(f"{where} holds a {kind}, which captions no pictures; name a model that does")
    return folder


class PreparedCaptions(ShuffledExamples):
    """Pictures with captions made ready, and a model: a batch is a function of settings, data and its number."""

    model: nn.Module
    better = Better("bleu")
    left_out = 0

    def __init__(self, settings: CaptionSettings, folder: Path) -> None:
        self.given = settings
        if settings.data == SHAPES:  # nearly every caption comes out right in the end, and BLEU tells no more
            self.better = Better("loss", more=False)
        self.train, self.validation = find_captions(settings)
        self.examples = len(self.train)
        self.vocabulary = find_vocabulary(settings, self.train, folder)
        self.config, self.model = make_captioner(settings, self.train, len(self.vocabulary))
        size = 3 * self.config.image_height * self.config.image_width
        if (self.examples + len(self.validation)) * size <= IN_MEMORY:
            self.train, self.validation = (self.keep(one) for one in (self.train, self.validation))
        some = np.arange(min(MEASURED, self.examples))
        chunks = (self.load(self.train, rows) for rows in np.array_split(some, -(-len(some) // AT_ONCE)))
        self.scaling = measure_pixels(chunks)
        texts = [text for captions in self.train.captions for text in captions]
        ids = self.vocabulary.encode_batch(texts)
        counts = np.cumsum([0, *map(len, self.train.captions)]).tolist()
        self.ids = [[one[: settings.max_length] for one in ids[a:b]] for a, b in pairwise(counts)]

    def keep(self, part: CaptionSet) -> CaptionSet:
        """The same with its pictures in the size of the model, decoded once."""
        one = self.config
        return part.with_pictures(lambda some: some.keep(one.image_height, one.image_width, 3, crop=self.given.crop))

    def load(self, part: CaptionSet, rows: Int[np.ndarray, " m"]) -> UInt8[np.ndarray, "m c y x"]:
        """Some pictures in the size of the model."""
        one = self.config
        return part.pictures.select(rows).load(one.image_height, one.image_width, one.channels, crop=self.given.crop)

    def ids_of(self, row: int, epoch: int) -> list[int]:
        """The caption of a picture in one epoch: where it has several, another one each time."""
        several = self.ids[int(self.train.pictures.labels[row])]
        at = 0 if len(several) == 1 else int(draw_bits(self.given.seed, epoch, row)[0] % np.uint64(len(several)))
        return [*several[at], END]

    def collate(self, indices: np.ndarray) -> CaptionBatch:
        if not len(indices):  # a process without a picture still takes part, with one that does not count
            one = self.collate(np.zeros(1, dtype=np.int64))
            return one._replace(targets=torch.full_like(one.targets, PAD))
        epoch, rows = int(indices[0]) // self.examples, indices % self.examples
        pictures = self.scaling.scale(self.load(self.train, rows))
        changed = self.given.augmentation.apply(pictures, rows, seed=self.given.seed, epoch=epoch)
        return CaptionBatch(changed, *pad_captions([self.ids_of(int(row), epoch) for row in rows]))

    def weight(self, indices: np.ndarray) -> int:
        return sum(len(self.ids_of(int(one) % self.examples, int(one) // self.examples)) for one in indices)

    def count_tokens(self, indices: np.ndarray) -> int:
        return self.weight(indices)

    def loss(self, model: Any, batch: CaptionBatch) -> Loss:
        """The words, looking everywhere alike, and the reward of locations where they are drawn."""
        given = self.given
        return caption_loss(
            model, *batch, smoothing=given.label_smoothing, coverage=given.coverage_loss, reward=given.reward_weight,
            entropy=given.entropy_weight,
        )  # fmt: skip

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Loss over all, and the scores of a part that is captioned freely."""
        some = self.validation.select(np.arange(min(self.given.eval_samples, len(self.validation))))
        return {"loss": self.validation_loss(model)} | judge_captions(
            model, some, self.vocabulary, self.scaling, crop=self.given.crop, longest=self.given.max_length
        ).scores

    @torch.inference_mode()
    def validation_loss(self, model: Any) -> float:
        """Mean negative log-likelihood of a token of the first caption of each picture."""
        total, count, device = 0.0, 0, next(model.parameters()).device
        for rows in np.array_split(np.arange(len(self.validation)), -(-len(self.validation) // AT_ONCE)):
            texts = [self.validation.captions_of(int(row))[0] for row in rows]
            pictures = self.scaling.scale(self.load(self.validation, rows))
            ids = [[*one[: self.given.max_length], END] for one in self.vocabulary.encode_batch(texts)]
            batch = to_device(CaptionBatch(pictures, *pad_captions(ids)), device)
            hidden = model.write(batch.pictures, batch.fed, details=False).hidden
            found = smoothed_loss(hidden, model.head_weight, model.head_bias, batch.targets, smoothing=0.0)
            total, count = total + float(found.nll), count + found.count
        return total / max(1, count)

    def show(self, model: Any, folder: Path) -> None:
        rows = np.arange(min(SHOWN, len(self.validation)))
        pictures = self.scaling.scale(self.load(self.validation, rows)).to(next(model.parameters()).device)
        written = write_captions(model, pictures, longest=self.given.max_length)
        shown = []
        for at, one in enumerate(written):
            trace = None
            if model.decoder.attention is not None:
                trace = trace_caption(model, pictures[at : at + 1], one.ids, self.vocabulary)
            name = Path(self.validation.pictures.names(at)).name
            shown.append(ShownExample([name], self.vocabulary.names(one.ids), trace))
        save_examples(folder, shown)

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        mean, deviation = map(list, self.scaling)
        pixels = {"image_mean": mean, "image_std": deviation, "crop": self.given.crop}
        files = {TOKENIZER: self.vocabulary.json.encode()}
        store.write(folder, model, self.config, facts | {"name": "caption", "pixels": pixels}, files=files)


class CaptionOptions(EvaluationOptions):
    """The options of `regard evaluate` for a model that captions pictures."""

    data: str = Field("", description="'shapes', or a .jsonl of pictures with captions; by default those of training")
    part: Literal["validation", "test"] = Field("test", description="which part of the shapes")
    beams: int = Field(5, ge=1, description="beam size; 1 is greedy")
    count: int = Field(300, ge=1, description="scenes of shapes to draw")
    samples: int = Field(5, ge=0, description="captions to print")


class Caption(BaseTask):
    """Pictures in, their captions out."""

    name, settings, options = "caption", CaptionSettings, CaptionOptions

    def check_requirements(self, settings: CaptionSettings) -> None:
        """BLEU is that of sacrebleu."""
        load_sacrebleu()

    def prepare(self, settings: CaptionSettings, folder: Path) -> PreparedCaptions:
        return PreparedCaptions(settings, folder)

    def evaluate(self, folder: Path, options: CaptionOptions) -> dict[str, Any]:
        from regard.tasks.caption_scores import evaluate_captioner

        return evaluate_captioner(folder, options)

    def report(self, result: dict[str, Any]) -> str:
        from regard.tasks.caption_scores import report_captions

        return report_captions(result)

    def next_command(self, run: str) -> str:
        return f"caption PICTURE.png --model {run}"
