"""A model that writes what a picture shows, as it is opened, and pictures through it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError, ModelError
from regard.models import store
from regard.models.captioner import Captioner
from regard.models.open.read_pixels import is_cropped, read_pixel_scaling
from regard.models.read_tokenizer import TOKENIZER
from regard.tasks.caption import CaptionSettings, locate_captioner
from regard.tasks.picture_reader import PictureReader
from regard.tasks.write_captions import trace_caption, write_captions
from regard.trace.record.trace import Trace
from regard.training.settings import settings_from

AT_ONCE = 32  # pictures


class PictureCaption(NamedTuple):
    """What was written for a picture: its text, its words, and their ids."""

    text: str
    words: Sequence[str]
    ids: Sequence[int]


@dataclass(frozen=True)
class PictureCaptioner(PictureReader):
    """A model of pictures that writes, as `open_captioner` gives it."""

    model: Captioner
    vocabulary: Vocabulary | None = None
    longest: int = 40  # words of a caption

    def caption(self, sources: Sequence[Path | bytes], *, beams: int = 5) -> list[PictureCaption]:
        """What each picture shows."""
        return self.write([self.fit(one) for one in sources], beams=beams)

    def write(self, pictures: Sequence[UInt8[np.ndarray, "y x c"]], *, beams: int = 5) -> list[PictureCaption]:
        """The same of pictures in the size of the model."""
        made = []
        for first in range(0, len(pictures), AT_ONCE):
            values = torch.cat([self.scale(one) for one in pictures[first : first + AT_ONCE]])
            made += write_captions(self.model, values, beams=beams, longest=self.longest)
        words = self.words
        return [PictureCaption(words.decode(one.ids), words.names(one.ids), one.ids) for one in made]

    @property
    def words(self) -> Vocabulary:
        assert self.vocabulary is not None
        return self.vocabulary

    def trace(self, pixels: UInt8[np.ndarray, "y x c"], written: PictureCaption) -> Trace:
        """Where the model looked while it wrote this: rows are words, columns the locations of the picture."""
        if self.model.decoder.attention is None:
            raise ModelError(
                f"{self.name} looks at nothing while it writes (attention = none), so there is no map; take one with "
                "attention"
            ).with_code("model.blind")
        return trace_caption(self.model, self.scale(pixels), written.ids, self.words)

    @torch.no_grad()
    def look(self, pixels: UInt8[np.ndarray, "y x c"], written: PictureCaption) -> Float[Tensor, "t rows columns"]:
        """How much each word, and the end, took of each location of the picture."""
        weights = self.trace(pixels, written).layers[0].weights[0].dense()[0]
        rows = self.model.config.image_height // self.model.config.stride
        return weights.unflatten(-1, (rows, -1))


def open_captioner(where: str | Path) -> PictureCaptioner:
    """The model of this name (`regard models`), of a run, or in its folder, that captions pictures.

    >>> open_captioner("filler")
    Traceback (most recent call last):
    regard.errors.ModelError: filler holds a bert, which captions no pictures; name a model that does
    """
    folder = locate_captioner(str(where))
    facts, model = store.describe(folder), store.read(folder)
    assert isinstance(model, Captioner)
    try:
        settings = settings_from(CaptionSettings, facts.get("settings") or {})
    except ConfigError as error:
        raise ModelError(f"{where} was trained by another version of regard: {error}") from error
    scaling, name = read_pixel_scaling(folder, model.config.channels), facts.get("name") or folder.name
    vocabulary = Vocabulary.load(folder / TOKENIZER)
    return PictureCaptioner(str(name), model, scaling, is_cropped(folder), facts, vocabulary, settings.max_length)
