"""Small models to swap, and the same under a dense mask: torch's own kernel handed one more mask."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models import GPTConfig
from tests.trace.models import seeded

VOCABULARY, LENGTH = 13, 11
Dense = Callable[[int, int], Tensor]  # (q, k) → which cells are seen, (q, k)


def near(before: int, after: int = 0, first: int = 0) -> Dense:
    """A window as cells, from its definition; the last query stands at the last key."""

    def cells(q: int, k: int) -> Tensor:
        ahead = torch.arange(k) - (torch.arange(q)[:, None] + k - q)
        return (ahead >= -before) & (ahead <= after) | (torch.arange(k) < first)

    return cells


@contextmanager
def masked(dense: Dense) -> Iterator[None]:
    """Every call of torch's kernel gets this mask beside its own."""
    kernel = F.scaled_dot_product_attention

    def more(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
             is_causal: bool = False, **how: Any) -> Tensor:  # fmt: skip
        cells = dense(q.shape[-2], k.shape[-2])
        if is_causal:
            cells = cells & torch.ones_like(cells).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            cells = cells & attn_mask
        elif attn_mask is not None:
            cells = attn_mask.masked_fill(~cells, -torch.inf)
        return kernel(q, k, v, cells, dropout_p, False, **how)

    with patch.object(F, "scaled_dot_product_attention", more):
        yield


def own() -> nn.Module:
    return seeded(GPTConfig(VOCABULARY, 12, 3, 2, 1024, positions="rotary").build()).double().eval()


def gpt2(**how: Any) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": VOCABULARY, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 1024}
    ends = {"bos_token_id": None, "eos_token_id": None}
    return seeded(GPT2LMHeadModel(GPT2Config(**sizes, **ends, **how))).double().eval()


def llama(**how: Any) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": VOCABULARY, "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 6, "num_key_value_heads": 2, "bos_token_id": None, "eos_token_id": None}
    return seeded(LlamaForCausalLM(LlamaConfig(**sizes, **heads, **how))).double().eval()


def bert(**how: Any) -> nn.Module:
    from transformers import BertConfig, BertModel

    sizes = {"vocab_size": VOCABULARY, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2}
    return seeded(BertModel(BertConfig(**sizes, num_attention_heads=3, **how))).double().eval()


MODELS = {"own": own, "gpt2": gpt2, "llama": llama, "bert": bert}


def ids(batch: int = 2, length: int = LENGTH) -> Tensor:
    return torch.randint(VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(1))


def given(model: nn.Module, *args: Any, **named: Any) -> Tensor:
    """What a model gives, as one tensor, without gradients."""
    with torch.no_grad():
        out = model(*args, **named)
    if isinstance(out, Tensor):
        return out
    found: Tensor = out.logits if hasattr(out, "logits") else out.last_hidden_state
    return found
