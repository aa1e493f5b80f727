"""Step by step = one shot = chunked prefill, in float64 to 1e-10, for every position scheme; and the buffer's laws."""

import copy

import pytest
import torch
from torch import nn
from torch.autograd import grad
from torch.testing import assert_close

import regard
from regard import KeyValueCache
from regard.errors import Stale
from regard.positions import YarnScaling

B, T, M, H, D = 2, 11, 12, 4, 6
exact = {"rtol": 1e-10, "atol": 1e-10}
CUTS = {"steps": [1] * T, "prefill and steps": [7, 1, 1, 1, 1], "chunks": [4, 3, 4], "uneven": [1, 6, 1, 3]}


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


class Reader(nn.Module):
    """A layer and what is added to the embeddings before it."""

    def __init__(self, positions=None, before=None, **options):
        super().__init__()
        self.before = before
        self.layer = regard.MultiHead(M, H, kv_heads=2, head_width=D, positions=positions, **options)
        self.double()

    def forward(self, x, cache=None, places=None, mask=None):
        mask = regard.causal() if mask is None else mask
        if self.before is not None:
            x = self.before(x, cache.seen if places is None and cache is not None else places)
        turned = places if isinstance(self.layer.positions, regard.Rotary) else None
        return self.layer(x, mask=mask, cache=cache, places=turned)


SCHEMES = {
    "none": lambda: Reader(),
    "rotary, half": lambda: Reader(regard.Rotary(D), qk_norm=True),
    "rotary, interleaved, partial": lambda: Reader(regard.Rotary(D, layout="interleaved", rotated=4)),
    "rotary, yarn": lambda: Reader(regard.Rotary(D, scaling=YarnScaling(factor=4, original=8))),
    "alibi": lambda: Reader(regard.ALiBi(H)),
    "alibi, learned": lambda: Reader(regard.ALiBi(H, learned=True)),
    "buckets": lambda: Reader(regard.Buckets(H, furthest=20)),
    "sinusoid": lambda: Reader(before=regard.Sinusoid(M)),
    "learned": lambda: Reader(before=regard.Learned(40, M)),
    "sinks": lambda: Reader(regard.Rotary(D), sinks=True),
}
schemes = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
cuts = pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
recording = pytest.mark.parametrize("recording", [True, False], ids=["grad", "no grad"])


def read(reader, x, cache, cut, **options):
    return torch.cat([reader(part, cache=cache, **options) for part in x.split(cut, -2)], -2)


@schemes
@cuts
@recording
def test_every_way_of_cutting_a_text_gives_the_same_numbers(scheme, cut, recording):
    reader, x = scheme(), draw(B, T, M)
    with torch.set_grad_enabled(recording):
        cache = KeyValueCache()
        assert_close(read(reader, x, cache, cut), reader(x), **exact)
        assert len(cache) == cache.seen == T
        assert_close(read(reader, x[0], KeyValueCache(capacity=T), cut), reader(x[0]), **exact)  # without a batch


@schemes
@cuts
def test_a_batch_padded_on_the_left_gives_what_each_sequence_gives_alone(scheme, cut):
    reader, x, lengths = scheme(), draw(B, T, M), torch.tensor([T, 6])
    x[1, : T - 6] = float("nan")
    places = (torch.arange(T) - (T - lengths)[:, None]).clamp(min=0)
    cache, outs, seen = KeyValueCache(), [], 0
    with torch.no_grad():
        for part in cut:
            seen += part
            within = (lengths - (T - seen)).clamp(min=0)  # real tokens so far
            mask = regard.causal() & regard.padding(within, side="left")
            outs.append(reader(x[:, seen - part : seen], cache, places[:, seen - part : seen], mask))
        out = torch.cat(outs, 1)
        assert_close(out[0], reader(x[0]), **exact)
        assert_close(out[1, T - 6 :], reader(x[1, T - 6 :]), **exact)


