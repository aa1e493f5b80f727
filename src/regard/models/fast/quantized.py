"""A Llama of a GGUF file whose codes stay codes: a tenth to a seventh of the memory, and of the time, of float32."""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.observe import OBSERVER
from regard.errors import ConfigError, ModelError, WatchError
from regard.extras import importing
from regard.models.causal_inputs import pad_left
from regard.models.decoder_state import DecoderState
from regard.models.gguf import GGUFFile
from regard.models.llama import LlamaConfig

if TYPE_CHECKING:
    from regard.models.fast.weights import StoredWeights

MISSING = "to compute with the codes of a GGUF file as they are, install regard[fast]: pip install 'regard[fast]'"


class QuantizedModel:
    """The model of a GGUF file, computed with the codes of the file as they are, in float32 otherwise.

    `QuantizedModel.read("file.gguf")` packs the codes so that a kernel reads them in one sweep: the same bits, so that
    its logits are those of `open_model("file.gguf")`, which unpacks every weight, up to rounding. It has no modules to
    watch or to train.
    """

    def __init__(self, weights: "StoredWeights", name: str) -> None:
        self.weights, self.name = weights, name

    @classmethod
    def read(cls, file: GGUFFile | str | os.PathLike[str]) -> "QuantizedModel":
        """The model of a file: any Llama; weights of a sort that has no kernel are unpacked to float32."""
        with importing("numba", "llvmlite", missing=ModelError(MISSING)):
            import_module("numba")
        from regard.models.fast.codes import read_codes

        file = file if isinstance(file, GGUFFile) else GGUFFile(file)
        return cls(read_codes(file), file.path.name)

    @property
    def config(self) -> LlamaConfig:
        """Its sizes."""
        return self.weights.config

    @property
    def longest(self) -> None:
        """How many tokens it can read: rotary positions end nowhere."""

    @property
    def nbytes(self) -> int:
        """Bytes of its weights in memory."""
        return self.weights.nbytes

    def begin(
        self, prompt: Tensor | Sequence[Sequence[int] | Tensor], *, window: int | None = None, sinks: int = 0
    ) -> DecoderState:
        """Ready to write after each row of `prompt`, (b, t) or a list of rows of different lengths."""
        from regard.models.fast.state import FastState

        if OBSERVER.get() is not None:
            raise WatchError(
                f"{self.name} is computed with its codes, whose attention nobody can watch or edit; open it with its "
                f"weights unpacked: regard.open_model({self.name!r})"
            )
        if window is not None or sinks:
            raise ConfigError(
                f"a window of {window} with {sinks} sinks came, which kernels do not have; open the model with its "
                f"weights unpacked: regard.open_model({self.name!r})"
            )
        return FastState(self.weights, *pad_left(prompt))

    def __call__(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t n"]:
        """The logits of the token after each of `ids`."""
        from regard.models.fast.decoder import KernelDecoder

        return torch.stack([KernelDecoder(self.weights, 1).read_all(row[None]) for row in ids])

    def __repr__(self) -> str:
        sizes, kinds = self.config, ", ".join(self.weights.count_codes())
        return (
            f"QuantizedModel({self.name!r}: {sizes.layers} layers of width {sizes.width}, {self.nbytes / 1e6:.0f} MB "
            f"as {kinds})"
        )
