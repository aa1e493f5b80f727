"""A swapped model is the same model under another mask: compared with torch's kernel handed that mask."""

import threading

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention.attend import attend
from regard.attention.mask import causal, longformer, window
from regard.attention.matrix_free.performer import Performer
from regard.decode import Limits, stream
from regard.errors import WatchError
from regard.models import TranslatorConfig
from regard.trace.change.edit import edit
from regard.trace.change.swap import swap
from regard.trace.watch import watch
from tests.trace.change.swap_models import MODELS, bert, given, gpt2, ids, llama, masked, near, own
from tests.trace.models import Attention, Stack, seeded


@pytest.mark.parametrize("name", MODELS)
def test_a_window_gives_what_the_model_gives_under_that_window_as_a_dense_mask(name):
    model, x = MODELS[name](), ids()
    before, after = (2, 1) if name == "bert" else (3, 0)
    with swap(model, attention=window(before, after, keep_first=1)) as s:
        found = given(model, x)
    with masked(near(before, after, first=1)):
        assert_close(found, given(model, x))
    assert len(s.layers) == 2
    assert not any(met.why for met in s.layers.values())


@pytest.mark.parametrize("name", MODELS)
def test_a_window_wider_than_the_text_changes_nothing_and_nothing_is_left_behind(name):
    model, x = MODELS[name](), ids()
    plain = given(model, x)
    with swap(model, attention=window(50, 50)):
        assert_close(given(model, x), plain)
    assert torch.equal(given(model, x), plain)


@pytest.mark.parametrize("name", ["own", "gpt2", "llama"])
def test_the_causal_mask_that_a_model_has_already_changes_nothing(name):
    model, x = MODELS[name](), ids()
    with swap(model, attention=causal()):
        found = given(model, x)
    assert_close(found, given(model, x))


@pytest.mark.parametrize("name", ["own", "gpt2", "bert"])
def test_a_long_text_takes_the_banded_path(name):
    model, x = MODELS[name](), ids(1, 512)
    with swap(model, attention=window(17, 0, keep_first=2)) as s:
        found = given(model, x)
    with masked(near(17, 0, first=2)):
        assert_close(found, given(model, x))
    assert {met.path for met in s.layers.values()} == {"banded"}


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("how", ["sdpa", "eager"])
def test_padding_of_the_call_still_holds(side, how):
    model, x = gpt2(attn_implementation=how).float(), ids(3)
    real = torch.tensor([[1] * 11, [1] * 9 + [0] * 2, [1] * 6 + [0] * 5])
    real = real.flip(-1) if side == "left" else real
    with swap(model, attention=window(3, 0)):
        found = given(model, x, attention_mask=real)
    with masked(near(3, 0)):
        wanted = given(gpt2().float(), x, attention_mask=real)
    assert_close(found[real.bool()], wanted[real.bool()], atol=1e-4, rtol=1e-4)


def test_bert_under_padding_and_a_window_on_both_sides():
    model, x = bert(), ids(2)
    real = torch.tensor([[1] * 11, [1] * 7 + [0] * 4])
    with swap(model, attention=longformer(2, global_at=[0])):
        found = given(model, x, attention_mask=real)

    def cells(q, k):
        seen = near(2, 2)(q, k)
        seen[0] = True
        seen[:, 0] = True
        return seen

    with masked(cells):
        assert_close(found[real.bool()], given(model, x, attention_mask=real)[real.bool()])


@pytest.mark.parametrize("make", [gpt2, llama], ids=["gpt2", "llama"])
@pytest.mark.parametrize("cache", [None, "static"])
def test_generate_step_by_step_writes_what_whole_passes_under_the_dense_mask_write(make, cache):
    model, x = make(), ids(1, 5)
    how = {} if cache is None else {"cache_implementation": cache, "disable_compile": True}
    with swap(model, attention=window(3, 0, keep_first=1)):
        said = model.generate(x, attention_mask=torch.ones_like(x), max_new_tokens=6, do_sample=False, **how)
    wanted = x
    with masked(near(3, 0, first=1)):
        for _ in range(6):
            wanted = torch.cat([wanted, given(model, wanted)[:, -1:].argmax(-1)], 1)
    assert said.tolist() == wanted.tolist()


