"""Models of other libraries: the same outputs, and the maps that these libraries know of."""

import importlib.util
import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import regard
from tests.trace.look import look
from tests.trace.watched import MODES, watched

# x-transformers


def x_transformer(**how: Any) -> Any:
    library = pytest.importorskip("x_transformers", reason="needs x-transformers: pip install x-transformers")
    torch.manual_seed(0)
    layers = library.Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, **how)
    model = library.TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "talking" in name or "mem_" in name:  # which start as the identity, or at nothing
                parameter.add_(torch.randn_like(parameter) * 0.5)
    return model


X_TRANSFORMERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "key heads": {"attn_kv_heads": 2},
    "one key head": {"attn_one_kv_head": True},
    "rotary": {"rotary_pos_emb": True},
    "alibi": {"alibi_pos_bias": True},
    "memory keys": {"attn_num_mem_kv": 3},
    "normed": {"attn_qk_norm": True},
    "talking before": {"attn_pre_talking_heads": True},
    "the best three": {"attn_sparse_topk": 3},
}


@MODES
@pytest.mark.parametrize("name", X_TRANSFORMERS)
def test_x_transformers_maps_are_those_it_returns(name: str, mode: Any) -> None:
    model = x_transformer(**X_TRANSFORMERS[name])
    ids = torch.randint(50, (2, 7))
    with mode():
        trace = watched(model, ids)
        _, theirs = model(ids, return_attn=True)
    assert len(trace.layers) == len(theirs) == 2, trace.runs[0].notes
    for layer, right in zip(trace.layers, theirs, strict=True):
        assert_close(layer.weights.dense(), right, atol=1e-6, rtol=0)
    assert trace.verify(), trace.verify()


