"""Models of our own that write what a picture shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.app.protocol.messages import EditSpec, RunRequest, ShownPicture
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.pictures import decode_picture, read_asked_picture
from regard.app.runners.probabilities import Prediction
from regard.app.runners.runner import Inputs, Runner
from regard.app.runners.translators import rewrite_whole
from regard.data.picture_file import address_of
from regard.data.special import BEGIN
from regard.errors import ModelError
from regard.tasks.picture_captioner import PictureCaptioner, open_captioner
from regard.tasks.write_captions import name_caption, write_captions
from regard.tasks.writing import WritingIds
from regard.trace.record.trace import Trace
from regard.trace.watch import watch

BEAMS = 5


class CaptionRunner(Runner):
    """A captioner: what it is fed while it is watched is its own caption, written before."""

    stepwise = True  # it looks once for each word

    def __init__(self, opened: PictureCaptioner) -> None:
        self.opened, self.model, self.size = opened, opened.model, opened.size

    def read(self, request: RunRequest, monitor: RunMonitor) -> Inputs:
        address = address_of(read_asked_picture(request, self.opened.name, self.size))
        written = write_captions(self.model, self.values(address), beams=BEAMS, longest=self.opened.longest)[0].ids
        monitor.must_go_on()
        return {"picture": address, "written": list(written)}

    @contextmanager
    def watch(self, inputs: Inputs) -> Iterator[Trace]:
        with watch(self.model) as trace:
            yield trace
        stride = self.model.config.stride
        grid = (self.size[0] // stride, self.size[1] // stride)
        name_caption(trace, self.opened.words.names(inputs["written"]), grid)

    def forward(self, inputs: Inputs) -> Prediction:
        """Of every word that was written, and of the end."""
        logits = self.model(self.values(inputs["picture"]), torch.tensor([[BEGIN, *inputs["written"]]]))[0]
        return Prediction(logits, lambda number: self.opened.words.decode([number]))

    def values(self, address: str) -> Float[Tensor, "1 c y x"]:
        """A picture as the model wants it."""
        picture = decode_picture(address).convert("L" if self.model.config.channels == 1 else "RGB")
        return self.opened.scale(np.asarray(picture).reshape(*self.size, -1))

    def written_text(self, inputs: Inputs) -> str:
        return self.opened.words.decode(inputs["written"])

    def rewrite(
        self, inputs: Inputs, layers: list[str], edits: list[EditSpec], monitor: RunMonitor, *, whole: bool
    ) -> str:
        """Greedily: the likeliest word each time."""
        longest, words = self.opened.longest, self.opened.words
        if whole:
            return words.decode(
                rewrite_whole(self, inputs, layers, edits, monitor, longest=longest, special=WritingIds())
            )
        with self.edit(layers, edits):
            return words.decode(write_captions(self.model, self.values(inputs["picture"]), longest=longest)[0].ids)

    def picture(self, inputs: Inputs) -> ShownPicture:
        return ShownPicture(address=inputs["picture"], width=self.size[1], height=self.size[0])


def open_captioner_runner(name: str, folder: Path) -> CaptionRunner:
    """The runner of a model that captions pictures, in its folder."""
    opened = open_captioner(folder)
    if opened.model.decoder.attention is None:
        raise ModelError(
            f"{name} looks at nothing while it writes (attention = none), so there is no map to show; take one with "
            "attention"
        ).with_code("model.blind")
    return CaptionRunner(opened)
