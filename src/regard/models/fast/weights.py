"""The weights of a Llama as kernels find them: addresses, sizes and codes, of its parameters or of a file."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regard.models.fast.tables import F32, LAYER, MODEL, NAMES
from regard.models.llama import Llama, LlamaConfig

Records = NDArray[Any]


@dataclass(frozen=True)
class StoredMatrix:
    """A matrix, or a vector, in memory: `data` owns it."""

    data: Tensor | NDArray[Any]
    rows: int
    columns: int
    code: int = F32

    @property
    def address(self) -> int:
        return self.data.data_ptr() if isinstance(self.data, Tensor) else self.data.ctypes.data

    @property
    def nbytes(self) -> int:
        return self.data.nbytes


# Names of a layer's parts in `LAYER`, and of the modules that hold them in a `Llama`.
MATRICES = {
    "q": "attention.to_q", "k": "attention.to_k", "v": "attention.to_v", "out": "attention.to_out",
    "gate": "feed_forward.to_gate", "up": "feed_forward.to_hidden", "down": "feed_forward.to_out",
}  # fmt: skip
NORMS = {
    "attention_norm": "around_attention.norm", "hidden_norm": "around_feed_forward.norm",
    "query_norm": "attention.q_norm", "key_norm": "attention.k_norm",
}  # fmt: skip


class StoredWeights:
    """All weights of a model of this config, by the names that its state dict has, as records for kernels.

    `stored` says for each name where it is; the head may be missing, where the embeddings are the head.
    """

    def __init__(self, config: LlamaConfig, stored: dict[str, StoredMatrix]) -> None:
        self.config, self.stored = config, stored
        self.kv_heads = config.heads if config.kv_heads is None else config.kv_heads
        self.head_width = config.width // config.heads if config.head_width is None else config.head_width
        self.model, self.layers = np.zeros(1, MODEL), np.zeros(config.layers, LAYER)
        self._describe_model(self.model[0])
        for index, (layer, window) in enumerate(zip(self.layers, config.windows)):
            layer["window"] = window or 0
            for field, module in NORMS.items():
                layer[field] = self._address(f"blocks.{index}.{module}.weight")
            for field, module in MATRICES.items():
                self._describe_matrix(layer[field], f"blocks.{index}.{module}")

    @property
    def nbytes(self) -> int:
        """Bytes of all weights."""
        return sum(one.nbytes for one in self.stored.values())

    def count_codes(self) -> dict[str, int]:
        """How many matrices lie in memory in which code."""
        names = Counter(NAMES[one.code] for one in self.stored.values() if one.rows > 1 and one.columns > 1)
        return dict(names.most_common())

    def _describe_model(self, record: Any) -> None:
        config = self.config
        record["width"], record["heads"], record["hidden"] = config.width, config.heads, config.hidden
        record["kv_heads"], record["head_width"] = self.kv_heads, self.head_width
        record["norm"], record["norm_eps"] = self._address("norm.weight"), config.norm_eps
        record["scale"] = self.head_width**-0.5
        self._describe_matrix(record["embed"], "embed")
        self._describe_matrix(record["head"], "embed" if config.tied else "head")

    def _describe_matrix(self, record: Any, name: str) -> None:
        matrix = self.stored[f"{name}.weight"]
        record["address"], record["code"] = matrix.address, matrix.code
        record["rows"], record["columns"] = matrix.rows, matrix.columns
        record["bias"] = self._address(f"{name}.bias")

    def _address(self, name: str) -> int:
        return self.stored[name].address if name in self.stored else 0


def store_parameters(model: Llama) -> dict[str, StoredMatrix]:
    """The parameters of a model where they lie; one that is not in one piece is copied."""
    parameters = {name: one.detach().contiguous() for name, one in model.named_parameters()}
    return {name: StoredMatrix(one, len(one), one.shape[-1]) for name, one in parameters.items()}