def test_our_own_model_writes_under_a_window_step_by_step():
    model, x = own(), ids(1, 5)
    with swap(model, attention=window(3, 0)):
        steps = stream(model.begin(x), 1, limits=Limits(longest=6, end=None))
        said = torch.cat([x, torch.stack([step.tokens for step in steps], 1)], 1)
    wanted = x
    with masked(near(3, 0)):
        for _ in range(6):
            wanted = torch.cat([wanted, given(model, wanted)[:, -1:].argmax(-1)], 1)
    assert said.tolist() == wanted.tolist()


def test_gradients_are_those_of_the_dense_mask():
    layer, x = seeded(Attention(24, 3)).double(), torch.randn(2, 7, 24, dtype=torch.float64, requires_grad=True)
    with swap(layer, attention=window(2, 1)):
        ours = torch.autograd.grad(layer(x).square().sum(), [x, *layer.parameters()])
    theirs = torch.autograd.grad(layer(x, mask=near(2, 1)(7, 7)).square().sum(), [x, *layer.parameters()])
    assert_close(ours, theirs)


def test_a_performer_takes_the_place_of_a_kernel():
    layer, x = seeded(Attention(24, 3)).double(), torch.randn(2, 7, 24, dtype=torch.float64) / 4
    by = Performer(8, 32)
    with torch.no_grad(), swap(layer, attention=by) as s:
        found = layer(x)
        q = layer.q(x).unflatten(-1, (3, 8)).transpose(1, 2)
        k, v = layer.kv(x).unflatten(-1, (2, 3, 8)).permute(2, 0, 3, 1, 4)
        wanted = layer.out(attend(q, k, v, by=by).mix.transpose(1, 2).flatten(2))
    assert_close(found, wanted)
    assert s.layers["Attention"].path == "performer"


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_watched_is_the_map_that_was_used(name, inside):
    model, x = MODELS[name](), ids()
    first, second = (swap(model, attention=window(2, 2)), watch(model))
    with first if inside else second as a, second if inside else first as b:
        given(model, x)
    trace = b if inside else a
    assert trace.verify()
    cells = near(2, 2)(11, 11) & (torch.ones(11, 11).bool() if name == "bert" else torch.ones(11, 11).tril().bool())
    for layer in trace.layers:
        weights = layer.weights.dense()
        assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
        assert bool((weights > 0).eq(cells).all())
        assert "swap(window(2, 2))" in layer.edits


def test_a_watched_generate_shows_one_map_under_the_window():
    model, x = llama(), ids(1, 5)
    with swap(model, attention=window(2, 0)), watch(model) as trace:
        model.generate(x, attention_mask=torch.ones_like(x), max_new_tokens=4, do_sample=False)
    assert trace.verify()
    weights = trace.layers[1].weights.dense()
    assert weights.shape == (1, 6, 8, 8)
    assert bool((weights > 0).eq(near(2)(8, 8) & torch.ones(8, 8).tril().bool()).all())


def test_a_watched_performer_shows_an_implied_map():
    model, x = own(), ids()
    with swap(model, attention=Performer(4, 16)), watch(model) as trace:
        given(model, x)
    assert [layer.weights.kind for layer in trace.layers] == ["implied", "implied"]


def test_attend_inside_our_own_layer_hands_back_the_swapped_map():
    model = own()
    with torch.no_grad(), swap(model, attention=window(1, 0)):
        weights = model.blocks[0].attention.attend(torch.randn(1, 4, 12, dtype=torch.float64)).weights
    assert bool((weights.dense() > 0).eq(near(1)(4, 4)).all())


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", ["own", "gpt2"])
def test_edits_fall_on_the_swapped_map_whichever_block_is_outside(name, inside):
    model, x = MODELS[name](), ids()
    blocks = [swap(model, attention=window(3, 0)), edit(model)]
    a, b = blocks if inside else reversed(blocks)
    with a as first, b as second:
        e = second if inside else first
        e.block(query=5, key=4)
        found = given(model, x)

    def cells(q, k):
        seen = near(3)(q, k)
        seen[5, 4] = False
        return seen

    with masked(cells):
        assert_close(found, given(model, x))


