"""The engine "fast" of decoder-only models: float32 weights where they lie, kernels compiled by numba."""

from importlib import import_module
from typing import Any

import torch

from regard.models.causal_state import CausalState
from regard.models.decoder_state import DecoderState
from regard.models.lean.obstacles import find_obstacle
from regard.models.lean.state import LEAN
from regard.models.llama import Llama

MISSING = "numba is not installed: pip install 'regard[fast]'"


class FastEngine:
    """An `Engine` for a `Llama` in float32 on the CPU. A window of `begin` is left to the lean engine."""

    least_size = 5_000_000  # parameters from which on loading the kernels, about a second, is soon earned

    def find_obstacle(self, model: Any) -> str | None:
        """Why kernels cannot compute this model now; None where they can."""
        if type(model) is not Llama:
            return f"it computes a Llama, and this is a {type(model).__name__}"
        if any(parameter.dtype is not torch.float32 for parameter in model.parameters()):
            return "its weights are not all float32"
        return find_obstacle(model) or find_missing()

    def begin(self, plain: CausalState) -> DecoderState:
        """The state of the same prompt, whose steps are compiled."""
        if plain.window is not None:
            return LEAN.begin(plain)
        from regard.models.fast.model_state import FastModelState

        return FastModelState(plain)


def find_missing() -> str | None:
    """Why there are no kernels: numba is not there, or broken; None where it is."""
    try:
        import_module("numba")
    except ModuleNotFoundError:
        return MISSING
    except Exception as error:  # what a broken installation raises is its own affair
        return f"numba is installed but cannot be imported ({type(error).__name__}: {error})"
    return None


ENGINE = FastEngine()