@MODES
@pytest.mark.parametrize("name", ["plain", "key heads", "one key head", "rotary", "alibi", "memory keys", "normed"])
def test_x_transformers_flash_maps_are_those_that_it_returns_without_flash(name: str, mode: Any) -> None:
    slow, fast = x_transformer(**X_TRANSFORMERS[name]), x_transformer(**X_TRANSFORMERS[name], attn_flash=True)
    fast.load_state_dict(slow.state_dict(), strict=True)
    ids = torch.randint(50, (2, 7))
    with mode():
        trace = watched(fast, ids)
        _, theirs = slow(ids, return_attn=True)
    for layer, right in zip(trace.layers, theirs, strict=True):
        assert layer.weights.kind == "computed"
        assert_close(layer.weights.dense(), right, atol=1e-5, rtol=0)
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize(
    "how",
    [
        {"attn_post_talking_heads": True},
        {"attn_pre_scale_post_talking_heads": True},
        {"attn_cog_signed": True},
        {"attn_hard": True},
        {"attn_head_learned_sink": True},
    ],
    ids=lambda how: next(iter(how)),
)
def test_weights_that_are_changed_after_softmax_are_shown_as_they_met_the_values_or_refused(
    how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = x_transformer(**how)
    library = sys.modules["x_transformers.attend"]
    met: list[Tensor] = []
    einsum = torch.einsum

    def tapped(equation: str, *operands: Tensor) -> Tensor:
        if equation.startswith("b h i j"):
            met.append(operands[0].detach().clone())
        return einsum(equation, *operands)

    ids = torch.randint(50, (2, 7))
    with torch.no_grad():
        trace = watched(model, ids)
        monkeypatch.setattr(library, "einsum", tapped)
        model(ids)
    assert len(met) == 2
    if not trace.layers:
        assert [proof.status for proof in trace.verify()] == ["refused"] * 2
        return
    for layer, right in zip(trace.layers, met, strict=True):
        assert_close(layer.weights.dense(), right, atol=1e-6, rtol=0)
        assert any("changed" in note or "learned sink" in note for note in layer.notes)


# PEFT


@pytest.mark.parametrize("way", ["LoRA", "prefix", "prompt", "IA3"])
def test_a_model_wrapped_by_peft_is_watched_as_the_model_that_it_makes(way: str) -> None:
    peft = pytest.importorskip("peft", reason="needs peft: pip install peft")
    from transformers import LlamaConfig, LlamaForCausalLM

    config = {
        "LoRA": lambda: peft.LoraConfig(target_modules=["q_proj", "k_proj", "v_proj"], init_lora_weights=False, r=4),
        "prefix": lambda: peft.PrefixTuningConfig(num_virtual_tokens=3),
        "prompt": lambda: peft.PromptTuningConfig(num_virtual_tokens=3),
        "IA3": lambda: peft.IA3Config(init_ia3_weights=False),
    }[way]()
    config.task_type = "CAUSAL_LM"
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    torch.manual_seed(0)
    inner = LlamaForCausalLM(LlamaConfig(vocab_size=61, num_key_value_heads=2, **sizes))
    model = peft.get_peft_model(inner, config).eval()
    ids = torch.randint(1, 60, (2, 7))
    with torch.no_grad():
        trace = watched(model, input_ids=ids)
        model.get_base_model().set_attn_implementation("eager")
        theirs = model(input_ids=ids, output_attentions=True).attentions
    extra = {"prefix": (7, 10), "prompt": (10, 10)}.get(way, (7, 7))
    for layer, right in zip(trace.layers, theirs, strict=True):
        assert layer.kind == "self"
        assert layer.weights.shape == (2, 4, *extra)
        assert_close(layer.weights.dense(), right, atol=1e-6, rtol=0)
    assert trace.verify(), trace.verify()
    model.get_base_model().set_attn_implementation("sdpa")
    how = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    with regard.watch(model) as told:
        model.generate(input_ids=ids, **how)
    assert len(told.runs) == 1
    assert told[0].weights.shape == (2, 4, extra[0] + 3, extra[1] + 3)


# Pictures


TIMM = textwrap.dedent("""
    import importlib.abc, json, sys, types
    from importlib.machinery import ModuleSpec
    from unittest.mock import MagicMock

    class Absent(types.ModuleType):
        __path__ = []
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return MagicMock()

    class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        "timm wants torchvision for its data loaders only."
        def find_spec(self, name, path, target=None):
            return ModuleSpec(name, self) if name.split(".")[0] == "torchvision" else None
        def create_module(self, spec):
            return Absent(spec.name)
        def exec_module(self, module):
            pass

    sys.meta_path.insert(0, Finder())
    import timm, torch, regard
    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", pretrained=False, img_size=(64, 48), depth=3).eval()
    x, found, qk = torch.randn(2, 3, 64, 48), {}, []
    for block in model.blocks:
        block.attn.qkv.register_forward_hook(lambda m, a, out: qk.append(out))
    for fused in (True, False):
        for block in model.blocks:
            block.attn.fused_attn = fused
        with torch.no_grad():
            plain = model(x)
            qk.clear()
            with regard.watch(model) as trace:
                out = model(x)
        errors = []
        for layer, packed in zip(trace.layers, qk, strict=True):
            q, k, _ = packed.double().unflatten(-1, (3, 3, 64)).permute(2, 0, 3, 1, 4)
            right = (q @ k.mT / 8).softmax(-1)
            errors.append(float((layer.weights.dense() - right).abs().max()))
        found[str(fused)] = {
            "equal": torch.equal(plain, out), "errors": errors, "verified": bool(trace.verify()),
            "kinds": [layer.weights.kind for layer in trace.layers], "names": [layer.name for layer in trace.layers],
            "grid": trace[0].queries[0].grid, "shown": trace[0].queries[0].shown[:4],
        }
    print(json.dumps(found))
""")


def test_a_vision_transformer_of_timm_is_watched_fused_or_not() -> None:
    if importlib.util.find_spec("timm") is None:
        pytest.skip("needs timm: pip install --no-deps timm")
    done = subprocess.run([sys.executable, "-c", TIMM], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    for fused, kind in (("True", "computed"), ("False", "stored")):
        found = told[fused]
        assert found["equal"]
        assert found["verified"]
        assert max(found["errors"]) < 1e-6
        assert len(found["errors"]) == 3
        assert found["kinds"] == [kind] * 3
        assert found["names"] == ["blocks.0.attn", "blocks.1.attn", "blocks.2.attn"]
        assert found["grid"] == [4, 3]
        assert found["shown"] == ["[CLS]", "0,0", "0,1", "0,2"]


@pytest.mark.parametrize(
    ("name", "size", "first"),
    [
        ("ViT", (48, 32), ("[CLS]", "0,0", "0,1")),
        ("DeiT", (32, 32), ("[CLS]", "[DIST]", "0,0")),
        ("Dinov2", (32, 32), ("[CLS]", "0,0", "0,1")),
        ("SiglipVision", (40, 40), ("0,0", "0,1", "0,2")),
    ],
)
def test_tokens_of_a_picture_are_its_patches_on_their_grid(name: str, size: tuple[int, int], first: Any) -> None:
    transformers = pytest.importorskip("transformers")
    sizes: dict[str, Any] = {
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 32,
    }
    image = size if size[0] != size[1] else size[0]
    if name == "Dinov2":
        sizes.pop("intermediate_size")
    config = getattr(transformers, f"{name}Config")(**sizes, image_size=image, patch_size=8)
    model = getattr(transformers, f"{name}Model")(config).eval()
    with torch.no_grad():
        trace = watched(model, pixel_values=torch.randn(2, 3, *size))
    for layer in trace.layers:
        if layer.weights.shape[-2] == 1:  # the query of a pooling head is no patch
            assert layer.queries is None or layer.queries[0].grid is None
            continue
        assert layer.queries is not None
        assert layer.keys is not None
        assert layer.queries[1].grid == layer.keys[0].grid == (size[0] // 8, size[1] // 8)
        assert layer.queries[0].shown[:3] == first
        assert layer.queries[0].shown[-1] == f"{size[0] // 8 - 1},{size[1] // 8 - 1}"
    assert trace.verify(), trace.verify()


def test_object_queries_are_no_patches() -> None:
    seen = look("DETR")
    encoder = [layer for layer in seen.layers if layer.name.startswith("encoder")]
    decoder = [layer for layer in seen.layers if layer.name.startswith("decoder")]
    assert all(layer.queries is not None and layer.queries[0].grid == (8, 8) for layer in encoder)
    assert all(layer.queries is None or layer.queries[0].grid is None for layer in decoder)
    assert all(layer.keys is not None and layer.keys[0].grid == (8, 8) for layer in decoder if layer.kind == "cross")
