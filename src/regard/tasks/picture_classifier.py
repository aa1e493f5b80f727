"""A model that says which class a picture is of, as it is opened, and pictures through it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ModelError
from regard.models import store
from regard.models.glimpse import Glimpse
from regard.models.kinds import kind_of
from regard.models.open.load_model import load_location, widen
from regard.models.open.locate import UnknownModelError, locate
from regard.models.open.read_pixels import is_cropped, read_pixel_scaling
from regard.models.read_labels import read_labels
from regard.tasks.glimpse_trace import trace_glimpses
from regard.tasks.picture_reader import PictureReader
from regard.trace.record.trace import Trace
from regard.trace.watch import watch

AT_ONCE = 32  # pictures


@dataclass(frozen=True)
class PictureClassifier(PictureReader):
    """A model of pictures with the names of its classes, as `open_picture_classifier` gives it."""

    classes: list[str] = field(default_factory=list)

    @torch.inference_mode()
    def classify(self, sources: Sequence[Path | bytes]) -> Float[Tensor, "n classes"]:
        """The probability of each class for each picture."""
        made = [torch.empty(0, len(self.classes))]
        for first in range(0, len(sources), AT_ONCE):
            pictures = torch.cat([self.read(one) for one in sources[first : first + AT_ONCE]])
            made.append(self.model(pictures).softmax(-1))
        return torch.cat(made)

    @torch.no_grad()
    def find_glimpses(self, source: Path | bytes) -> Float[Tensor, "t 2"]:
        """Where a model that looks by glimpses looks at one picture, (down, right), −1 to 1 from edge to edge."""
        path: Any = self.model(self.read(source), paths=True)
        return path.locations[0]

    @torch.no_grad()
    def trace(self, source: Path | bytes) -> Trace:
        """What the model attends to in one picture."""
        if isinstance(self.model, Glimpse):
            return trace_glimpses(self.model, self.find_glimpses(source))
        with watch(self.model) as trace:
            self.model(self.read(source))
        return trace


def open_picture_classifier(where: str | Path, *, download: bool = False) -> PictureClassifier:
    """The model of this name: a run, a folder of ours, or a ViT, DeiT, DINOv2 or Swin of others with classes.

    >>> open_picture_classifier("filler")
    Traceback (most recent call last):
    regard.errors.ModelError: 'filler' is a Bert, which tells no classes of pictures; name a model that does, or ...
    """
    try:
        place = locate(where, download=download)
    except UnknownModelError as error:
        raise ModelError(f"{error}; or train one: regard train picture") from error
    model: Any = widen(load_location(place)).model
    kind = kind_of(model)
    if kind is None or kind.reads != "picture" or kind.writes or model.gives_states:
        raise ModelError(
            f"{str(where)!r} is a {type(model).__name__}, which tells no classes of pictures; name a model that does, "
            "or train one: regard train picture"
        )
    classes = read_labels(place.path)
    if len(classes) != model.config.labels:
        raise ModelError(
            f"{str(where)!r} has {model.config.labels} classes, but names of {len(classes)}; give a whole copy of it"
        )
    facts = store.describe(place.path) if place.is_ours else {}
    scaling = read_pixel_scaling(place.path, model.config.channels)
    return PictureClassifier(place.name, model.eval(), scaling, is_cropped(place.path), facts, classes)
