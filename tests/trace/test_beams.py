"""Beams that change places while a cache slides: one map per layer, of the kept text only, or a word that says why not.

Models run in float64, so that a row of a step and the row of one pass over the whole text differ by rounding alone.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

import regard
from regard.trace.capture import ancestry, watcher
from regard.trace.record.trace import Trace
from tests.trace.rounded import Rounded

transformers = pytest.importorskip("transformers")
from transformers import Cache  # noqa: E402

WINDOW = 5
SIZES = {
    "vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 128,
}  # fmt: skip
MIXED = ["sliding_attention", "full_attention", "sliding_attention"]
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral": ("Mistral", {"sliding_window": WINDOW}),
    "gemma3": ("Gemma3", {"sliding_window": WINDOW, "layer_types": MIXED, "query_pre_attn_scalar": 8}),
    "llama": ("Llama", {}),
}
SINGLE = torch.finfo(torch.float32).eps  # eager attention of the library rounds its scores to float32 in any model


def model_of(kind: str, **more: Any) -> Any:
    """A model with scores that are large enough for maps with edges, and small enough for no map of zeros and ones."""
    start, own = KINDS[kind]
    config = getattr(transformers, f"{start}TextConfig" if start == "Gemma3" else f"{start}Config")
    torch.manual_seed(0)
    model = getattr(transformers, f"{start}ForCausalLM")(config(**SIZES | own | more)).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.mul_(8.0)
            if "q_norm" in name:
                parameter.add_(1.5)
            if "q_proj" in name:
                parameter.mul_(2.0)
    model.generation_config.pad_token_id, model.generation_config.eos_token_id = 0, None
    return model


def prompt(b: int, n: int, padded: int = 0, seed: int = 3) -> dict[str, Tensor]:
    ids = torch.randint(1, 59, (b, n), generator=torch.Generator().manual_seed(seed))
    seen = torch.ones_like(ids)
    ids[0, :padded], seen[0, :padded] = 0, 0
    return {"input_ids": ids, "attention_mask": seen}


def windows(model: Any) -> list[int]:
    kinds = getattr(model.config, "layer_types", None) or ["full_attention"] * 3
    if model.config.model_type == "mistral":
        kinds = ["sliding_attention"] * 3
    return [WINDOW if kind == "sliding_attention" else 1000 for kind in kinds]


def generated(model: Any, inputs: dict[str, Tensor], **how: Any) -> tuple[Tensor, Trace]:
    with torch.no_grad():
        torch.manual_seed(5)
        plain = model.generate(**inputs, **how)
        torch.manual_seed(5)
        with regard.watch(model) as trace:
            found = model.generate(**inputs, **how)
    assert torch.equal(plain, found)
    assert len(trace.runs) == 1
    return found, trace


def must_be_close(layer: Any, ours: Tensor, right: Tensor) -> None:
    """Weights whose scores were rounded to float32: an error of eps · |score| in a score is one factor in a weight."""
    size = float(layer.weights.scores[...].abs().max())
    assert (ours - right).abs().max() <= 4 * SINGLE * (1 + size)


def must_be_the_kept_text(model: Any, trace: Trace, found: Tensor, inputs: dict[str, Tensor], ends: set[int]) -> int:
    """Every row against one eager pass over each kept text alone, every cell; gives how many rows were compared."""
    model.set_attn_implementation("eager")
    prompts = inputs["attention_mask"]
    start, rows, longest = prompts.shape[1], 0, 0
    for i, sequence in enumerate(found):
        over = [at for at in range(start, len(sequence)) if int(sequence[at]) in ends]
        n = over[0] if over else len(sequence) - 1
        longest = max(longest, n)
        first = int((prompts[i * len(prompts) // len(found)] == 0).sum())
        with torch.no_grad():
            theirs = model(sequence[None, first:n], output_attentions=True, use_cache=False).attentions
        at = torch.arange(n - first)
        for layer, right, window in zip(trace.layers, theirs, windows(model), strict=True):
            assert layer.queries is not None
            assert layer.queries[i].ids is not None
            assert layer.queries[i].ids[:n] == tuple(sequence[:n].tolist())
            ours, allowed = layer.weights[i].dense(), layer.weights[i].allowed[...].expand(layer.weights.shape[1:])
            must_be_close(layer, ours[:, first:n, first:n], right[0])
            may = (at <= at[:, None]) & (at > at[:, None] - window)
            assert torch.equal(allowed[:, first:n, first:n], may.expand(4, -1, -1))
            assert not allowed[:, first:n, :first].any()
            assert not allowed[:, first:n, n:].any()
            assert not ours[:, n:].any()  # it had ended: nothing was fed
        rows += n
    assert {layer.weights.shape for layer in trace.layers} == {(len(found), 4, longest, longest)}
    assert trace.verify(), trace.verify()
    return rows


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("length", [WINDOW - 2, WINDOW, 2 * WINDOW + 1])
@pytest.mark.parametrize("beams", [2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_beams_and_a_sliding_cache_give_the_rows_of_the_kept_text(
    kind: str, beams: int, length: int, cache: str
) -> None:
    model, inputs = model_of(kind), prompt(1, length)
    how = {"max_new_tokens": 14, "num_beams": beams, "do_sample": False, "cache_implementation": cache}
    found, trace = generated(model, inputs, **how)
    assert must_be_the_kept_text(model, trace, found, inputs, set()) == length + 13


@pytest.mark.parametrize("returned", [1, 3])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_prompts_one_of_them_padded_and_beams_that_end_early(kind: str, cache: str, returned: int) -> None:
    model, inputs = model_of(kind), prompt(2, 6, padded=2)
    ends = set(range(20, 32))
    found, trace = generated(
        model, inputs, max_new_tokens=12, num_beams=4, num_return_sequences=returned, do_sample=False,
        eos_token_id=sorted(ends), early_stopping=True, cache_implementation=cache, length_penalty=-2.0,
    )  # fmt: skip
    assert len(found) == 2 * returned
    assert any(int(token) in ends for token in found[:, 6:].flatten())
    must_be_the_kept_text(model, trace, found, inputs, ends)


@pytest.mark.parametrize("returned", [1, 4])
@pytest.mark.parametrize("ends", [(), tuple(range(20, 27))], ids=["to the end", "ending early"])
@pytest.mark.parametrize("kind", ["mistral", "gemma3"])
def test_three_prompts_four_beams_and_fourteen_tokens(kind: str, ends: tuple[int, ...], returned: int) -> None:
    model, inputs = model_of(kind), prompt(3, 7, padded=2)
    found, trace = generated(
        model, inputs, max_new_tokens=14, num_beams=4, num_return_sequences=returned, do_sample=False,
        eos_token_id=list(ends) or None,
    )  # fmt: skip
    assert len(found) == 3 * returned
    must_be_the_kept_text(model, trace, found, inputs, set(ends))


@pytest.mark.parametrize(
    "how", [{}, {"num_beams": 3}, {"do_sample": True}, {"do_sample": True, "num_beams": 3}], ids=str
)
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_and_drawn_tokens_with_and_without_beams(kind: str, how: dict[str, Any]) -> None:
    model, inputs = model_of(kind), prompt(2, 6, padded=1)
    found, trace = generated(model, inputs, max_new_tokens=9, **{"do_sample": False} | how)
    must_be_the_kept_text(model, trace, found, inputs, set())


@pytest.mark.parametrize("new", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_only_the_kept_beam_is_shown_also_before_any_beam_moved(kind: str, new: int) -> None:
    model, inputs = model_of(kind), prompt(2, 4)
    found, trace = generated(model, inputs, max_new_tokens=new, num_beams=3, do_sample=False)
    must_be_the_kept_text(model, trace, found, inputs, set())


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_beams_that_look_alike_in_a_narrow_window_are_told_apart_by_their_text(seed: int, layers: int) -> None:
    """In a window of two, a layer sees one older key: many beams share it, and older tokens differ."""
    model = model_of("mistral", sliding_window=2, num_hidden_layers=layers, vocab_size=23)
    inputs = prompt(1, 4, seed=seed)
    inputs["input_ids"] %= 23
    found, trace = generated(model, inputs, max_new_tokens=12, num_beams=4, num_return_sequences=4, do_sample=False)
    model.set_attn_implementation("eager")
    for i, sequence in enumerate(found):
        with torch.no_grad():
            theirs = model(sequence[None, :-1], output_attentions=True, use_cache=False).attentions
        for layer, right in zip(trace.layers, theirs, strict=True):
            must_be_close(layer, layer.weights[i].dense(), right[0])
    assert trace.verify(), trace.verify()


def one_pass(model: Any, text: Tensor) -> Any:
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return model(text, output_attentions=True, use_cache=False).attentions


@pytest.mark.parametrize("how", ["embeddings", "no cache", "rejected drafts"])
@pytest.mark.parametrize("kind", KINDS)
def test_other_ways_to_generate_with_a_window_are_right_as_well(kind: str, how: str) -> None:
    model, inputs = model_of(kind), prompt(1, 9)
    given: dict[str, Any] = dict(inputs)
    more: dict[str, Any] = {"num_beams": 3}
    if how == "embeddings":
        with torch.no_grad():
            given = {"inputs_embeds": model.get_input_embeddings()(inputs["input_ids"])}
    elif how == "no cache":
        more["use_cache"] = False
    else:  # the cache lets go of a draft, and slides
        more = {"prompt_lookup_num_tokens": 3}
    with torch.no_grad(), regard.watch(model) as trace:
        found = model.generate(**given, max_new_tokens=16, do_sample=False, **more)
    text = torch.cat([inputs["input_ids"], found], 1) if how == "embeddings" else found
    assert trace.verify(), trace.verify()
    for layer, right in zip(trace.layers, one_pass(model, text[:, :-1]), strict=True):
        n = right.shape[-1]
        assert layer.weights.shape[-1] >= n
        must_be_close(layer, layer.weights[:, :, :n, :n], right)


@pytest.mark.parametrize("kind", KINDS)
def test_beams_in_a_loop_of_ones_own_are_followed_by_their_keys(kind: str) -> None:
    model = model_of(kind)

    class Searcher(torch.nn.Module):
        """Keeps three texts, and mixes up their order as a search would."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def search(self, ids: Tensor, turns: list[list[int]]) -> Tensor:
            out = self.model(ids, use_cache=True)
            for step, turn in enumerate(turns):
                cache = out.past_key_values
                cache.reorder_cache(torch.tensor(turn))
                new = (out.logits[turn, -1].argmax(-1) + torch.arange(3) + step) % 61
                ids = torch.cat([ids[turn], new[:, None]], 1)
                out = self.model(new[:, None], past_key_values=cache, use_cache=True)
            return ids

    searcher = Searcher().eval()
    turns = [
        [0, 1, 2],
        [2, 0, 1],
        [1, 1, 0],
        [2, 1, 0],
        [0, 0, 2],
        [1, 2, 0],
        [0, 2, 1],
        [2, 2, 2],
        [0, 1, 2],
        [1, 0, 2],
    ]
    with torch.no_grad(), regard.watch(searcher) as trace:
        text = searcher.search(prompt(3, 4)["input_ids"], turns)
    assert trace.verify() or all("not certain" in proof.why for proof in trace.verify())
    for layer, right in zip(trace.layers, one_pass(model, text), strict=True):
        must_be_close(layer, layer.weights.dense(), right)
        assert any("kept is not known" in note or "not certain" in note for note in layer.sentences())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mistake", ["one step", "another beam"])
