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
from torch import Tensor

from regard.app.protocol.refusal import Refusal
from regard.app.protocol.wire import EditOf, RunAsk
from regard.app.runners.chances import both, divergence, likely
from regard.app.runners.edits import edited
from regard.app.runners.runner import Changed, Ran, RunMonitor, output
from regard.trace.change.effect import numbers_of
from regard.trace.watch import watch

DATA = re.compile(r"data:image/(png|jpeg|webp|gif|bmp);base64,([A-Za-z0-9+/=]+)", re.ASCII)
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
PIXELS = 24_000_000


class Seeing:
    """A model that cuts a picture into patches."""

    def __init__(self, name: str, model: Any, folder: Path) -> None:
        self.name, self.model = name, model
        size = model.config.image_size
        self.size = (int(size), int(size)) if isinstance(size, int) else (int(size[0]), int(size[1]))  # rows, columns
        told = prepared(folder)
        self.mean, self.deviation = told.get("image_mean", [0.5] * 3), told.get("image_std", [0.5] * 3)

    @torch.no_grad()
    def run(self, ask: RunAsk, telling: RunMonitor) -> Ran:
        if ask.picture is None:
            raise Refusal(f"{self.name} looks at a picture, and none came; choose one").coded(
                "picture.none", model=self.name
            )
        picture = opened(ask.picture).resize((self.size[1], self.size[0]))
        given = {"picture": address_of(picture)}
        layers = self.layers(given) if ask.edits else []
        with watch(self.model) as trace, edited(self.model, layers, ask.edits):
            logits = self.look(given)
        shown = {"address": given["picture"], "width": self.size[1], "height": self.size[0]}
        return Ran(trace, self.outcome(logits), given, shown)

    @torch.no_grad()
    def again(self, given: dict[str, Any], layers: list[str], edits: list[EditOf], telling: RunMonitor) -> Changed:
        before = self.look(given)
        with watch(self.model) as trace, edited(self.model, layers, edits):
            after = self.look(given)
        found = Changed(trace, self.outcome(after))
        if self.classes(after):
            found.before, found.after = both(before[0], after[0], self.label)
            found.kl = divergence(before[0], after[0])
        return found

    def look(self, given: dict[str, Any]) -> Tensor:
        """What the model gives for the picture."""
        pixels = np.asarray(opened(given["picture"]), dtype=np.float32) / 255.0  # rows columns 3
        scaled = (pixels - np.asarray(self.mean, dtype=np.float32)) / np.asarray(self.deviation, dtype=np.float32)
        return numbers_of(self.model(pixel_values=torch.from_numpy(scaled).permute(2, 0, 1)[None]))[0]

    def layers(self, given: dict[str, Any]) -> list[str]:
        with watch(self.model) as trace:
            self.look(given)
        return [layer.name for layer in trace.layers]

    def outcome(self, logits: Tensor) -> dict[str, Any]:
        return output(classes=likely(logits[0], self.label) if self.classes(logits) else None)

    def classes(self, logits: Tensor) -> bool:
        return logits.ndim == 2 and len(getattr(self.model.config, "id2label", None) or {}) == logits.shape[-1]

    def label(self, number: int) -> str:
        return str(self.model.config.id2label[number])


def opened(address: str) -> Any:
    """The picture in a data: address, in red, green and blue."""
    from PIL import Image, UnidentifiedImageError

    found = DATA.fullmatch(address)
    if found is None:
        raise Refusal("the picture is no data: address of a PNG, JPEG, WebP, GIF or BMP; choose another file").coded(
            "picture.kind"
        )
    try:
        picture = Image.open(io.BytesIO(base64.b64decode(found[2], validate=True)), formats=FORMATS)
        if picture.width * picture.height > PIXELS:
            raise Refusal(
                f"the picture has {picture.width} × {picture.height} pixels, but at most {PIXELS:,} are read; shrink it"
            ).coded("picture.large", width=picture.width, height=picture.height, limit=PIXELS)
        return picture.convert("RGB")
    except (binascii.Error, UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        if isinstance(error, Refusal):
            raise
        raise Refusal(f"the picture cannot be read ({type(error).__name__}); choose another file").coded(
            "picture.damaged"
        ) from error


def address_of(picture: Any) -> str:
    """A picture as a data: address."""
    data = io.BytesIO()
    picture.save(data, "PNG")
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"


def prepared(folder: Path) -> dict[str, Any]:
    """How the model wants its pixels, where its folder says so."""
    try:
        found = json.loads((folder / "preprocessor_config.json").read_bytes())
    except (OSError, ValueError):
        return {}
    right = isinstance(found, dict) and all(
        isinstance(found.get(key, [0.5] * 3), list) and len(found.get(key, [0.5] * 3)) == 3
        for key in ("image_mean", "image_std")
    )
    return found if right else {}
