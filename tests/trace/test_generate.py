"""`generate()` becomes one map per layer: each row is the row that the model computed in that step."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace
from regard.trace.watch import watch
from tests.trace.rounding import rounding

transformers = pytest.importorskip("transformers")


def llama(**how: Any) -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
    config = transformers.LlamaConfig(vocab_size=61, num_key_value_heads=2, max_position_embeddings=128, **sizes, **how)
    return settled(transformers.LlamaForCausalLM(config))


def mistral(window: int) -> Any:
    torch.manual_seed(0)
    config = transformers.MistralConfig(
        vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=window,
    )  # fmt: skip
    return settled(transformers.MistralForCausalLM(config))


def t5() -> Any:
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=61, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0, eos_token_id=60
    )
    return settled(transformers.T5ForConditionalGeneration(config))


def settled(model: Any) -> Any:
    """Larger weights than the library draws, so that maps are no even grey."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(8.0)
    model.generation_config.pad_token_id = 0
    model.generation_config.eos_token_id = 60
    return model.eval()


def prompt(b: int = 2, n: int = 7, left: bool = False) -> dict[str, Tensor]:
    ids = torch.randint(1, 59, (b, n), generator=torch.Generator().manual_seed(n))
    seen = torch.ones_like(ids)
    if left:
        ids[0, :3], seen[0, :3] = 0, 0
    return {"input_ids": ids, "attention_mask": seen}


def watched(model: Any, inputs: dict[str, Tensor], **how: Any) -> tuple[Tensor, Trace]:
    with torch.no_grad():
        torch.manual_seed(5)
        plain = model.generate(**inputs, **how)
        torch.manual_seed(5)
        with watch(model) as trace:
            found = model.generate(**inputs, **how)
    assert torch.equal(plain, found)
    assert len(trace.runs) == 1, trace.runs
    return found, trace


def both_precisions(model: Any, **inputs: Tensor) -> tuple[Any, Any]:
    """What the model attends to by eager arithmetic: on its own float32 weights, and on the same in float64."""
    truth = copy.deepcopy(model).double()
    model = copy.deepcopy(model)
    for one in (model, truth):
        one.set_attn_implementation("eager")
    with torch.no_grad():
        return model(**inputs, output_attentions=True), truth(**inputs, output_attentions=True)


def must_be_true(layer: Layer, ours: Tensor, theirs: Tensor, truth: Tensor) -> None:
    """As near to float64 as plain float32 comes: layers before this one made of a rounding what they make of theirs."""
    lost = float((theirs.double() - truth.double()).abs().max())
    assert_close(ours.double(), truth.double(), atol=rounding(layer) + 8 * lost, rtol=0)


def rows_by_forward(model: Any, trace: Trace, sequences: Tensor, inputs: dict[str, Tensor]) -> None:
    """Every row against one eager forward pass over what was fed."""
    fed = sequences[:, :-1]
    new = fed.shape[1] - inputs["attention_mask"].shape[1]
    seen = torch.cat([inputs["attention_mask"], torch.ones(len(fed), new, dtype=torch.long)], 1)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = model(fed, attention_mask=seen, output_attentions=True, use_cache=False).attentions
    real = seen.bool()
    assert len(theirs) == len(trace.layers)
    for layer, right in zip(trace.layers, theirs, strict=True):
        assert layer.weights.shape == right.shape
        ours = layer.weights.dense()
        assert_close(ours.transpose(1, 2)[real], right.transpose(1, 2)[real], atol=rounding(layer), rtol=0)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("left", [False, True], ids=["even", "left-padded"])
@pytest.mark.parametrize("cache", ["dynamic", "static", None], ids=str)
def test_greedy_is_one_map_with_every_cache(implementation: str, left: bool, cache: str | None) -> None:
    model, inputs = llama(), prompt(left=left)
    model.set_attn_implementation(implementation)
    how = {"use_cache": False} if cache is None else {"cache_implementation": cache}
    found, trace = watched(model, inputs, max_new_tokens=6, do_sample=False, **how)
    assert [layer.weights.shape[-2:] for layer in trace.layers] == [(12, 12)] * 3
    assert trace.verify(), trace.verify()
    assert trace[0].queries is not None
    assert trace[0].queries[1].ids == tuple(found[1, :-1].tolist())
    rows_by_forward(model, trace, found, inputs)


