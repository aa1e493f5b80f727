import copy
import math
import pickle

import pytest
import torch
from matplotlib.figure import Figure
from torch.autograd import gradcheck
from torch.testing import assert_close
from transformers import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from regard.attention.score.bias import Bias
from regard.positions import Buckets

OFFSETS = torch.cat((torch.arange(-3000, 3001), torch.tensor([-1_000_000, 1_000_000])))


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize("buckets", [4, 5, 8, 10, 20, 32, 64, 320])
@pytest.mark.parametrize("furthest", [20, 100, 128, 129, 256, 800, 2048])
def test_buckets_equal_t5_for_every_offset_in_both_directions(both_ways, buckets, furthest):
    if furthest <= (buckets // 2 if both_ways else buckets) // 2:
        with pytest.raises(ValueError, match=f"furthest {furthest} came"):
            Buckets(1, buckets=buckets, furthest=furthest, both_ways=both_ways)
        return
    ours = Buckets(1, buckets=buckets, furthest=furthest, both_ways=both_ways).bucket(OFFSETS)
    theirs = T5Attention._relative_position_bucket(OFFSETS, both_ways, buckets, furthest)
    assert torch.equal(ours, theirs)
    assert 0 <= int(ours.min()) <= int(ours.max()) < buckets


def test_buckets_of_t5_begin_where_its_formula_says():
    # 16 buckets each way: 0 … 7 alone, then 8 · 16^(s/8) rounded up, s = 0 … 7; up to 128
    begins = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    t5 = Buckets(3)
    before = t5.bucket(-torch.tensor(begins))
    assert before.tolist() == list(range(16))
    assert t5.bucket(1 - torch.tensor(begins[1:])).tolist() == list(range(15))  # one nearer is the one before
    assert t5.bucket(torch.tensor(begins[1:])).tolist() == list(range(17, 32))
    assert begins[8:] == [math.ceil(round(8 * 16 ** (s / 8), 9)) for s in range(8)]


def test_without_both_ways_all_later_keys_are_one_bucket():
    one_way = Buckets(3, both_ways=False)
    assert one_way.bucket(torch.tensor([0, 1, 7, 500])).tolist() == [0, 0, 0, 0]
    assert one_way.bucket(-torch.tensor([1, 15, 16, 127, 9000])).tolist() == [1, 15, 16, 31, 31]


@pytest.mark.parametrize("is_decoder", [False, True])
def test_block_equals_the_bias_of_t5_with_the_same_numbers(is_decoder):
    config = T5Config(num_heads=3, d_model=12, d_kv=4, is_decoder=is_decoder)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    ours = Buckets(3, both_ways=not is_decoder)
    with torch.no_grad():
        ours.embedding.weight.copy_(theirs.relative_attention_bias.weight)
    wanted = theirs.compute_bias(150, 170)[0]
    assert_close(ours.block(torch.arange(150), torch.arange(170)), wanted)


def test_block_takes_any_positions_and_heads():
    bias = Buckets(5)
    whole = bias.block(torch.arange(40), torch.arange(40))
    queries, keys, of = torch.tensor([30, 2, 39]), torch.tensor([0, 31, 2, 17]), torch.tensor([4, 1])
    assert_close(bias.block(queries, keys, of), whole[of][:, queries][:, :, keys])
    assert_close(bias.block(queries + 7000, keys + 7000), whole[:, queries][:, :, keys])  # only differences count
    assert_close(bias.block(torch.arange(36, 40), torch.arange(40)), whole[:, 36:])  # continuing a cache
    assert bias.block(queries[:0], keys).shape == (5, 0, 4)
    assert_close(bias.block(queries.int(), keys.int()), bias.block(queries, keys))


def test_gradients_are_those_of_finite_differences():
    bias = Buckets(2, buckets=8, furthest=10).double()
    queries, keys = torch.arange(3, 6), torch.arange(16)
    for of in (None, torch.tensor([1])):
        assert gradcheck(lambda _, of=of: bias.block(queries, keys, of), (bias.embedding.weight,))
    bias.block(queries, keys).sum().backward()
    counts = torch.bincount(bias.bucket(keys - queries[:, None]).flatten(), minlength=8)
    assert_close(bias.embedding.weight.grad, counts[:, None].expand(-1, 2).double())


def test_buckets_are_a_bias_and_copies_and_state_work():
    bias, at = Buckets(3, buckets=10, furthest=50), torch.arange(7)
    assert isinstance(bias, Bias)
    assert list(bias.state_dict()) == ["embedding.weight"]
    other = Buckets(3, buckets=10, furthest=50)
    other.load_state_dict(bias.state_dict())
    for again in (other, copy.deepcopy(bias), pickle.loads(pickle.dumps(bias))):
        assert torch.equal(again.block(at, at), bias.block(at, at))
    assert bias.half().block(at, at).dtype == torch.float16


def test_default_dtype_does_not_matter_to_the_buckets():
    wanted = Buckets(1).bucket(OFFSETS)
    try:
        torch.set_default_dtype(torch.float64)
        found = Buckets(1).bucket(OFFSETS)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(found, wanted)


def test_settings_that_make_no_sense_are_refused_with_advice():
    with pytest.raises(ValueError, match="furthest 8 came, but distances below 8 have a bucket each already; give"):
        Buckets(2, furthest=8)
    with pytest.raises(ValueError, match="3 buckets came; wanted at least 4"):
        Buckets(2, buckets=3)
    with pytest.raises(ValueError, match="1 buckets came; wanted at least 2"):
        Buckets(2, buckets=1, both_ways=False)
    with pytest.raises(ValueError, match="heads 0 came"):
        Buckets(0)


def test_drawing_shows_one_head_queries_by_keys(monkeypatch, tmp_path):
    import regard.views.static.figure as figure

    shown, real = {}, figure.heatmap
    monkeypatch.setattr(
        figure, "heatmap", lambda values, **kw: (shown.update(kw, values=values), real(values, **kw))[1]
    )
    bias = Buckets(3)
    assert isinstance(bias.draw(length=6, to=tmp_path / "bias.svg", head=2), Figure)
    assert (tmp_path / "bias.svg").stat().st_size > 0
    assert_close(shown["values"], bias.block(torch.arange(6), torch.arange(6))[2].detach())
