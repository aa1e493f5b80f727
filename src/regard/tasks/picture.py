"""Classification of pictures: labelled pictures in, a model that says which class a picture is of out."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from pydantic import Field
from torch import Tensor, nn

from regard.data.augment import Augmentation
from regard.data.picture_sets import PictureSet, count_labels, find_pictures
from regard.errors import ConfigError, DataError
from regard.models import store
from regard.models.config import ModelConfig
from regard.models.glimpse_config import GlimpseConfig
from regard.models.open.read_pixels import PixelScaling
from regard.models.swin_config import SwinConfig
from regard.models.vit_config import POOLINGS, POSITIONS, VitConfig
from regard.tasks.base import BaseTask, EvaluationOptions
from regard.tasks.classification_scores import Judgement, count_confusion, score_confusion
from regard.tasks.glimpse_loss import reward_locations
from regard.tasks.model_settings import Hyperparameter, fill_config, with_hyperparameters
from regard.tasks.read_and_written import ShownExample, save_examples
from regard.tasks.shuffled_examples import ShuffledExamples
from regard.trace.watch import watch
from regard.training.loss import Loss
from regard.training.settings import Settings, with_defaults
from regard.training.task import Better

IGNORED = -100  # the label of a row that does not count
SHOWN = 4  # pictures
MEASURED = 10_000  # pictures that mean and deviation are taken from
AT_ONCE = 256  # pictures that are judged
IN_MEMORY = 2_000_000_000  # bytes of pixels that are kept; more are read again in every epoch
HELD_OUT = 5000  # pictures for validation, at most


@with_hyperparameters(
    VitConfig,
    SwinConfig,
    GlimpseConfig,
    patch_size=Hyperparameter("pixels of a patch in either direction", 4),
    width=Hyperparameter("hidden size; that of the first stage (swin), of the state (glimpse)", 64),
    heads=Hyperparameter("attention heads per layer (vit)", 4),
    layers=Hyperparameter("number of layers (vit)", 6),
    positions=Hyperparameter("position encoding (vit)", choices=POSITIONS),
    pooling=Hyperparameter("what the class is told from (vit)", choices=POOLINGS),
    window=Hyperparameter("cells of a window in either direction (swin)", 7),
    glimpses=Hyperparameter("how often it looks at a picture (glimpse)", 6),
    glimpse_size=Hyperparameter("pixels of a glimpse in either direction (glimpse)", 8),
    glimpse_scales=Hyperparameter("scales of a glimpse (glimpse)", 1, most=8),
    location_deviation=Hyperparameter("how far off it looks in training, half a picture is 1 (glimpse)"),
    dropout="dropout probability (vit, swin)",
)
@with_defaults(steps=3000, lr=1e-3, warmup_steps=200, lr_schedule="cosine", weight_decay=0.05, betas=(0.9, 0.999))
class PictureSettings(Settings):
    """Which pictures, how they are changed in training, and which model looks at them."""

    data: str = Field(
        "", description="labelled pictures: a folder with idx files (MNIST), with a folder for each class, or an .npz"
    )
    validation_size: int = Field(
        0, ge=0, description="pictures held out where data has no validation part; 0 is a tenth, at most 5,000"
    )
    model: Literal["vit", "swin", "glimpse"] = Field(
        "vit", description="model type; glimpse looks at a few small parts, one after the other"
    )
    image_size: int = Field(0, ge=0, description="height and width in pixels; 0: those of the first picture")
    channels: Literal[0, 1, 3] = Field(0, description="1 grey, 3 colours; 0: grey if the pictures are")
    crop: bool = Field(True, description="cut pictures around the middle to the size; otherwise stretch them")
    batch_size: int = Field(128, ge=1, description="pictures per batch, over all processes")
    depths: str = Field("2,2", description="blocks of each stage (swin)")
    stage_heads: str = Field("2,4", description="attention heads of each stage (swin)")
    location_weight: float = Field(0.01, ge=0, description="weight of the reward of locations in the loss (glimpse)")
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="label smoothing")
    shift: float = Field(0.0, ge=0, description="augmentation: pixels that pictures are moved by, at most")
    rotate: float = Field(0.0, ge=0, le=180, description="augmentation: degrees that pictures are turned by, at most")
    scale: float = Field(0.0, ge=0, lt=1, description="augmentation: share that pictures grow or shrink by, at most")
    flip: bool = Field(False, description="augmentation: mirror half of the pictures")
    brightness: float = Field(0.0, ge=0, description="augmentation: deviations that pixels get brighter or darker by")

    @property
    def augmentation(self) -> Augmentation:
        """How pictures are changed in training."""
        return Augmentation(self.shift, self.rotate, self.scale, self.flip, self.brightness)


class PictureBatch(NamedTuple):
    """Pictures as numbers, and the number of the class of each."""

    pictures: Float[Tensor, "b c y x"]
    labels: Int[Tensor, " b"]


class PictureParts(NamedTuple):
    """The pictures to learn from, and those to be judged by while learning."""

    train: PictureSet
    validation: PictureSet


def find_parts(settings: PictureSettings) -> PictureParts:
    """Both parts; where the data have no validation part, some are held out, by seed and number."""
    if not settings.data:
        raise ConfigError("there are no pictures to learn from; name some with --data")
    parts = find_pictures(Path(settings.data))
    if "train" not in parts:
        raise DataError(f"{settings.data} has no part to learn from, but {', '.join(parts)}; add a folder train")
    train = parts["train"]
    if len(train.classes) < 2:
        raise DataError(f"{settings.data} has only the class {train.classes[0]!r}; give pictures of two or more")
    if "validation" in parts:
        return PictureParts(train, parts["validation"])
    size = settings.validation_size or min(HELD_OUT, max(1, len(train) // 10))
    if size >= len(train):
        raise ConfigError(f"validation_size is {size:,}, but there are {len(train):,} pictures in all; hold out fewer")
    order = np.random.default_rng((settings.seed, len(train))).permutation(len(train))
    return PictureParts(train.select(np.sort(order[size:])), train.select(np.sort(order[:size])))


def choose_size(settings: PictureSettings, first: UInt8[np.ndarray, "y x c"]) -> tuple[int, int]:
    """Height and width of the pictures that the model is shown."""
    height, width = (settings.image_size,) * 2 if settings.image_size else first.shape[:2]
    patch = settings.patch_size  # type: ignore[attr-defined]
    if settings.model == "vit" and (height % patch or width % patch):
        raise ConfigError(
            f"pictures of {height} × {width} pixels do not split into patches of {patch}; set image_size to a multiple "
            f"of it such as {max(1, round(height / patch)) * patch}, or another patch_size"
        )
    return height, width


def split_sizes(name: str, given: str) -> tuple[int, ...]:
    """Whole numbers with commas between them.

    >>> split_sizes("depths", "2, 6")
    (2, 6)
    """
    try:
        return tuple(int(one) for one in given.split(","))
    except ValueError:
        raise ConfigError(f"{name} is {given!r}, wanted whole numbers such as 2,2,6,2") from None


def choose_config(settings: PictureSettings, height: int, width: int, channels: int, labels: int) -> ModelConfig:
    """The model that the settings ask for."""
    sizes: dict[str, Any] = {"image_height": height, "image_width": width, "channels": channels, "labels": labels}
    if settings.model == "swin":
        depths, heads = (split_sizes(name, getattr(settings, name)) for name in ("depths", "stage_heads"))
        return fill_config(SwinConfig, settings, **sizes, depths=depths, heads=heads)
    if settings.model == "glimpse":
        return fill_config(GlimpseConfig, settings, **sizes)
    pooling = settings.pooling  # type: ignore[attr-defined]
    return fill_config(VitConfig, settings, **sizes, cls_token=pooling != "mean")


def measure_pixels(chunks: Iterable[UInt8[np.ndarray, "n c y x"]]) -> PixelScaling:
    """The mean and the deviation of each channel, in 0 … 1; a channel that never changes keeps its deviation of 1.

    >>> measure_pixels([np.array([[[[0, 255]]]], dtype=np.uint8)])
    PixelScaling(mean=(0.5,), deviation=(0.5,))
    """
    counts: np.ndarray = np.zeros(1, dtype=np.int64)  # c 256 in the end: how often each shade is there
    for pixels in chunks:
        counts = counts + np.stack([np.bincount(one.reshape(-1), minlength=256) for one in pixels.swapaxes(0, 1)])
    shades = np.arange(256) / 255
    mean = counts @ shades / counts.sum(1)
    deviation = np.sqrt(counts @ shades**2 / counts.sum(1) - mean**2)
    return PixelScaling(tuple(mean.tolist()), tuple(np.where(deviation > 1e-6, deviation, 1.0).tolist()))


class PreparedPictures(ShuffledExamples):
    """Pictures made ready, and a model: every batch is a function of the settings, the pictures and its number."""

    better = Better("accuracy")
    left_out = 0

    def __init__(self, settings: PictureSettings, folder: Path) -> None:
        self.given = settings
        self.train, self.validation = find_parts(settings)
        self.classes, self.examples = list(self.train.classes), len(self.train)
        channels = settings.channels or (1 if self.train.is_grey else 3)
        self.height, self.width = choose_size(settings, self.train.read(0, channels))
        self.channels = channels
        size = channels * self.height * self.width
        fits = (self.examples + len(self.validation)) * size <= IN_MEMORY
        self.train, self.validation = (self.keep(one) if fits else one for one in (self.train, self.validation))
        self.scaling = measure_pixels(self.chunks(self.train, min(MEASURED, self.examples)))
        self.config = choose_config(settings, self.height, self.width, channels, len(self.classes))
        self.model: nn.Module = self.config.build()
        self.notices = tell_rare(self.train)

    def load(self, pictures: PictureSet) -> UInt8[np.ndarray, "n c y x"]:
        """Pictures in the size of the model."""
        return pictures.load(self.height, self.width, self.channels, crop=self.given.crop)

    def keep(self, pictures: PictureSet) -> PictureSet:
        """Pictures in the size of the model, decoded once."""
        return pictures.keep(self.height, self.width, self.channels, crop=self.given.crop)

    def chunks(self, pictures: PictureSet, most: int) -> Iterator[UInt8[np.ndarray, "n c y x"]]:
        """The first so many pictures, a few at a time."""
        for first in range(0, most, AT_ONCE):
            yield self.load(pictures.select(np.arange(first, min(most, first + AT_ONCE))))

    def collate(self, indices: np.ndarray) -> PictureBatch:
        if not len(indices):  # a process without a picture still takes part, with one that does not count
            one = self.collate(np.zeros(1, dtype=np.int64))
            return one._replace(labels=torch.full_like(one.labels, IGNORED))
        epoch, rows = int(indices[0]) // self.examples, indices % self.examples
        pictures = self.scaling.scale(self.load(self.train.select(rows)))
        changed = self.given.augmentation.apply(pictures, rows, seed=self.given.seed, epoch=epoch)
        return PictureBatch(changed, torch.from_numpy(self.train.labels[rows]))

    def weight(self, indices: np.ndarray) -> int:
        return len(indices)

    def count_tokens(self, indices: np.ndarray) -> int:
        """The patches of these pictures, or the glimpses at them."""
        if self.given.model == "glimpse":
            return len(indices) * self.given.glimpses
        patch = self.given.patch_size
        return len(indices) * -(-self.height // patch) * -(-self.width // patch)

    def loss(self, model: Any, batch: PictureBatch) -> Loss:
        """Cross-entropy with smoothed labels, and the reward of locations where there are some; `nll` is plain."""
        path = model(batch.pictures, paths=True) if self.given.model == "glimpse" else None
        logits = model(batch.pictures) if path is None else path.logits
        options: dict[str, Any] = {"ignore_index": IGNORED, "reduction": "sum"}
        lost = F.cross_entropy(logits, batch.labels, label_smoothing=self.given.label_smoothing, **options)
        if path is not None:
            lost = lost + reward_locations(path, batch.labels, self.given.location_weight)
        with torch.no_grad():
            nll = F.cross_entropy(logits, batch.labels, **options)
        return Loss(lost, int((batch.labels != IGNORED).sum()), nll)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Loss, accuracy and macro-F1."""
        return judge_pictures(model, self.validation, self.scaling, (self.height, self.width), self.given.crop).scores

    def show(self, model: nn.Module, folder: Path) -> None:
        some = self.validation.select(np.arange(min(SHOWN, len(self.validation))))
        pictures = self.scaling.scale(self.load(some))
        shown = [self.show_picture(model, pictures[at : at + 1], some.names(at)) for at in range(len(some))]
        save_examples(folder, shown)

    @torch.no_grad()
    def show_picture(self, model: nn.Module, picture: Float[Tensor, "1 c y x"], name: str) -> ShownExample:
        """One picture, the class that the model gives it, and what it attended to, where it has a map of that."""
        picture = picture.to(next(model.parameters()).device)
        if self.given.model == "glimpse":
            logits, trace = model(picture), None
        else:
            with watch(model) as trace:
                logits = model(picture)
        return ShownExample([Path(name).name], [self.classes[int(logits[0].argmax())]], trace)

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        mean, deviation = map(list, self.scaling)
        pixels = {"image_mean": mean, "image_std": deviation, "crop": self.given.crop}
        card = {"name": "picture", "classes": self.classes, "pixels": pixels}
        store.write(folder, model, self.config, facts | card)