def test_sampling_is_stitched_too() -> None:
    model, inputs = llama(), prompt(b=3, n=5)
    found, trace = watched(model, inputs, max_new_tokens=7, do_sample=True, temperature=1.5)
    rows_by_forward(model, trace, found, inputs)


@pytest.mark.parametrize("returned", [1, 2])
def test_beams_give_the_map_of_the_kept_beam(returned: int) -> None:
    model, inputs = llama(), prompt(n=5)
    found, trace = watched(
        model,
        inputs,
        max_new_tokens=8,
        num_beams=4,
        num_return_sequences=returned,
        do_sample=False,
        early_stopping=True,
    )
    assert len(found) == trace[0].weights.shape[0] == 2 * returned
    assert trace[0].queries is not None
    assert trace.verify(), trace.verify()
    model.set_attn_implementation("eager")
    for i, sequence in enumerate(found):
        end = (sequence == 60).nonzero()
        length = int(end[0]) if len(end) else len(sequence) - 1
        fed = sequence[:length]
        assert trace[0].queries[i].ids[:length] == tuple(fed.tolist())  # type: ignore[index]
        with torch.no_grad():
            theirs = model(fed[None], output_attentions=True, use_cache=False).attentions
        for layer, right in zip(trace.layers, theirs, strict=True):
            assert_close(layer.weights[i, :, :length, :length], right[0], atol=rounding(layer), rtol=0)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_a_sliding_cache_keeps_true_positions(implementation: str, cache: str) -> None:
    model, inputs = mistral(window=5), prompt(b=1, n=7)
    model.set_attn_implementation(implementation)
    found, trace = watched(model, inputs, max_new_tokens=6, do_sample=False, cache_implementation=cache)
    assert trace.verify(), trace.verify()
    rows_by_forward(model, trace, found, inputs)


def test_drafts_that_were_rejected_leave_no_row() -> None:
    model, inputs = llama(), prompt(b=1, n=9)
    found, trace = watched(model, inputs, max_new_tokens=8, do_sample=False, prompt_lookup_num_tokens=3)
    rows = trace[0].weights.shape[-2]
    assert rows >= found.shape[1] - 1
    model.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = model(found[:, :-1], output_attentions=True, use_cache=False).attentions
    for layer, right in zip(trace.layers, theirs, strict=True):
        n = right.shape[-1]
        assert_close(layer.weights[:, :, :n, :n], right, atol=rounding(layer), rtol=0)


def test_an_assistant_model_does_not_disturb_the_map() -> None:
    model, inputs = llama(), prompt(b=1, n=6)
    assistant = llama()
    with torch.no_grad():
        for parameter in assistant.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.02)
    found, trace = watched(model, inputs, max_new_tokens=8, do_sample=False, assistant_model=assistant)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = model(found[:, :-1], output_attentions=True, use_cache=False).attentions
    for layer, right in zip(trace.layers, theirs, strict=True):
        n = right.shape[-1]
        assert_close(layer.weights[:, :, :n, :n], right, atol=rounding(layer), rtol=0)


