"""How many tokens a model takes at once."""

from typing import Any

from torch import nn

from regard.models.causal import CausalModel

STRETCH = 16  # a model of ours whose positions end nowhere still reads no more than so many times what it was made for
LENGTHS = ("max_position_embeddings", "n_positions", "n_ctx", "max_source_positions")
UNLIMITED = 1_000_000  # what a tokenizer says that knows no limit is larger


def max_tokens(model: nn.Module, tokenizer: Any = None) -> int | None:
    """How many tokens a model reads at most: its context; None where nothing says so.

    Of `transformers` the config says it, the tokenizer, and a table of learned positions, of which RoBERTa and its
    kind leave the first rows unused.

    >>> from regard.models import embedded
    >>> max_tokens(embedded.load("induction"))
    4096
    """
    if isinstance(model, CausalModel):
        return model.longest or STRETCH * int(model.config.context)
    config: Any = getattr(model, "config", None)
    if hasattr(config, "get_text_config"):
        config = config.get_text_config()
    limits = [getattr(config, name, None) for name in LENGTHS]
    limits += [getattr(tokenizer, "model_max_length", None), getattr(model, "longest", None)]
    limits += [
        one.num_embeddings - one.padding_idx - 1
        for name, one in model.named_modules()
        if name.endswith("position_embeddings") and isinstance(one, nn.Embedding) and one.padding_idx is not None
    ]
    return min((n for n in limits if isinstance(n, int) and 0 < n < UNLIMITED), default=None)
