"""Small language models with random weights in float64, and what their own modules give, heard by torch's hooks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import transformers
from torch import Tensor, nn

LAYERS, HEADS, WIDTH, WORDS, B, N = 3, 4, 20, 31, 2, 7


class PlainBlock(nn.Module):
    """A post-norm block, written by hand: softmax(q kᵀ/√d) v, one matrix for all heads behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 13), nn.GELU(), nn.Linear(13, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (to(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for to in (self.to_q, self.to_k, self.to_v))
        mix = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
        x = self.first(x + self.to_out(mix.transpose(1, 2).flatten(-2)))
        return self.second(x + self.mlp(x))


class PlainModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Parameter(torch.randn(N, WIDTH))
        self.blocks = nn.ModuleList(PlainBlock() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class OfTorch(nn.Module):
    """torch's own encoder, pre-norm, whose native fast path inference would take."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 13, 0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.encoder(self.embed(ids)))


def of_transformers(family: str) -> nn.Module:
    if family == "gpt2":
        config: Any = transformers.GPT2Config(
            vocab_size=WORDS, n_positions=19, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_inner=13,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        )  # fmt: skip
        return transformers.GPT2LMHeadModel(config)
    config = transformers.LlamaConfig(
        vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=13, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=2, head_dim=6, max_position_embeddings=19, attention_bias=True,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "gpt2": lambda: of_transformers("gpt2"),
    "llama": lambda: of_transformers("llama"),
    "by hand": PlainModel,
    "of torch": OfTorch,
}
BLOCKS = {"gpt2": "transformer.h", "llama": "model.layers", "by hand": "blocks", "of torch": "encoder.layers"}
OUT = {"gpt2": "attn.c_proj", "llama": "self_attn.o_proj", "by hand": "to_out"}  # the projection behind the heads
MLP = {"gpt2": "mlp", "llama": "mlp", "by hand": "mlp"}


def build(name: str) -> nn.Module:
    """Sharp enough that heads differ; biases and scales of norms are drawn, too."""
    torch.manual_seed(3)
    model = MODELS[name]().double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4) if parameter.ndim > 1 else parameter.data.add_(
            torch.randn_like(parameter) / 3
        )
    return model


def draw_ids() -> Tensor:
    return torch.randint(WORDS, (B, N), generator=torch.Generator().manual_seed(5))


def logits_of(output: Any) -> Tensor:
    return output.logits if hasattr(output, "logits") else output


@contextmanager
def hear(module: nn.Module) -> Iterator[list[Any]]:
    """The (input, output) of each call of a module."""
    found: list[Any] = []
    handle = module.register_forward_hook(lambda _, given, out: found.append((given[0], first_of(out))))
    try:
        yield found
    finally:
        handle.remove()


def first_of(out: Any) -> Tensor:
    return out[0] if isinstance(out, tuple) else out
