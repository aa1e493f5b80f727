"""Watching real weights: the maps are those that other people published, computed or described for them."""

import gzip
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import regard
from regard.models import embedded
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace
from tests.shared import SHARED
from tests.trace.checkpoints import WEIGHTS, aren, gpt_nano_sort, minilm, smollm2, stories260k
from tests.trace.look import by_hand
from tests.trace.rounding import rounding

WORDS = {
    "آتزمون": "atzmon",
    "محمد": "mahmad",
    "فلسطين": "felstin",
    "واشنطن": "washenten",
    "لندن": "lenden",
}
STORY = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
    "One day, she saw a big, red ball. She wanted to play with it, but it was too high."
)


def eager(model: Any, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """The weights that the library returns by itself."""
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            return tuple(model(**inputs, output_attentions=True).attentions)
    finally:
        model.set_attn_implementation("sdpa")


def must_equal_eager(trace: Trace, theirs: tuple[Tensor, ...]) -> None:
    """Whole model to 1e-4; on the same q and k about as near to float64 as eager arithmetic in float32, or 1e-6.

    (Scores of these models reach 280, where one unit of their last place moves a weight by 1e-6 or more.)
    """
    assert len(trace.layers) == len(theirs) > 0
    for layer, right in zip(trace.layers, theirs, strict=True):
        ours, exact = layer.weights.dense(), by_hand(layer)
        assert exact is not None
        assert_close(ours, right, atol=1e-4, rtol=0)
        plain = float((in_float32(layer) - exact).abs().max())
        assert plain < rounding(layer)
        assert_close(ours, exact, atol=max(1e-6, 8 * plain), rtol=0, check_dtype=False)
    assert trace.verify(), trace.verify()


def in_float32(layer: Layer) -> Tensor:
    """What eager attention writes: repeat the keys, multiply, scale, hide, normalise."""
    assert layer.q is not None
    assert layer.k is not None
    k = layer.k.repeat_interleave(layer.heads // layer.k.shape[1], 1)
    scores = (layer.q @ k.mT) * layer.q.shape[-1] ** -0.5
    return scores.masked_fill(~layer.weights.allowed[...], -torch.inf).softmax(-1)


# The sorter, and what its makers published


def test_the_sorters_first_layer_is_what_its_makers_published() -> None:
    model, known = gpt_nano_sort()
    with torch.no_grad():
        plain = model(known["idx"]).logits
        with regard.watch(model) as trace:
            logits = model(known["idx"]).logits
    assert torch.equal(plain, logits)
    layer = trace["h.0"]
    for name in ("q", "k", "v"):
        assert_close(getattr(layer, name), known[name], atol=1e-6, rtol=0)
    seen = layer.weights.allowed[...]
    assert torch.equal(seen, torch.isfinite(known["att"]))
    assert_close(layer.weights.scores[...].masked_fill(~seen, -torch.inf), known["att"], atol=1e-6, rtol=0)
    assert_close(layer.weights.dense(), known["attSm"], atol=1e-6, rtol=0)
    assert layer.seen is not None
    assert layer.seen.mix is not None
    mix = known["y"].unflatten(-1, (3, 16)).transpose(1, 2)  # b h q e
    assert_close(layer.seen.mix, mix[:, :, list(layer.seen.rows)], atol=1e-6, rtol=0)
    assert_close(logits.softmax(-1), known["probs"], atol=1e-6, rtol=0)
    assert trace.verify(), trace.verify()


# The transliterator, and what CTranslate2 computes with the same weights


@cache
def transliterated(word: str) -> tuple[str, Trace]:
    model = aren()
    with regard.watch(model) as trace:
        found = model.translate(word)
    return found, trace


@pytest.mark.parametrize("word", WORDS, ids=WORDS.values())
def test_a_watched_word_is_written_as_documented_and_has_maps_of_all_three_kinds(word: str) -> None:
    found, trace = transliterated(word)
    assert found == WORDS[word]
    assert len(trace.runs) == 1
    source, target = len(word), len(found) + 1  # the target starts with <s>, and its end is never fed
    shapes = {(layer.name.split(".")[1], layer.kind): layer.weights.shape for layer in trace.layers}
    assert shapes == {
        ("encoder", "self"): (1, 8, source, source),
        ("decoder", "self"): (1, 8, target, target),
        ("decoder", "cross"): (1, 8, target, source),
    }
    assert len(trace.layers) == 6 + 6 + 6
    later = torch.ones(target, target, dtype=torch.bool).triu(1)
    assert not trace["decoder.layers.2", "self"].weights.dense()[..., later].any()
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("word", WORDS, ids=WORDS.values())
def test_the_last_cross_attention_is_the_one_that_ctranslate2_returns(word: str) -> None:
    ctranslate2 = pytest.importorskip(
        "ctranslate2", reason="needs ctranslate2 to compare with: pip install ctranslate2"
    )
    found, trace = transliterated(word)
    translator = ctranslate2.Translator(
        str(WEIGHTS / "aren-transliteration"), compute_type="float32", inter_threads=1, intra_threads=1
    )
    result = translator.translate_batch([list(word)], beam_size=1, return_attention=True)[0]
    assert "".join(result.hypotheses[0]) == found
    theirs = torch.tensor(result.attention[0])
    assert theirs.shape == (len(found), len(word))
    ours = trace["decoder.layers.5", "cross"].weights[0, 0]
    assert_close(ours[: len(theirs)], theirs, atol=1e-6, rtol=0)


def test_what_the_transliterators_modules_return_by_themselves_is_what_was_watched() -> None:
    model, (found, trace) = aren(), transliterated("فلسطين")
    returned: dict[str, Tensor] = {}
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.MultiheadAttention):
            plain = module.forward

            def forward(*args: Any, name: str = name, plain: Any = plain, **named: Any) -> Any:
                out, returned[name] = plain(*args, **named | {"need_weights": True, "average_attn_weights": False})
                return out, None

            module.forward = forward  # type: ignore[method-assign]
    written = torch.tensor([[model.START, *(model.target.index(letter) for letter in found)]])
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            model(model.encode("فلسطين"), written)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert len(returned) == 18
    for layer in trace.layers:
        assert_close(layer.weights.dense(), returned[layer.name], atol=2e-6, rtol=0)


# The storyteller


def test_a_watched_story_is_the_documented_one_and_one_map_per_layer() -> None:
    model, tokenizer = stories260k()
    with regard.watch(model, tokenizer) as trace:
        told = model.generate(torch.tensor([[1]]), max_new_tokens=90, do_sample=False)
    assert torch.equal(told, model.generate(torch.tensor([[1]]), max_new_tokens=90, do_sample=False))
    assert tokenizer.decode(told[0].tolist()).startswith(STORY)
    assert len(trace.runs) == 1
    fed = told[:, :-1]  # the last token has no row: nobody asked with it
    assert [layer.weights.shape for layer in trace.layers] == [(1, 8, 90, 90)] * 5
    for layer in trace.layers:
        assert layer.q is not None
        assert layer.k is not None
        assert layer.v is not None
        assert (layer.q.shape, layer.k.shape, layer.v.shape) == ((1, 8, 90, 8), (1, 4, 90, 8), (1, 4, 90, 8))
    assert trace[0].queries is not None
    assert trace[0].queries[0].ids == tuple(fed[0].tolist())
    assert trace[0].queries[0].shown[:6] == ("<s>", "Once", "·upon", "·a", "·time", ",")
    assert trace[4].keys is not None
    assert STORY in (trace[4].keys[0].text or "")
    must_equal_eager(trace, eager(model, {"input_ids": fed}))


def test_a_story_written_to_a_file_while_it_is_told_is_the_same_story(tmp_path: Path) -> None:
    model, tokenizer = stories260k()
    ids = torch.tensor([tokenizer.encode("Once upon a time").ids])
    with regard.watch(model, tokenizer) as kept:
        model.generate(ids, max_new_tokens=12, do_sample=False)
    with regard.watch(model, tokenizer, to=tmp_path / "told.trace"):
        model.generate(ids, max_new_tokens=12, do_sample=False)
    kept.save(tmp_path / "saved.trace")
    for name in ("told.trace", "saved.trace"):
        found = regard.load(tmp_path / name)
        for ours, theirs in zip(found.layers, kept.layers, strict=True):
            assert torch.equal(ours.weights.dense(), theirs.weights.dense())
            assert ours.queries is not None
            assert theirs.queries is not None
            assert ours.queries[0].shown == theirs.queries[0].shown
        assert found.verify(), found.verify()


# Sentences and paragraphs


@pytest.fixture(scope="module")
def paragraphs(repository: Path) -> list[str]:
    """The first paragraphs of WikiText-2, headings left out; where that is not, those of our licence."""
    file = SHARED / "data/wikitext2/test.txt.gz"
    if not file.is_file():
        found = [" ".join(part.split()) for part in (repository / "LICENSE").read_text().split("\n\n")]
        return [part for part in found if len(part) > 500]
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        found = [line.strip() for line in lines if len(line) > 300 and not line.startswith(" = ")]
    assert found[0].startswith("Robert <unk> is an English film , television and theatre actor .")
    return found


def test_minilm_on_real_text_is_eager(paragraphs: list[str]) -> None:
    model, tokenizer = minilm()
    inputs = dict(tokenizer([paragraphs[0][:700], paragraphs[1][:333]], padding=True, return_tensors="pt"))
    real = inputs["attention_mask"].bool()
    assert not real.all()
    with torch.no_grad():
        plain = model(**inputs).last_hidden_state
        with regard.watch(model, tokenizer) as trace:
            watched = model(**inputs).last_hidden_state
    assert torch.equal(plain, watched)
    assert trace[0].queries is not None
    theirs = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
    assert trace[0].queries[0].shown[:4] == tuple(name.removeprefix("##") for name in theirs[:4])
    must_equal_eager(trace, eager(model, inputs))
    assert torch.equal(trace[3].weights.allowed[:, 5, 7], real)


@pytest.fixture(scope="module")
def small() -> tuple[Any, Any]:
    return smollm2()


@pytest.fixture(scope="module")
def read(small: tuple[Any, Any], paragraphs: list[str]) -> tuple[Trace, dict[str, Tensor]]:
    """SmolLM2, watched while it reads."""
    model, tokenizer = small
    inputs = dict(tokenizer(paragraphs[0][:500], return_tensors="pt"))
    with torch.no_grad():
        plain = model(**inputs).logits
        with regard.watch(model, tokenizer) as trace:
            watched = model(**inputs).logits
    assert torch.equal(plain, watched)
    return trace, inputs


def test_smollm2_on_real_text_is_eager_in_every_layer(
    small: tuple[Any, Any], read: tuple[Trace, Any], paragraphs: list[str]
) -> None:
    model, _ = small
    trace, inputs = read
    assert len(trace.layers) == 30
    assert [x.shape[1] for x in (trace[0].q, trace[0].k, trace[0].v) if x is not None] == [9, 3, 3]
    must_equal_eager(trace, eager(model, inputs))
    assert trace[0].queries is not None
    assert trace[0].queries[0].text is not None
    assert trace[0].queries[0].text == paragraphs[0][:500]
    assert all(a[1] == b[0] for a, b in pairwise(trace[0].queries[0].offsets or ()) if a is not None and b is not None)


def test_smollm2_keeps_its_sink_on_the_first_token(read: tuple[Trace, Any]) -> None:
    trace, _ = read
    shares = torch.stack([layer.weights.dense()[0, :, 1:, 0].mean(1) for layer in trace.layers])  # layer, head
    by_layer = shares.mean(1)
    assert by_layer[12:].mean() > 0.5  # measured: 0.54
    assert by_layer[12:].min() > 0.3
    assert by_layer[:2].max() < 0.05  # the first layers know of none yet
    assert (shares[12:] > 0.5).float().mean() > 0.5
    ours = torch.stack([measured.sink[0] for measured in trace.measures()])
    assert_close(ours, shares, atol=0.02, rtol=0, check_dtype=False)


def say_twice(vocabulary: range, *, length: int, sequences: int, seed: int) -> list[list[int]]:
    """Random tokens, each sequence said twice: the standard test for induction heads (arXiv 2209.11895).

    A sequence has `length` tokens or up to three fewer, so that a head that looks a fixed way back is told from one
    that looks for the token.
    """
    ids, random = torch.tensor(vocabulary), torch.Generator().manual_seed(seed)
    drawn = [ids[torch.randperm(len(ids), generator=random)[: length - n % 4]].tolist() for n in range(sequences)]
    return [[*one, *one] for one in drawn]


@pytest.mark.parametrize("length", [29, 41])
def test_smollm2_has_induction_heads_on_random_tokens_said_twice(small: tuple[Any, Any], length: int) -> None:
    model, _ = small
    texts = say_twice(range(1000, 20000), length=length, sequences=2, seed=length)
    found = regard.census(model, texts, batch=8, progress=False)
    heads = found.find("induction")
    assert len(heads) >= 5
    assert heads[0] == ("model.layers.18.self_attn", 6)
    assert (found.evidence(*heads[0]).score or 0.0) > 0.8
    ids = torch.randint(1000, 20000, (1, length), generator=torch.Generator().manual_seed(7)).repeat(1, 2)
    theirs = eager(model, {"input_ids": ids})[18][0, 6]
    after = theirs[length:].diagonal(1)[:-1]  # the key after the same token the first time
    assert after.mean() > 0.8
    assert len(found.find("previous-token")) >= 3  # without which there is no induction


# The model that comes with the package


def test_a_census_finds_in_the_embedded_model_what_its_manifest_says() -> None:
    model, told = embedded.load("induction"), embedded.describe("induction")["scores"]
    assert isinstance(model, torch.nn.Module)
    with torch.no_grad(), regard.watch(model) as trace:
        model(torch.tensor([[3, 1, 4, 1, 5]]))
    names = [layer.name for layer in trace.layers]
    assert trace.verify(), trace.verify()
    expected = {
        kind: {(names[i], h) for i, heads in enumerate(told[by]) for h, score in enumerate(heads) if score > 0.5}
        for kind, by in (("previous-token", "previous"), ("induction", "induction"))
    }
    assert [len(heads) for heads in expected.values()] == [1, 4]
    twice = say_twice(range(len(embedded.describe("induction")["vocabulary"])), length=17, sequences=8, seed=0)
    found = regard.census(model, twice, batch=8, progress=False)
    for kind, heads in expected.items():
        assert set(found.find(kind)) == heads
    texts = [[*range(3, 20), *range(3, 20), n % 3] for n in range(4)]
    counted = regard.census(model, texts, progress=False)
    assert set(counted.find("induction")) == expected["induction"]
    assert set(counted.find("previous-token")) >= expected["previous-token"]