@schemes
@cuts
@recording
@pytest.mark.parametrize(("window", "first"), [(1, 0), (3, 0), (3, 2), (2, 3), (40, 2)])
def test_a_window_equals_full_attention_under_the_window_mask(scheme, cut, recording, window, first):
    reader, x = scheme(), draw(B, T, M)
    mask = regard.causal() & regard.window(window, keep_first=first)
    with torch.set_grad_enabled(recording):
        cache = KeyValueCache(window=window, keep_first=first)
        assert_close(read(reader, x, cache, cut, mask=mask), reader(x, mask=mask), **exact)
    held = min(T, window + first)
    assert (len(cache), cache.seen) == (held, T)
    assert cache.positions.tolist() == sorted({*range(min(first, T)), *range(T)[-window:]} if held < T else range(T))
    assert cache.keys.shape == cache.values.shape == (B, 2, held, D)


def test_a_window_stays_exact_and_small_after_many_wraps():
    reader, x = Reader(regard.Rotary(D)), draw(B, 200, M)
    mask, cache = regard.causal() & regard.window(5, keep_first=2), KeyValueCache(window=5, keep_first=2)
    with torch.no_grad():
        found = read(reader, x, cache, [60, *[1] * 100, 9, *[1] * 31], mask=mask)
        assert_close(found, reader(x, mask=mask), **exact)
        assert cache._buffer.k.shape[-2] <= 4 * (2 * 7 + 1)
        steps = KeyValueCache(window=5)  # one token at a time needs no mask
        alone = torch.cat([reader.layer(part, cache=steps) for part in x.split(1, 1)], 1)
        assert_close(alone, reader(x, mask=regard.causal() & regard.window(5)), **exact)
        assert steps.positions.tolist() == [195, 196, 197, 198, 199]


def test_what_is_held_are_the_keys_that_were_appended():
    k, v = draw(B, 3, 9, 4), draw(B, 3, 9, 5)
    cache = KeyValueCache(window=2, keep_first=3)
    seen = []
    for i in range(9):
        keys, values = cache.append(k[:, :, i : i + 1], v[:, :, i : i + 1])
        seen = [*seen[:3], *seen[3:][-2:], i]
        assert torch.equal(keys, k[:, :, seen])
        assert torch.equal(values, v[:, :, seen])
    assert cache.positions.tolist() == [0, 1, 2, 7, 8]
    assert torch.equal(cache.keys, k[:, :, cache.positions])
    assert torch.equal(cache.values, v[:, :, cache.positions])


def test_a_step_copies_one_token_and_grows_by_doubling():
    cache, places = KeyValueCache(), set()
    for _ in range(500):
        k, v = cache.append(torch.ones(B, 3, 1, 4), torch.ones(B, 3, 1, 4))
        places.add(k.data_ptr())
        assert k.stride(-1) == v.stride(-1) == 1
        assert k.stride(-2) == 4
    assert len(places) <= 10
    room = KeyValueCache(capacity=500)
    places = {room.append(torch.ones(3, 1, 4), torch.ones(3, 1, 4))[0].data_ptr() for _ in range(500)}
    assert len(places) == 1


def test_what_was_appended_is_not_written_to_and_old_views_stay_true():
    cache, k = KeyValueCache(capacity=9), draw(B, 3, 4, 5)
    before = k.clone()
    keys, _ = cache.append(k, k)
    version = keys._version
    for _ in range(5):
        cache.append(draw(B, 3, 1, 5), draw(B, 3, 1, 5))
    assert torch.equal(keys, before)
    assert keys._version == version  # so that autograd and maps know it is still true
    assert torch.equal(k, before)


