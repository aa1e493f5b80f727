"""Whatever keeps keys and values between steps: every row is the one that was computed live, or the map is `Stale`."""

import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

import regard
from regard.errors import Stale
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace
from tests.trace.models import Stack, expected, seeded
from tests.trace.rounded import Rounded
from tests.trace.test_generate import both_precisions, llama, mistral, must_be_true, prompt, t5
from tests.trace.watched import MODES

transformers = pytest.importorskip("transformers")
from transformers import Cache, DynamicCache, EncoderDecoderCache, QuantizedCache, StaticCache  # noqa: E402
from transformers.integrations.sdpa_attention import sdpa_attention_forward  # noqa: E402
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask  # noqa: E402


def weights_of(q: Tensor, k: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """Softmax in float64, written out so that no door hears it; what is hidden is NaN."""
    k = k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = (q.double() @ k.mT) * scale
    if mask is not None:
        mask = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        scores = scores.masked_fill(~mask[..., : k.shape[-2]], -torch.inf)
    parts = (scores - scores.amax(-1, keepdim=True)).exp()
    return (parts / parts.sum(-1, keepdim=True)).masked_fill(scores == -torch.inf, torch.nan)


class Tap:
    """An attention function of `transformers` that keeps, for every layer and step, what it computed."""

    def __init__(self) -> None:
        self.live: dict[nn.Module, list[Tensor]] = {}

    def __call__(self, module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **named: Any) -> Any:
        seen = mask
        if mask is None and q.shape[2] > 1 and named.get("is_causal", getattr(module, "is_causal", True)):
            seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
        found = weights_of(q, k, seen, named.get("scaling") or q.shape[-1] ** -0.5)
        self.live.setdefault(module, []).append(found)
        return sdpa_attention_forward(module, q, k, v, mask, **named)


@pytest.fixture
def tap() -> Iterator[Tap]:
    """Registered under the name "tapped"."""
    found = Tap()
    transformers.AttentionInterface.register("tapped", found)
    AttentionMaskInterface.register("tapped", sdpa_mask)
    yield found
    transformers.AttentionInterface._global_mapping.pop("tapped")
    AttentionMaskInterface._global_mapping.pop("tapped")


def visible(row: Tensor) -> Tensor:
    """The weights that are no NaN, in order."""
    return row[~row.isnan()]


def must_be_live(layer: Layer, live: list[Tensor]) -> int:
    """Compare every row with the one computed in its step, visible keys in order; gives how many were compared."""
    allowed, dense = layer.weights.allowed[...], layer.weights.dense()
    rows = [step[:, :, i] for step in live for i in range(step.shape[2])]  # b h k each
    assert len(rows) == dense.shape[2]
    before = dense.shape[3] - dense.shape[2]  # keys from an earlier run
    for at, row in enumerate(rows):
        for b in range(row.shape[0]):
            for h in range(row.shape[1]):
                ours = dense[b, h, at][allowed[b, h, at]]
                assert_close(ours.double(), visible(row[b, h]), atol=2e-6, rtol=0)
                assert int(allowed[b, h, at].nonzero().max()) == at + before  # causal: its own key is the last
    return len(rows)


def can_import(name: str) -> bool:
    """Whether a module is installed, without loading it."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is missing
        return False


CACHES: dict[str, Callable[[Any, int], Cache]] = {
    "dynamic": lambda config, length: DynamicCache(),
    "dynamic by config": lambda config, length: DynamicCache(config=config),
    "static": lambda config, length: StaticCache(config, max_cache_len=length + 7),
    "static and full at the end": lambda config, length: StaticCache(config, max_cache_len=length),
    "fp8": lambda config, length: QuantizedCache("fp8", config),
    "rounded": lambda config, length: Cache(layers=[Rounded() for _ in range(config.num_hidden_layers)]),
    "quanto": lambda config, length: QuantizedCache("quanto", config, nbits=4, q_group_size=8, residual_length=3),
    "hqq": lambda config, length: QuantizedCache("hqq", config, nbits=4, q_group_size=8, residual_length=3, axis_key=1),
    "offloaded": lambda config, length: DynamicCache(config=config, offloading=True),
    "offloaded static": lambda config, length: StaticCache(config, max_cache_len=length, offloading=True),
}
# What the library quantises is full attention, by other libraries where they are installed; what it offloads comes from
# an accelerator. "rounded" stands for the first everywhere.
NEEDED = {"quanto": "optimum.quanto", "hqq": "hqq"}
FULL_ONLY = ("fp8", "quanto", "hqq")
HERE = [
    name
    for name in CACHES
    if (name not in NEEDED or can_import(NEEDED[name]))
    and (not name.startswith("offloaded") or torch.accelerator.is_available())
]


@MODES
@pytest.mark.parametrize(
    ("kind", "cache"), [(k, c) for k in ("llama", "mistral") for c in HERE if k == "llama" or c not in FULL_ONLY]
)
def test_every_row_with_every_cache_is_the_row_of_its_step(kind: str, cache: str, mode: Any, tap: Tap) -> None:
    model, inputs = (llama() if kind == "llama" else mistral(window=5)), prompt(b=2, n=7)
    model.set_attn_implementation("tapped")
    how = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
    with mode():
        plain = model.generate(**inputs, past_key_values=CACHES[cache](model.config, 13), **how)
        tap.live.clear()
        given = CACHES[cache](model.config, 13)
        with regard.watch(model) as trace:
            found = model.generate(**inputs, past_key_values=given, **how)
    assert torch.equal(plain, found)
    assert len(trace.runs) == 1
    for layer, live in zip(trace.layers, tap.live.values(), strict=True):
        assert must_be_live(layer, live) == 12
    before = [layer.weights.dense() for layer in trace.layers]
    proofs = trace.verify()
    with mode():
        given.reset()  # writes zeros into what it holds
    must_be_the_same_or_stale(trace, before)
    if cache in ("fp8", "rounded", "quanto", "hqq"):  # each step has its own keys, so not all parts of a proof are left
        assert not any("differ" in proof.why for proof in proofs), proofs
    else:
        assert proofs, proofs


def must_be_the_same_or_stale(trace: Trace, before: list[Tensor]) -> None:
    """Never a third thing."""
    for layer, right in zip(trace.layers, before, strict=True):
        try:
            found = layer.weights.dense()
        except Stale:
            continue
        assert torch.equal(found, right)


@MODES
@pytest.mark.parametrize("cache", ["dynamic", "static", "rounded"])
def test_a_cache_that_is_used_for_two_generations_gives_right_rows_in_both(cache: str, mode: Any, tap: Tap) -> None:
    model, inputs = llama(), prompt(b=1, n=5)
    model.set_attn_implementation("tapped")
    given = CACHES[cache](model.config, 30)
    how = {"past_key_values": given, "do_sample": False, "eos_token_id": None}
    with mode(), regard.watch(model) as trace:
        first = model.generate(inputs["input_ids"], max_new_tokens=4, **how)
        asked = torch.cat([first, torch.tensor([[9, 17, 33]])], 1)
        model.generate(asked, max_new_tokens=3, **how)
    rows = 0
    for layer, live in zip(trace.layers, tap.live.values(), strict=True):
        rows += must_be_live(layer, live if len(trace.runs) == 1 else live[4:])
    assert rows == 3 * (5 + 3 + 4 + 2 if len(trace.runs) == 1 else 4 + 2)


@MODES
def test_a_static_cache_that_was_emptied_and_used_again_makes_a_new_run(mode: Any, tap: Tap) -> None:
    model = llama()
    model.set_attn_implementation("tapped")
    given = StaticCache(model.config, max_cache_len=16)
    with mode(), regard.watch(model) as trace:
        for seed, n in ((1, 6), (2, 8)):
            ids = torch.randint(1, 59, (2, n), generator=torch.Generator().manual_seed(seed))
            model.generate(ids, past_key_values=given, max_new_tokens=4, min_new_tokens=4, do_sample=False)
            given.reset()
    assert [run.layers[0].weights.shape[-2:] for run in trace.runs] == [(9, 9), (11, 11)]
    for number, run in enumerate(trace.runs):
        for layer, live in zip(run.layers, tap.live.values(), strict=True):
            with suppress(Stale):
                must_be_live(layer, live[4 * number : 4 * number + 4])


@MODES
def test_two_answers_to_one_prompt_from_copies_of_its_cache_are_right(mode: Any, tap: Tap) -> None:
    model, inputs = llama(), prompt(b=1, n=6)
    model.set_attn_implementation("tapped")
    with mode(), regard.watch(model) as trace:
        read = model(**inputs, use_cache=True).past_key_values
        for answer in ([3, 5, 7], [3, 9]):
            model(torch.tensor([answer]), past_key_values=copy.deepcopy(read), use_cache=True)
    for layer, live in zip(trace.layers, tap.live.values(), strict=True):
        assert must_be_live(layer, [live[0], live[2]] if len(trace.runs) == 1 else live[2:]) in (2, 8)


@MODES
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_the_caches_of_an_encoder_decoder(static: bool, mode: Any) -> None:
    model, inputs = t5(), prompt(b=2, n=7)
    how = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False}
    made: Any = StaticCache if static else DynamicCache

    def both() -> EncoderDecoderCache:
        lengths: list[dict[str, Any]] = [{"max_cache_len": 9}, {"max_cache_len": 7}] if static else [{}, {}]
        return EncoderDecoderCache(*(made(config=model.config.get_text_config(decoder=True), **n) for n in lengths))

    with mode():
        plain = model.generate(**inputs, past_key_values=both(), **how)
        given = both()
        with regard.watch(model) as trace:
            found = model.generate(**inputs, past_key_values=given, **how)
    assert torch.equal(plain, found)
    assert len(trace.runs) == 1
    assert trace.verify(), trace.verify()
    passes = both_precisions(model, **inputs, decoder_input_ids=found[:, :-1])
    for kind, name in (("self", "decoder_attentions"), ("cross", "cross_attentions")):
        ours = [layer for layer in trace.layers if layer.name.startswith("decoder") and layer.kind == kind]
        for layer, theirs, truth in zip(ours, *(one[name] for one in passes), strict=True):
            must_be_true(layer, layer.weights.dense(), theirs, truth)
    before = [layer.weights.dense() for layer in trace.layers]
    with mode():
        given.reset()
    must_be_the_same_or_stale(trace, before)


# Memories that people write themselves


class Ring(nn.Module):
    """Remembers the last `size` keys; the newest replaces the oldest, in place or in a copy."""

    def __init__(self, size: int = 5, *, copies: bool, masked: bool) -> None:
        super().__init__()
        self.size, self.copies, self.masked, self.steps = size, copies, masked, 0
        self.project = nn.Linear(12, 36)
        self.keys, self.values = torch.zeros(2, 3, size, 4), torch.zeros(2, 3, size, 4)
        self.live: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        if self.copies:
            self.keys, self.values = self.keys.clone(), self.values.clone()
        slot = self.steps % self.size
        self.keys[:, :, slot], self.values[:, :, slot] = k[:, :, 0], v[:, :, 0]
        self.steps += 1
        mask = (torch.arange(self.size) < self.steps)[None, None, None] if self.masked else None
        self.live.append(weights_of(q, self.keys, mask, 0.5).nan_to_num(0.0))
        return F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)

    def read(self, xs: Tensor) -> Tensor:
        return torch.cat([self(x) for x in xs])


@MODES
@pytest.mark.parametrize("masked", [False, True], ids=["open", "masked"])
@pytest.mark.parametrize("copies", [False, True], ids=["in place", "copied"])
@pytest.mark.parametrize("inside", [False, True], ids=["a loop outside", "a loop of its own"])
def test_a_ring_buffer_gives_the_row_of_every_step_or_stale(
    copies: bool, masked: bool, inside: bool, mode: Any
) -> None:
    xs = torch.randn(8, 2, 1, 12)
    with mode():
        model: Any = seeded(Ring(copies=copies, masked=masked))
        with regard.watch(model) as trace:
            model.read(xs) if inside else [model(x) for x in xs]
    found: list[Tensor] = []
    for run in trace.runs:
        try:
            dense = run.layers[0].weights.dense()
        except Stale:
            return
        found += list(dense.unbind(2))
    assert len(found) == len(model.live)
    for row, live in zip(found, model.live, strict=True):
        ours = row.sort(-1, descending=True).values[..., :5]  # slots have no positions, so any order will do
        theirs = live[:, :, 0].sort(-1, descending=True).values[..., : ours.shape[-1]]
        assert_close(ours.double(), theirs, atol=1e-6, rtol=0)


class Pooling(nn.Module):
    """One learned query over everything, as classifiers have."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, 3, 1, 8))

    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(self.query.expand(len(x), -1, -1, -1), x, x)


@MODES
@pytest.mark.parametrize("changed", [1, 2, 5])
def test_two_inputs_that_begin_alike_are_two_runs(changed: int, mode: Any) -> None:
    model: Any = seeded(Pooling())
    with mode():
        one = torch.randn(2, 3, 7, 8)
        two = one.clone()
        two[:, :, -changed:] += 2.0
        with regard.watch(model) as trace:
            model(one)
            model(two)
    assert len(trace.runs) == 2
    for run, x in zip(trace.runs, (one, two), strict=True):
        right = weights_of(model.query.detach(), x, None, 8**-0.5)
        assert_close(run.layers[0].weights.dense().double(), right, atol=1e-6, rtol=0)


# What else may be written to after the call


class Written(nn.Module):
    """Attention after which one of its tensors is written to, as memory-saving code does."""

    num_heads = 3

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = x * 1.5, x.roll(1, -1), x.roll(2, -1)
        if self.what == "source of q":
            q = x.view_as(x)
        if self.what == "softmax":
            weights = (q @ k.mT / 8**0.5).softmax(-1)
            mixed = weights @ v
            weights.zero_()
            return mixed
        mixed = F.scaled_dot_product_attention(q, k, v)
        written = {"q": q, "k": k, "v": v, "source of q": x, "mix": mixed.clone()}[self.what]
        written += mixed
        return mixed


@MODES
@pytest.mark.parametrize("what", ["q", "k", "v", "source of q", "softmax", "mix"])
def test_a_residual_added_in_place_leaves_the_right_map_or_stale(what: str, mode: Any) -> None:
    with mode():
        x = torch.randn(2, 3, 6, 8)
        before = x.clone()
        model = Written(what)
        with regard.watch(model) as trace:
            model(x)
    q = before if what == "source of q" else before * 1.5
    right = weights_of(q, before.roll(1, -1), None, 8**-0.5)
    try:
        assert_close(trace[0].weights.dense().double(), right, atol=1e-6, rtol=0)
        rows = trace[0].weights[..., 2:4, :]
    except Stale:
        assert trace.verify()[0].status == "unverified"
    else:
        assert_close(rows.double(), right[..., 2:4, :], atol=1e-6, rtol=0)
        if trace[0].v is None:
            assert (what, trace.verify()[0].status) == ("v", "unverified")
        else:  # what it says it kept is what the kernel received
            assert_close(trace[0].v, before.roll(2, -1))
            assert trace.verify(), trace.verify()


@MODES
def test_maps_of_an_earlier_layer_survive_a_stream_that_is_added_to_in_place(mode: Any) -> None:
    class InPlace(Stack):
        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            x = x.clone()
            for layer in self.layers:
                x += layer(x)
            return x

    model: Any = seeded(InPlace(depth=3))
    with mode():
        x = torch.randn(2, 7, 24)
        with regard.watch(model) as trace:
            out = model(x)
        out.zero_()
    x = x.clone()
    for layer, module in zip(trace.layers, model.layers, strict=True):
        assert_close(layer.weights.dense(), expected(module, x).float(), atol=2e-5, rtol=1e-5)
        with torch.no_grad():
            x = x + module(x)
    assert trace.verify(), trace.verify()