def test_a_swap_inside_a_swap_holds_both_masks():
    model, x = own(), ids()
    with swap(model, attention=window(4, 0)), swap(model, attention=longformer(2, global_at=[0])):
        found = given(model, x)

    def cells(q, k):
        seen = near(2, 2)(q, k)
        seen[0] = seen[:, 0] = True
        return seen & near(4)(q, k)

    with masked(cells):
        assert_close(found, given(model, x))


def test_other_threads_are_not_swapped():
    model, x = gpt2(), ids()
    plain, beside = given(model, x), []
    with swap(model, attention=window(1, 0)):
        thread = threading.Thread(target=lambda: beside.append(given(model, x)))
        thread.start()
        thread.join()
        assert not torch.equal(given(model, x), plain)
    assert torch.equal(beside[0], plain)


def test_after_an_error_the_model_is_as_it_was():
    model, x = gpt2(), ids()
    plain = given(model, x)
    with pytest.raises(IndexError), swap(model, attention=window(1, 0)):
        given(model, x + 100)  # no such token
    assert torch.equal(given(model, x), plain)


def test_a_swap_can_be_opened_again_but_not_inside_of_itself():
    model, x = gpt2(), ids()
    s = swap(model, attention=window(1, 0))
    with s:
        first = given(model, x)
        with pytest.raises(WatchError, match="this swap is open already"), s:
            pass
        with pytest.raises(WatchError, match="ask after the block"):
            s(input_ids=x)
    with s:
        assert torch.equal(given(model, x), first)


class Pair(nn.Module):
    """Self-attention, then attention over something else."""

    def __init__(self) -> None:
        super().__init__()
        self.near, self.far = seeded(Attention(24, 3)).double(), seeded(Attention(24, 3), 1).double()

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        x = x + self.near(x)
        return x + self.far(x, memory)


def test_cross_attention_is_left_alone_unless_it_is_named():
    model = Pair()
    x, memory = (torch.randn(2, n, 24, dtype=torch.float64) for n in (7, 9))
    with torch.no_grad(), swap(model, attention=window(1, 1)) as s:
        found = model(x, memory)
    y = x + model.near(x, mask=near(1, 1)(7, 7))
    assert_close(found, y + model.far(y, memory))
    assert "cross-attention" in s.layers["far"].why
    with torch.no_grad(), swap(model, attention=window(1, 1), layers="far") as s:
        found = model(x, memory)
    y = x + model.near(x)
    assert_close(found, y + model.far(y, memory, mask=near(1, 1)(7, 9)))
    assert s.layers["near"].why == "it is not among layers="


def test_layers_picks_by_parts_of_paths():
    model, x = gpt2(), ids()
    with swap(model, attention=window(1, 0), layers=["h.1"]) as s:
        given(model, x)
    assert [name for name, met in s.layers.items() if not met.why] == ["transformer.h.1.attn"]


@pytest.mark.parametrize("way", ["by_hand", "by_bmm", "by_einsum"])
def test_attention_by_hand_is_left_as_it_is_with_the_reason(way):
    model = Stack(way="sdpa")
    model.layers[1].way = way
    with torch.no_grad(), swap(model, attention=window(1, 0)) as s:
        model(torch.randn(1, 5, 24))
    assert not s.layers["layers.0"].why
    assert "q and k are not seen" in s.layers["layers.1"].why


def test_torchs_own_encoder_is_swapped_on_its_fast_path_too():
    layer = nn.TransformerEncoderLayer(24, 3, 20, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(seeded(layer), 2, enable_nested_tensor=False).double()
    x = torch.randn(2, 7, 24, dtype=torch.float64)
    wanted = model.train()(x, mask=~near(2, 1)(7, 7))
    with torch.no_grad(), swap(model.eval(), attention=window(2, 1)) as s:
        assert_close(model(x), wanted)
    assert len(s.layers) == 2


def test_the_translator_of_this_package_keeps_its_cross_attention():
    model = seeded(TranslatorConfig(7, 11, width=12, heads=3, layers=2).build()).double().eval()
    source, target = torch.tensor([[1, 5, 4, 3, 6, 2]]), torch.tensor([[1, 7, 9, 8]])
    with torch.no_grad(), swap(model, attention=window(1, 1)) as s:
        model(source, target)
    left = [name for name, met in s.layers.items() if met.why]
    assert len(left) == 2
    assert all(s.layers[name].kind == "cross" for name in left)
    assert len(s.layers) == 6
