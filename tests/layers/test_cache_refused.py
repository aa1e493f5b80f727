"""A cache that is used wrongly says so, and stays as it was; one cache serves one kind of attention."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard import KeyValueCache
from regard.errors import CacheError, DtypeError, PositionError
from tests.child import in_child

B, M, H = 2, 12, 4
exact = {"rtol": 1e-10, "atol": 1e-10}


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def filled(**options):
    cache = KeyValueCache(**options)
    cache.append(torch.ones(B, 3, 6, 4), torch.ones(B, 3, 6, 4))
    return cache


def keys(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype), torch.ones(*shape, dtype=dtype)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: filled(capacity=8).append(*keys(B, 3, 3, 4)), r"holds 6 of at most 8 keys and 3 more came; .*=9\)"),
        (lambda: filled().append(*keys(5, 3, 1, 4)), r"of shape \(2, 3, t, 4\) and \(5, 3, 1, 4\) came"),
        (lambda: filled().append(*keys(B, 2, 1, 4)), "use one cache per layer and batch"),
        (lambda: filled().append(*keys(B, 3, 1, 5)), r"cache.reorder\(index\)"),
        (lambda: filled().append(torch.ones(B, 3, 2, 4), torch.ones(B, 3, 1, 4)), "one value for every key"),
        (lambda: filled().crop(7), "crop to 7 tokens came, but 6 were seen; give 0 to 6"),
        (lambda: filled().crop(-1), "crop to -1 tokens came"),
        (lambda: filled(window=4).crop(5), "of the 6 seen the window holds only 4 and would need earlier ones"),
        (lambda: filled().store(*keys(B, 3, 5, 4)), "the cache already holds 6 keys"),
        (lambda: KeyValueCache(window=3).store(*keys(B, 3, 5, 4)), "the cache has a window"),
        (lambda: KeyValueCache(capacity=3).store(*keys(B, 3, 5, 4)), "a source of 5 keys came, .* at most 3"),
        (lambda: KeyValueCache().keys, "the cache is empty and has no keys yet"),
    ],
)
def test_wrong_use_is_refused_with_advice(use, words):
    with pytest.raises(CacheError, match=words):
        use()


def test_a_cache_without_a_batch_cannot_be_reordered():
    cache = KeyValueCache()
    cache.reorder(torch.tensor([0, 0]))  # nothing is held, nothing to do
    cache.append(*keys(3, 6, 4))
    with pytest.raises(CacheError, match=r"keys of shape \(3, 6, 4\), without a batch axis to reorder"):
        cache.reorder(torch.tensor([0, 0]))


def test_a_refused_call_leaves_the_cache_as_it_was():
    cache = filled(capacity=8)
    with pytest.raises(CacheError):
        cache.append(*keys(B, 3, 3, 4))
    assert len(cache) == cache.seen == 6
    cache.append(*keys(B, 3, 2, 4))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"capacity": 0}, "capacity is 0, but it counts keys; give 1 or more"),
        ({"window": 0}, "window is 0"),
        ({"window": 3, "keep_first": -1}, "keep_first is -1"),
        ({"keep_first": 2}, "keep_first=2 came without a window"),
        ({"window": 3, "capacity": 9}, "capacity and window both came"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        KeyValueCache(**options)


@in_child
def test_a_query_of_another_dtype_is_refused():
    layer, cache, x = regard.MultiHead(M, H), KeyValueCache(), torch.ones(B, 5, M)
    layer(x, cache=cache)
    with pytest.raises(DtypeError, match=r"holds keys of torch.float32 and torch.bfloat16 came; .*cache.to\("):
        layer.bfloat16()(x.bfloat16(), cache=cache)
    with pytest.raises(DtypeError, match=r"holds keys of torch\.float32 and torch\.float64"):
        cache.append(torch.ones(B, H, 1, 3, dtype=torch.float64), torch.ones(B, H, 1, 3, dtype=torch.float64))


def test_a_cache_serves_self_attention_or_one_source_and_says_so():
    layer, x, source = regard.MultiHead(M, H), torch.ones(B, 5, M), torch.ones(B, 7, M)
    own, others = KeyValueCache(), KeyValueCache()
    layer(x, cache=own)
    layer(x, source, cache=others)
    with pytest.raises(CacheError, match="holds the 7 keys of a source, for cross-attention, and 5 more came"):
        layer(x, cache=others)
    with pytest.raises(CacheError, match="a source of 7 positions came, but the cache holds what self-attention read"):
        layer(x, source, cache=own)
    with pytest.raises(CacheError, match="a source of 6 positions came, but the cache holds a source of 7"):
        layer(x, source[:, :6], cache=others)
    with pytest.raises(CacheError, match=r"queries of shape \(3, 4, 5, 3\) came, but .* \(2, 4, 7, 3\)"):
        layer(torch.ones(3, 5, M), source, cache=others)


def test_positions_that_a_cached_source_cannot_serve_are_refused():
    x, source = torch.ones(B, 5, M), torch.ones(B, 7, M)
    with pytest.raises(CacheError, match="ALiBi counts from the end of the source"):
        regard.MultiHead(M, H, positions=regard.ALiBi(H))(x, source, cache=KeyValueCache())
    turning = regard.MultiHead(M, 2, positions=regard.Rotary(6)).double()
    with pytest.raises(PositionError, match="does not know where its queries stand, and Rotary needs it; give places="):
        turning(x.double(), source.double(), cache=KeyValueCache())
    x, source, cache = draw(B, 5, M), draw(B, 7, M), KeyValueCache()
    parts = [turning(x[:, i : i + 1], source, cache=cache, places=torch.tensor([i])) for i in range(5)]
    assert_close(torch.cat(parts, 1), turning(x, source), **exact)


def test_a_source_without_positions_is_a_source_too():
    layer, x, cache = regard.MultiHead(M, H).double(), draw(B, 5, M), KeyValueCache()
    for _ in range(2):
        assert_close(layer(x, draw(B, 0, M), cache=cache), layer.to_out.bias.expand(B, 5, M))