def test_gradients_flow_through_the_cache_as_in_one_shot():
    reader, x = Reader(regard.Rotary(D)), draw(B, T, M).requires_grad_()
    wanted = grad(reader(x).square().sum(), (x, *reader.parameters()))
    for cut in CUTS.values():
        assert_close(grad(read(reader, x, KeyValueCache(), cut).square().sum(), (x, *reader.parameters())), wanted)
    window = regard.causal() & regard.window(3, keep_first=1)
    wanted = grad(reader(x, mask=window).square().sum(), (x, *reader.parameters()))
    found = read(reader, x, KeyValueCache(window=3, keep_first=1), CUTS["uneven"], mask=window)
    assert_close(grad(found.square().sum(), (x, *reader.parameters())), wanted)


def test_gradients_of_queries_survive_a_growing_cache_of_frozen_keys():
    layer, x = regard.MultiHead(M, H).double(), draw(B, T, M)
    for p in (*layer.to_k.parameters(), *layer.to_v.parameters()):
        p.requires_grad_(False)
    wanted = grad(layer(x, mask=regard.causal()).square().sum(), layer.to_q.weight)
    cache = KeyValueCache(capacity=T)
    out = torch.cat([layer(part, cache=cache, mask=regard.causal()) for part in x.split(1, 1)], 1)
    assert cache._buffer.ours  # written in place, behind what the graph needs
    assert_close(grad(out.square().sum(), layer.to_q.weight), wanted)


def test_a_cache_filled_in_inference_mode_serves_outside_of_it():
    reader, x = Reader(), draw(B, T, M)
    for cache in (KeyValueCache(), KeyValueCache(capacity=T), KeyValueCache(window=T)):
        with torch.inference_mode():
            first = reader(x[:, :6], cache=cache)
        with torch.no_grad():
            rest = read(reader, x[:, 6:], cache, [1, 4])
        assert_close(torch.cat((first, rest), 1), reader(x), **exact)


def test_crop_goes_back_in_time():
    reader, x, other = Reader(regard.Rotary(D)), draw(B, T, M), draw(B, 4, M)
    wanted = reader(torch.cat((x[:, :5], other), 1))[:, 5:]
    for recording in (True, False):
        with torch.set_grad_enabled(recording):
            cache = KeyValueCache()
            read(reader, x, cache, CUTS["chunks"])
            cache.crop(5)
            assert len(cache) == cache.seen == 5
            assert_close(reader(other, cache=cache), wanted, **exact)
            cache.crop(0)
            assert_close(reader(x, cache=cache), reader(x), **exact)


def test_writing_over_cropped_keys_makes_old_maps_stale_instead_of_wrong():
    layer, x = regard.MultiHead(M, H), torch.randn(B, T, M)
    with torch.no_grad():
        cache = KeyValueCache(capacity=T)
        old = layer.attend(x[:, :6], cache=cache).weights
        wanted = old.dense()
        layer(x[:, 6:7], cache=cache)
        assert torch.equal(old.dense(), wanted)  # growing leaves it true
        cache.crop(3)
        layer(x[:, 3:4], cache=cache)
        with pytest.raises(Stale, match="k was written to"):
            old.dense()


def test_reorder_equals_reading_the_reordered_texts():
    reader, x = Reader(regard.Rotary(D)), draw(3, T, M)
    index = torch.tensor([2, 0, 0, 1, 2])
    next_token = draw(5, 2, M)
    wanted = reader(torch.cat((x[index], next_token), 1))[:, T:]
    for recording in (True, False):
        for cache in (KeyValueCache(), KeyValueCache(capacity=T + 2), KeyValueCache(window=T + 2)):
            with torch.set_grad_enabled(recording):
                read(reader, x, cache, CUTS["uneven"])
                cache.reorder(index)
                assert cache.keys.shape[0] == 5
                assert_close(reader(next_token, cache=cache), wanted, **exact)


def test_beams_that_reorder_every_step_do_not_disturb_each_other():
    reader, texts = Reader(regard.ALiBi(H)), [[] for _ in range(3)]
    cache, generator = KeyValueCache(), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _ in range(12):
            token = draw(3, 1, M)
            texts = [[*text, one] for text, one in zip(texts, token)]
            found = reader(token, cache=cache)
            assert_close(found, reader(torch.stack([torch.cat(t) for t in texts]))[:, -1:], **exact)
            index = torch.randint(3, (3,), generator=generator)
            cache.reorder(index)
            texts = [texts[i] for i in index]


