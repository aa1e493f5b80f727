"""The small models that come with the package: each trained by a command that its manifest names."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from torch import nn

from regard.errors import ModelError
from regard.models import store

FOLDER = Path(__file__).parent / "weights"


def names() -> list[str]:
    """The names of the models that are here.

    >>> names()
    ['digits', 'en-zh', ..., 'filler', 'glimpses', 'induction', 'reader', 'sentence-encoder', ..., 'writer']
    """
    return sorted(manifest.parent.name for manifest in FOLDER.glob(f"*/{store.MANIFEST}"))


def load(name: str) -> nn.Module:
    """The model of this name, in eval mode.

    >>> import torch
    >>> model, words = load("induction"), tokenizer("induction")
    >>> logits = model(torch.tensor([words.encode("the cat sees A B C . the")]))
    >>> words.decode(logits[0].argmax(-1).tolist()[-1:])
    'cat'
    """
    return store.read(folder(name))


def describe(name: str) -> dict[str, Any]:
    """Its manifest: what it is, the command that made it, its sizes and its scores.

    >>> describe("induction")["scores"]["accuracy"] > 0.95
    True
    """
    return store.describe(folder(name))


def tokenizer(name: str) -> Any:
    """What turns text into the ids that the model reads.

    >>> tokenizer("induction").encode("A B C D A B C")
    [0, 1, 2, 3, 0, 1, 2]
    """
    from regard.models.read_tokenizer import read_tokenizer

    return read_tokenizer(folder(name))


def folder(name: str) -> Path:
    """Where the model of this name lies."""
    if name not in names():
        raise ModelError(f"there is no embedded model {name!r:.60}; {suggest(name)}")
    return FOLDER / name


def suggest(name: str) -> str:
    """What to say to somebody whose name is that of no model: the nearest ones, and how to list all of them.

    >>> suggest("sentimnt"), suggest("gpt2")
    ("did you mean 'sentiment'? `regard models` lists them all", '`regard models` lists them all')
    """
    near = get_close_matches(name, names(), 2)
    meant = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"{meant}`regard models` lists them all"
