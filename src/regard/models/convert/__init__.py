"""Weights of other libraries as ours, and back: one small table per family, one engine for all.

A table (`gpt2.py`, `llama.py`, `bert.py`, `marian.py`, …) lists the keys of the foreign config, the foreign tensors
and what is done with each. `convert_config` and `convert_weights` apply it one way, `export_config` and
`export_weights` the other; `from_transformers` and `to_transformers` do both with folders. A new family is a table and
its line in `families.py`.
"""

from regard.models.convert.checkpoint import from_torch_transformer, from_transformers
from regard.models.convert.export import to_transformers
from regard.models.convert.families import FAMILIES, convert_config, export_config
from regard.models.convert.weights import convert_weights, export_weights

__all__ = [
    "FAMILIES",
    "convert_config",
    "convert_weights",
    "export_config",
    "export_weights",
    "from_torch_transformer",
    "from_transformers",
    "to_transformers",
]