def test_beams_write_over_no_keys_that_somebody_still_looks_at():
    cache, held = KeyValueCache(capacity=T), []
    memories = set()
    with torch.no_grad():
        cache.append(draw(3, H, T - 1, D), draw(3, H, T - 1, D))
        for step in range(9):
            memories.add(cache.keys.untyped_storage().data_ptr())
            if step in (2, 5):
                seen = cache.keys.transpose(1, 2)[..., :1]  # a view of a view: only its memory is known
                held.append((seen, seen.clone()))
            cache.reorder(torch.tensor([2, 0, 1]))
    for seen, before in held:
        assert seen.equal(before)
    assert len(memories) == 4  # two, and one more for each that is looked at


def test_moving_to_another_dtype_moves_what_is_held():
    reader, x = Reader(), draw(B, T, M)
    cache = KeyValueCache(capacity=T)
    with torch.no_grad():
        Reader.forward(reader, x[:, :6], cache)
        reader.float()
        assert cache.to(torch.float32) is cache
        assert (cache.keys.dtype, len(cache), cache.seen) == (torch.float32, 6, 6)
        found = read(reader, x[:, 6:].float(), cache, [1, 4])
    assert_close(found.double(), reader.double()(x)[:, 6:], rtol=1e-5, atol=1e-5)
    assert cache.to("meta", torch.bfloat16).keys.is_meta
    assert len(KeyValueCache().to(torch.float64)) == 0


def test_a_cache_can_be_copied_cleared_and_described():
    cache = KeyValueCache(window=4, keep_first=1)
    assert (len(cache), cache.seen, cache.positions.tolist()) == (0, 0, [])
    with torch.no_grad():
        cache.append(draw(B, 3, 9, 4), draw(B, 3, 9, 4))
        twin = copy.deepcopy(cache)
        cache.append(draw(B, 3, 1, 4), draw(B, 3, 1, 4))
    assert (twin.seen, cache.seen) == (9, 10)
    assert repr(cache) == "KeyValueCache(window=4, keep_first=1), 5 keys held, 10 tokens seen"
    cache.clear()
    assert (len(cache), cache.seen) == (0, 0)
    assert len(cache.append(draw(5, 2, 3), draw(5, 2, 3))[0]) == 5


def test_appending_nothing_changes_nothing():
    cache = KeyValueCache()
    k, _ = cache.append(draw(B, 3, 0, 4), draw(B, 3, 0, 4))
    assert k.shape == (B, 3, 0, 4)
    cache.append(draw(B, 3, 2, 4), draw(B, 3, 2, 4))
    k, _ = cache.append(draw(B, 3, 0, 4), draw(B, 3, 0, 4))
    assert k.shape == (B, 3, 2, 4)


def test_cross_attention_projects_its_source_once():
    layer, x, source = regard.MultiHead(M, H, key_width=7, value_width=7).double(), draw(B, T, M), draw(B, 5, 7)
    wanted, calls = layer(x, source, mask=regard.padding([5, 3])), []
    for to in (layer.to_k, layer.to_v):
        to.register_forward_hook(lambda *_: calls.append(1))
    for recording in (True, False):
        with torch.set_grad_enabled(recording):
            cache = KeyValueCache()
            calls.clear()
            parts = [layer(part, source, mask=regard.padding([5, 3]), cache=cache) for part in x.split(3, 1)]
            assert_close(torch.cat(parts, 1), wanted, **exact)
            assert len(calls) == 2
            assert (len(cache), cache.seen) == (5, 5)
            cache.reorder(torch.tensor([1, 1, 0]))
            found = layer(x[[1, 1, 0]], source, mask=regard.padding([3, 3, 5]), cache=cache)
            assert_close(found, wanted[[1, 1, 0]], **exact)
            assert len(calls) == 2
