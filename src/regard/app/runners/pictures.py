"""Models of the `transformers` library that look at a picture."""

import base64
import binascii
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.app.protocol.messages import RunRequest, ShownPicture
from regard.app.protocol.refusal import Refusal
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.probabilities import Prediction
from regard.app.runners.runner import Inputs, Runner
from regard.trace.change.effect import numbers_of

DATA = re.compile(r"data:image/(png|jpeg|webp|gif|bmp);base64,([A-Za-z0-9+/=]+)", re.ASCII)
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
PIXELS = 24_000_000


class PictureRunner(Runner):
    """A model that cuts a picture into patches."""

    def __init__(self, name: str, model: Any, folder: Path) -> None:
        self.name, self.model = name, model
        size = model.config.image_size
        self.size = (int(size), int(size)) if isinstance(size, int) else (int(size[0]), int(size[1]))  # rows, columns
        settings = read_preprocessor(folder)
        self.mean, self.deviation = settings.get("image_mean", [0.5] * 3), settings.get("image_std", [0.5] * 3)

    def read(self, request: RunRequest, monitor: RunMonitor) -> Inputs:
        if request.picture is None:
            raise Refusal(f"{self.name} looks at a picture, and none came; choose one").with_code(
                "picture.none", model=self.name
            )
        return {"picture": encode_picture(decode_picture(request.picture).resize((self.size[1], self.size[0])))}

    def forward(self, inputs: Inputs) -> Prediction | None:
        pixels = np.asarray(decode_picture(inputs["picture"]), dtype=np.float32) / 255.0  # rows columns 3
        scaled = (pixels - np.asarray(self.mean, dtype=np.float32)) / np.asarray(self.deviation, dtype=np.float32)
        logits = numbers_of(self.model(pixel_values=torch.from_numpy(scaled).permute(2, 0, 1)[None]))[0]
        labels = getattr(self.model.config, "id2label", None) or {}
        if logits.ndim != 2 or len(labels) != logits.shape[-1]:
            return None
        return Prediction(logits[0], lambda number: str(labels[number]), "classes")

    def picture(self, inputs: Inputs) -> ShownPicture:
        return ShownPicture(address=inputs["picture"], width=self.size[1], height=self.size[0])


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


def encode_picture(picture: Any) -> str:
    """A picture as a data: address."""
    data = io.BytesIO()
    picture.save(data, "PNG")
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"


def read_preprocessor(folder: Path) -> dict[str, Any]:
    """How the model wants its pixels, where its folder says so."""
    try:
        settings = json.loads((folder / "preprocessor_config.json").read_bytes())
    except (OSError, ValueError):
        return {}
    right = isinstance(settings, dict) and all(
        isinstance(settings.get(key, [0.5] * 3), list) and len(settings.get(key, [0.5] * 3)) == 3
        for key in ("image_mean", "image_std")
    )
    return settings if right else {}
