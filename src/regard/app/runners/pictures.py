"""Models that look at a picture: those of ours, and of the `transformers` library."""

import base64
import binascii
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.app.protocol.messages import EditSpec, RunRequest, ShownGlimpses, ShownPicture
from regard.app.protocol.refusal import Refusal
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.probabilities import Prediction, describe_output
from regard.app.runners.runner import EditResult, Inputs, Runner, RunResult
from regard.data.picture_file import address_of
from regard.errors import RegardError
from regard.models.glimpse import Glimpse
from regard.models.open.open_model import open_model
from regard.models.open.read_pixels import PixelScaling, read_pixel_scaling
from regard.models.read_labels import read_labels
from regard.tasks.glimpse_trace import describe_glimpses, trace_glimpses
from regard.trace.change.effect import numbers_of

DATA = re.compile(r"data:image/(png|jpeg|webp|gif|bmp);base64,([A-Za-z0-9+/=]+)", re.ASCII)
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
PIXELS = 24_000_000


class PictureRunner(Runner):
    """A model that cuts a picture into patches: one of `transformers`, or of ours.

    `size` is that of the pictures it is shown, (rows, columns); `labels` are the names of its classes, where it has
    some.
    """

    def __init__(
        self, name: str, model: Any, size: tuple[int, int], scaling: PixelScaling, labels: Sequence[str] = ()
    ) -> None:
        self.name, self.model, self.size, self.scaling, self.labels = name, model, size, scaling, labels

    def read(self, request: RunRequest, monitor: RunMonitor) -> Inputs:
        return {"picture": address_of(read_asked_picture(request, self.name, self.size))}

    def forward(self, inputs: Inputs) -> Prediction | None:
        logits = numbers_of(self.model(self.scale(inputs)))[0]
        if logits.ndim != 2 or len(self.labels) != logits.shape[-1]:
            return None
        return Prediction(logits[0], self.labels.__getitem__, "classes")

    def scale(self, inputs: Inputs) -> Tensor:
        """The picture as the model wants it, (1, c, y, x)."""
        picture = decode_picture(inputs["picture"]).convert("L" if len(self.scaling.mean) == 1 else "RGB")
        pixels = np.asarray(picture).reshape(*self.size, -1).transpose(2, 0, 1)[None]
        return self.scaling.scale(np.ascontiguousarray(pixels))

    def picture(self, inputs: Inputs) -> ShownPicture:
        return ShownPicture(address=inputs["picture"], width=self.size[1], height=self.size[0])


class GlimpseRunner(PictureRunner):
    """A model that looks by glimpses: there is no map to hear, its places are asked for and drawn."""

    def run(self, request: RunRequest, monitor: RunMonitor) -> RunResult:
        if request.edits:
            raise refuse_edits()
        inputs = self.read(request, monitor)
        output = describe_output(self.forward(inputs), None)
        locations = self.find_glimpses(inputs)
        shown = self.picture(inputs)
        shown.glimpses = ShownGlimpses.model_validate(describe_glimpses(self.model, locations))
        return RunResult(trace_glimpses(self.model, locations), output, inputs, shown)

    def run_again(self, inputs: Inputs, layers: list[str], edits: list[EditSpec], monitor: RunMonitor) -> EditResult:
        raise refuse_edits()

    @torch.no_grad()
    def find_glimpses(self, inputs: Inputs) -> Tensor:
        """Where it looks at a picture, (t, 2)."""
        path: Any = self.model(self.scale(inputs), paths=True)
        return path.locations[0]


def refuse_edits() -> RegardError:
    """What is said where edits of such a model are wanted."""
    why = "a model that looks by glimpses weighs nothing, so there is no attention to edit; edit a model that attends"
    return Refusal(why, 409).with_code("edit.glimpses")


def read_asked_picture(request: RunRequest, name: str, size: tuple[int, int]) -> Any:
    """The picture that came with a request, in the size of the model."""
    if request.picture is None:
        raise Refusal(f"{name} looks at a picture, and none came; choose one").with_code("picture.none", model=name)
    return decode_picture(request.picture).resize((size[1], size[0]))


def open_picture_reader(name: str, folder: Path) -> Runner:
    """The runner of a model of ours that looks at pictures, in its folder."""
    model: Any = open_model(folder)[0]
    config = model.config
    scaling = read_pixel_scaling(folder, config.channels)
    runner = GlimpseRunner if isinstance(model, Glimpse) else PictureRunner
    return runner(name, model, (config.image_height, config.image_width), scaling, read_labels(folder))


def open_library_pictures(name: str, model: Any, folder: Path) -> Runner:
    """The runner of a model of `transformers` that does, in its folder."""
    size = model.config.image_size
    rows, columns = (size, size) if isinstance(size, int) else size
    return PictureRunner(name, model, (int(rows), int(columns)), read_pixel_scaling(folder, 3), read_labels(folder))


def decode_picture(address: str) -> Any:
    """The picture in a data: address, in red, green and blue."""
    from PIL import Image, UnidentifiedImageError

    matched = DATA.fullmatch(address)
    if matched is None:
        raise Refusal(
            "the picture is no data: address of a PNG, JPEG, WebP, GIF or BMP; choose another file"
        ).with_code("picture.kind")
    try:
        picture = Image.open(io.BytesIO(base64.b64decode(matched[2], validate=True)), formats=FORMATS)
        if picture.width * picture.height > PIXELS:
            raise Refusal(
                f"the picture has {picture.width} × {picture.height} pixels, but at most {PIXELS:,} are read; shrink it"
            ).with_code("picture.large", width=picture.width, height=picture.height, limit=PIXELS)
        return picture.convert("RGB")
    except (binascii.Error, UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        if isinstance(error, Refusal):
            raise
        raise Refusal(f"the picture cannot be read ({type(error).__name__}); choose another file").with_code(
            "picture.damaged"
        ) from error
