"""The engine "fast" of decoder-only models: float32 weights where they lie, kernels compiled by numba."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch

from regard.models.decoder_state import DecoderState
from regard.models.llama import Llama

if TYPE_CHECKING:
    from regard.models.causal import CausalModel
    from regard.models.causal_state import CausalState

MISSING = "numba is not installed: pip install 'regard[fast]'"


class FastEngine:
    """An `Engine` for a `Llama` in float32 on the CPU."""

    def find_obstacle(self, model: "CausalModel") -> str | None:
        """Why kernels cannot compute this model; None where they can."""
        if find_spec("numba") is None:
            return MISSING
        if type(model) is not Llama:
            return f"it computes a Llama, and this is a {type(model).__name__}"
        for name, parameter in model.named_parameters():
            if parameter.dtype is not torch.float32 or parameter.device.type != "cpu":
                return f"it reads float32 on the CPU, and {name} is {parameter.dtype} on {parameter.device}"
        return None

    def begin(self, plain: "CausalState") -> DecoderState:
        """A state that reads the prompt, and goes on, by kernels."""
        from regard.models.fast.state import FastModelState
        from regard.models.fast.weights import StoredWeights, store_parameters

        model = plain.model
        return FastModelState(StoredWeights(model.config, store_parameters(model)), plain)


ENGINE = FastEngine()
