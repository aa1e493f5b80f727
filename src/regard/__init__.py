"""regard: build, train and see attention.

The road, station by station:

    tokens → q, k, v → scores → mask → weights → mix → model → task → trace → view

`attend(q, k, v)` walks the middle of it. An attention map is never stored, it is asked: q and k give
any part of it exactly, whenever somebody looks.

>>> import regard, torch
>>> x = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])
>>> a = regard.attend(x, x, x, mask=regard.causal())
>>> a.weights[1]
tensor([0.2689, 0.7311, 0.0000])
"""

__version__ = "0.1.0"

from importlib import import_module
from typing import Any

# Every public name, and the module that makes it. Nothing is imported before a name is used, so that
# `import regard`, help and completion are instant; __init__.pyi tells the same to type checkers.
_HOMES = {
    "regard.attention.attend": ("attend",),
    "regard.attention.map": ("AttentionMap",),
    "regard.attention.mask": (
        "Mask",
        "allowed",
        "bigbird",
        "block_sparse",
        "blocked",
        "causal",
        "documents",
        "longformer",
        "padding",
        "prefix",
        "window",
    ),
    "regard.attention.matrix_free": ("Linformer", "Performer"),
    "regard.attention.score": ("Additive", "Bilinear", "Cosine", "Gaussian"),
    "regard.attention.weigh": ("entmax", "sigmoid", "softmax", "sparsemax", "top_k"),
    "regard.attention.kernel_regression": ("KernelRegression", "nadaraya_watson"),
    "regard.positions": (
        "ALiBi",
        "Buckets",
        "Learned",
        "Rotary",
        "Sinusoid",
    ),
    "regard.layers": (
        "DecoderBlock",
        "EncoderBlock",
        "KeyValueCache",
        "LongformerAttention",
        "MultiHead",
    ),
    "regard.tokens": ("Tokens",),
    "regard.models.open.open_model": ("open_model",),
    "regard.decode": ("Limits", "beam", "greedy", "sample"),
    "regard.tasks.text_translator": ("open_translator",),
    "regard.tasks.text_writer": ("open_writer",),
    "regard.errors": ("WatchError",),
    "regard.trace.change.swap": ("swap",),
    "regard.trace.audit": ("audit",),
    "regard.trace.census.census": ("census",),
    "regard.trace.change.edit": ("edit",),
    "regard.trace.file": ("load",),
    "regard.trace.change.importance": ("importance",),
    "regard.trace.record.trace": ("Trace",),
    "regard.trace.watch": ("watch",),
    "regard.trace.record.weights": ("from_weights",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = {"errors": "regard.errors", "models": "regard.models", "reference": "regard.attention.reference"}

__all__ = [*_HOME, *_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOME:
        raise AttributeError(f"module 'regard' has no attribute {name!r}; dir(regard) lists what it has")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
