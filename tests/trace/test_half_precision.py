"""Half precision: the same outputs, proofs within one unit of the last place, and maps that half precision never saw.

bf16 products end the process on some machines unless oneDNN is told to leave part of the processor alone, before torch
loads. So all of it runs in one child process, which answers with numbers.
"""

import copy
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import regard
from regard.trace.record.layer import Layer
from tests.trace.checkpoints import WEIGHTS, smollm2, stories260k
from tests.trace.look import by_hand
from tests.trace.rounding import rounding
from tests.trace.test_generate import llama

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
MODELS = ["random", "real"]
WAYS = ["weights", "autocast", "eager", "generate"]
STORY = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw"


def plain_error(layer: Layer, exact: Tensor) -> float:
    """How far eager arithmetic in float32 on the same q and k is from float64."""
    assert layer.q is not None
    assert layer.k is not None
    k = layer.k.float().repeat_interleave(layer.heads // layer.k.shape[1], 1)
    scores = (layer.q.float() @ k.mT) * layer.q.shape[-1] ** -0.5
    weights = scores.masked_fill(~layer.weights.allowed[...], -torch.inf).softmax(-1)
    return float((weights - exact).abs().max())


def measured(model: Any, ids: Tensor, dtype: torch.dtype, way: str) -> dict[str, Any]:
    """One model, one dtype, one way of using it: what a test wants to know, as numbers."""
    model = copy.deepcopy(model)
    cast: Any = nullcontext()
    if way == "autocast":
        cast = torch.autocast("cpu", dtype=dtype)
    else:
        model = model.to(dtype)
    mixes: list[Tensor] = []
    for layer in model.model.layers:
        layer.self_attn.o_proj.register_forward_pre_hook(lambda _, args: mixes.append(args[0].detach()))
    if way == "eager":
        model.set_attn_implementation("eager")

    def run() -> Tensor:
        if way != "generate":
            found: Tensor = model(ids).logits
            return found
        told: Tensor = model.generate(ids, max_new_tokens=7, do_sample=False, eos_token_id=None, pad_token_id=0)
        return told

    with torch.no_grad(), cast:
        plain = run()
        mixes.clear()
        with regard.watch(model) as trace:
            watched = run()
    proofs = trace.verify()
    found: dict[str, Any] = {
        "equal": torch.equal(plain, watched),
        "dtypes": sorted({str(x.dtype) for layer in trace.layers for x in (layer.q, layer.k) if x is not None}),
        "kinds": sorted({layer.weights.kind for layer in trace.layers}),
        "statuses": sorted({proof.status for proof in proofs}),
        "ulps": max(error for proof in proofs for error in (proof.output, proof.kernel) if error is not None),
        "why": [proof.why for proof in proofs],
        "error": 0.0,
        "plain": 0.0,
        "rounding": 0.0,
        "output": 0.0,
    }
    for number, layer in enumerate(trace.layers):
        exact = by_hand(layer)
        if exact is None:
            continue
        weights = layer.weights.dense()
        found["error"] = max(found["error"], float((weights - exact).abs().max()))
        found["plain"] = max(found["plain"], plain_error(layer, exact))
        found["rounding"] = max(found["rounding"], rounding(layer))
        if way == "generate":
            continue
        assert layer.v is not None
        v = layer.v.double().repeat_interleave(layer.heads // layer.v.shape[1], 1)
        mix = mixes[number].unflatten(-1, (layer.heads, -1)).transpose(1, 2).double()
        size = (weights.double() @ v.abs()).clamp_min(1e-3) * torch.finfo(mixes[number].dtype).eps
        found["output"] = max(found["output"], float(((weights.double() @ v - mix).abs() / size).max()))
    return found


def child() -> None:
    """All numbers, as JSON."""
    torch.set_num_threads(1)
    ids = torch.randint(1, 59, (2, 33), generator=torch.Generator().manual_seed(0))
    models = {"random": (llama(), ids)}
    if WEIGHTS.is_dir():
        model, tokenizer = stories260k()
        models["real"] = (model, torch.tensor([tokenizer.encode(STORY).ids]))
    else:  # the first layers of a larger one, which a package carries
        model, tokenizer = smollm2(layers=3)
        models["real"] = (model, tokenizer(STORY, return_tensors="pt")["input_ids"])
    found = {
        f"{name} {half} {way}": measured(*models[name], dtype, way)
        for name in models
        for half, dtype in DTYPES.items()
        for way in WAYS
    }
    print("\n" + json.dumps(found))


@pytest.fixture(scope="module")
def numbers(repository: Path) -> dict[str, Any]:
    code = "from tests.trace.test_half_precision import child; child()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=repository,
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"the child ended with {done.returncode}: {done.stderr[-3000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(params=[f"{name} {half} {way}" for name in MODELS for half in DTYPES for way in WAYS])
def case(request: pytest.FixtureRequest, numbers: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return request.param, numbers[request.param]


def test_outputs_are_bit_for_bit_those_of_the_unwatched_model(case: tuple[str, Any]) -> None:
    assert case[1]["equal"]


def test_every_map_is_verified_within_the_limit(case: tuple[str, Any]) -> None:
    name, found = case
    if name.endswith("eager"):  # it rounds scores of size 280 to half precision: where that shows, the proof says so
        assert all(not why or why.startswith("the output differs by more than 4 ulp") for why in found["why"])
        assert found["statuses"] == ["verified"] or found["ulps"] > 4.0
        return
    assert found["statuses"] == ["verified"], found["why"]
    assert found["ulps"] <= 1.0


def test_the_map_is_that_of_the_half_precision_numbers_which_the_kernel_received(case: tuple[str, Any]) -> None:
    name, found = case
    if found["kinds"] == ["stored"]:
        pytest.skip("the weights were stored as seen")
    dtype = str(DTYPES[name.split()[1]])
    assert found["dtypes"] == [dtype]
    assert found["plain"] <= found["rounding"]
    assert found["error"] <= found["rounding"]


def test_the_map_explains_every_row_of_the_output_and_not_only_the_sampled_ones(case: tuple[str, Any]) -> None:
    name, found = case
    assert found["output"] <= (10.0 if name.endswith("eager") else 1.0)