def tell_rare(pictures: PictureSet) -> list[str]:
    """A sentence where a class has so few pictures that little can be learned of it."""
    rare = [name for name, count in count_labels(pictures.labels, pictures.classes).items() if count < 2]
    return [f"{len(rare)} classes have no more than one picture to learn from, such as {rare[0]!r}"] if rare else []


@torch.inference_mode()
def judge_pictures(
    model: nn.Module, pictures: PictureSet, scaling: PixelScaling, size: tuple[int, int], crop: bool
) -> Judgement:
    """Loss, accuracy and macro-F1 of a model on pictures, and which class was taken for which."""
    device, channels = next(model.parameters()).device, len(scaling.mean)
    logits = []
    for first in range(0, len(pictures), AT_ONCE):
        some = pictures.select(np.arange(first, min(len(pictures), first + AT_ONCE)))
        logits.append(model(scaling.scale(some.load(*size, channels, crop=crop)).to(device)).cpu())
    said = torch.cat(logits)
    confusion = count_confusion(pictures.labels, said.argmax(-1).numpy(), len(pictures.classes))
    found = score_confusion(confusion)
    loss = float(F.cross_entropy(said, torch.from_numpy(pictures.labels)))
    return Judgement({"loss": loss} | {name: found[name] for name in ("accuracy", "macro_f1")}, confusion)


class PictureOptions(EvaluationOptions):
    """The options of `regard evaluate` for a model of pictures."""

    data: str = Field("", description="labelled pictures; by default those of the training")
    part: Literal["validation", "test"] = Field("validation", description="which part of them")


class PictureTask(BaseTask):
    """Pictures in, their classes out."""

    name, settings, options = "picture", PictureSettings, PictureOptions

    def prepare(self, settings: PictureSettings, folder: Path) -> PreparedPictures:
        return PreparedPictures(settings, folder)

    def evaluate(self, folder: Path, options: PictureOptions) -> dict[str, Any]:
        from regard.tasks.evaluate_pictures import evaluate_pictures

        return evaluate_pictures(folder, options)

    def report(self, result: dict[str, Any]) -> str:
        from regard.tasks.evaluate_pictures import report_pictures

        return report_pictures(result)

    def next_command(self, run: str) -> str:
        return f"classify-image PICTURE.png --model {run}"