def test_the_proof_notices_rows_that_do_not_belong_to_the_kept_text(
    kind: str, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ancestry that errs at one step, or follows a beam that was not kept."""
    model, inputs = model_of(kind), prompt(1, 6)
    how = {"max_new_tokens": 14, "num_beams": 4, "do_sample": False}
    every = model.generate(**inputs, num_return_sequences=4, **how)
    others = [text for text in every if not torch.equal(text[:-1], every[0, :-1])]  # the last token is not fed
    assert others
    for step in (2, 7, 13):

        def wrong(sequences: Tensor, links: Any, helds: Any, step: int = step) -> Any:
            if mistake == "another beam":
                return ancestry.ancestry(others[step % len(others)][None], links, helds)
            kept = ancestry.ancestry(sequences, links, helds)
            assert kept is not None
            if step in kept.entries:
                kept.entries[step] = (kept.entries[step] + 1 + step % 3) % 4
            return kept

        monkeypatch.setattr(watcher, "ancestry", wrong)
        with torch.no_grad(), regard.watch(model) as trace:
            model.generate(**inputs, **how)
        assert [proof.status for proof in trace.verify()] == ["unverified"] * 3, (step, trace.verify())


@pytest.mark.parametrize("seed", range(5))
def test_beams_of_a_cache_that_rounds_are_right_or_unverified(seed: int) -> None:
    model, inputs = model_of("llama"), prompt(1, 6, seed=seed)
    live: list[Tensor] = []

    def tapped(module: Any, args: Any, named: Any) -> None:
        live.append(named["hidden_states"].detach().clone())

    hook = model.model.layers[0].self_attn.register_forward_pre_hook(tapped, with_kwargs=True)
    cache = Cache(layers=[Rounded() for _ in range(3)])
    with torch.no_grad(), regard.watch(model) as trace:
        found = model.generate(
            **inputs, max_new_tokens=9, num_beams=3, do_sample=False, past_key_values=cache,
            return_dict_in_generate=True, output_scores=True, output_logits=True,
        )  # fmt: skip
    hook.remove()
    layer = trace.layers[0]
    rows = [live[0][int(found.beam_indices[0, 0])]]
    rows += [live[step][int(found.beam_indices[0, step])] for step in range(1, 9)]  # where it stood, by the library
    attention = model.model.layers[0].self_attn
    right = torch.cat(rows)
    with torch.no_grad():
        q = attention.q_proj(right).unflatten(-1, (4, 8)).transpose(0, 1)
    turned = torch.linalg.vector_norm(layer.q[0], dim=-1) - torch.linalg.vector_norm(q, dim=-1)  # RoPE keeps lengths
    if trace.verify():
        assert turned.abs().max() < 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_a_softmax_that_the_library_rounds_is_verified_as_exactly_as_it_was_computed(kind: str) -> None:
    """Eager attention in float64: the softmax is one of float32, and rows of padding are not a number in it."""
    model, inputs = model_of(kind), prompt(1, 6)
    model.set_attn_implementation("eager")
    found, trace = generated(model, inputs, max_new_tokens=7, num_beams=3, do_sample=False)
    must_be_the_kept_text(model, trace, found, inputs, set())
    with torch.no_grad(), regard.watch(model) as padded:
        model.generate(**prompt(2, 6, padded=2), max_new_tokens=3, do_sample=False)
    assert [proof.status in ("verified", "unverified") for proof in padded.verify()]