def test_prefill_in_chunks_is_one_map() -> None:
    model, inputs = llama(), prompt(b=1, n=11)
    found, trace = watched(model, inputs, max_new_tokens=4, do_sample=False, prefill_chunk_size=4)
    rows_by_forward(model, trace, found, inputs)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_encoder_decoder_generation_is_one_run_of_three_kinds(implementation: str) -> None:
    model, inputs = t5(), prompt(n=6)
    model.set_attn_implementation(implementation)
    found, trace = watched(model, inputs, max_new_tokens=7, do_sample=False)
    kinds = [layer.kind for layer in trace.layers]
    assert (kinds.count("self"), kinds.count("cross")) == (4, 2)
    assert trace.verify(), trace.verify()
    passes = both_precisions(model, **inputs, decoder_input_ids=found[:, :-1])
    groups = {name: [one[f"{name}_attentions"] for one in passes] for name in ("encoder", "decoder", "cross")}
    ours: dict[str, list[Layer]] = {"encoder": [], "decoder": [], "cross": []}
    for layer in trace.layers:
        where = "cross" if layer.kind == "cross" else "encoder" if layer.name.startswith("encoder") else "decoder"
        ours[where].append(layer)
    for name, rights in groups.items():
        for layer, theirs, truth in zip(ours[name], *rights, strict=True):
            must_be_true(layer, layer.weights.dense(), theirs, truth)
    cross = next(layer for layer in trace.layers if layer.kind == "cross")
    assert cross.keys is not None
    assert cross.keys[0].ids == tuple(inputs["input_ids"][0].tolist())


def test_beams_of_an_encoder_decoder_keep_rows_and_source_together() -> None:
    model, inputs = t5(), prompt(n=6)
    found, trace = watched(model, inputs, max_new_tokens=6, num_beams=3, do_sample=False)
    for i, sequence in enumerate(found):
        end = (sequence[1:] == 60).nonzero()
        length = int(end[0]) + 1 if len(end) else len(sequence) - 1
        one = {name: x[i : i + 1] for name, x in inputs.items()}
        passes = both_precisions(model, **one, decoder_input_ids=sequence[None, :length])
        own = [layer for layer in trace.layers if layer.kind == "self" and layer.name.startswith("decoder")]
        cross = [layer for layer in trace.layers if layer.kind == "cross"]
        for layer, theirs, truth in zip(own, *(one.decoder_attentions for one in passes), strict=True):
            must_be_true(layer, layer.weights[i, :, :length, :length], theirs[0], truth[0])
        for layer, theirs, truth in zip(cross, *(one.cross_attentions for one in passes), strict=True):
            must_be_true(layer, layer.weights[i, :, :length], theirs[0], truth[0])


def test_decoding_again_from_the_start_replaces_rows_of_self_and_cross() -> None:
    class Greedy(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Transformer(24, 3, 1, 2, 40, batch_first=True, dropout=0.0)

        def decode(self, source: Tensor, target: Tensor) -> Tensor:
            for steps in range(1, 6):
                causal = torch.nn.Transformer.generate_square_subsequent_mask(steps)
                out: Tensor = self.body(source, target[:, :steps], tgt_mask=causal)
            return out

    torch.manual_seed(0)
    model = Greedy().eval()
    with torch.no_grad(), watch(model) as trace:
        model.decode(torch.randn(2, 7, 24), torch.randn(2, 5, 24))
    assert [layer.weights.shape[-2:] for layer in trace.layers[1:]] == [(5, 5), (5, 7), (5, 5), (5, 7)]


def test_a_loop_of_ones_own_with_a_cache_is_stitched_as_well() -> None:
    model, inputs = llama(), prompt(b=1, n=5)
    with torch.no_grad(), watch(model) as trace:
        out = model(**inputs, use_cache=True)
        ids = inputs["input_ids"]
        for _ in range(4):
            new = out.logits[:, -1:].argmax(-1)
            ids = torch.cat([ids, new], 1)
            out = model(new, past_key_values=out.past_key_values, use_cache=True)
    assert len(trace.runs) == 1
    rows_by_forward(model, trace, torch.cat([ids, ids[:, :1]], 1), inputs)


def test_generated_tokens_cost_memory_that_grows_in_a_straight_line() -> None:
    model, inputs = llama(), prompt(b=1, n=4)
    held = []
    for steps in (20, 40):
        _, trace = watched(model, inputs, max_new_tokens=steps, min_new_tokens=steps, do_sample=False)
        held.append(sum(x.numel() for layer in trace.layers for x in (layer.q, layer.k, layer.v) if x is not None))
    assert held[1] / held[0] == pytest.approx(43 / 23)
