"""Masks against loops over cells, against other libraries, and against themselves turned into other forms."""

import pickle
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention.map import AttentionMap, Computed
from regard.attention.mask import Sizes, rule
from regard.errors import DtypeError, MaskError

B, H, Q, K = 2, 3, 5, 7


def loop(sees, q=Q, k=K, batch=None, heads=None):
    """A mask cell by cell, as its definition reads."""
    cells = [
        [[[bool(sees(b, h, i, j)) for j in range(k)] for i in range(q)] for h in range(heads or 1)]
        for b in range(batch or 1)
    ]
    found = torch.tensor(cells)
    return found if heads else found[:, 0] if batch else found[0, 0]


LENGTHS, PER_QUERY = [0, 6], [[0, 1, 2, 3, 7], [7, 0, 5, 5, 1]]
IDS = torch.tensor([[0, 0, 1, 1, 1, 2, 2], [5, 5, 5, 5, 9, 9, 9]])
LAYOUT = torch.tensor([[True, False, True, False], [False, True, False, True], [True, True, False, False]])
TENSOR = torch.rand(B, H, Q, K, generator=torch.Generator().manual_seed(3)) > 0.4
OFF = K - Q
MASKS = {
    "causal": (regard.causal(), lambda b, h, i, j: j <= i + OFF),
    "causal first": (regard.causal(align="first"), lambda b, h, i, j: j <= i),
    "window": (regard.window(2, 1), lambda b, h, i, j: -2 <= j - (i + OFF) <= 1),
    "one-sided window": (regard.window(1), lambda b, h, i, j: -1 <= j - (i + OFF) <= 0),
    "dilated": (regard.window(4, 2, dilation=2), lambda b, h, i, j: j - i - OFF in (-4, -2, 0, 2)),
    "window with first": (regard.window(1, keep_first=2), lambda b, h, i, j: -1 <= j - i - OFF <= 0 or j < 2),
    "wide window": (regard.window(99, 99), lambda b, h, i, j: True),
    "prefix": (regard.prefix(4), lambda b, h, i, j: j < 4 or j <= i + OFF),
    "prefix per sequence": (
        regard.prefix(torch.tensor([1, 6])),
        lambda b, h, i, j: j < (1, 6)[b] or j <= i + OFF,
    ),
    "padding": (regard.padding(LENGTHS), lambda b, h, i, j: j < LENGTHS[b]),
    "left padding": (regard.padding(LENGTHS, side="left"), lambda b, h, i, j: j >= K - LENGTHS[b]),
    "padding per query": (regard.padding(PER_QUERY), lambda b, h, i, j: j < PER_QUERY[b][i]),
    "documents": (regard.documents(IDS), lambda b, h, i, j: IDS[b][i + OFF] == IDS[b][j]),
    "shared documents": (regard.documents(IDS[0]), lambda b, h, i, j: IDS[0][i + OFF] == IDS[0][j]),
    "documents of others": (
        regard.documents(IDS, of_queries=[0, 1, 2, 5, 9]),
        lambda b, h, i, j: (0, 1, 2, 5, 9)[i] == IDS[b][j],
    ),
    "blocks": (regard.block_sparse(LAYOUT, 2), lambda b, h, i, j: LAYOUT[i // 2][j // 2]),
    "tensor": (regard.allowed(TENSOR), lambda b, h, i, j: TENSOR[b, h, i, j]),
    "blocked": (regard.blocked(TENSOR), lambda b, h, i, j: not TENSOR[b, h, i, j]),
    "keys": (regard.allowed(TENSOR[:, 0, 0], axes="b k"), lambda b, h, i, j: TENSOR[b, 0, 0, j]),
    "heads": (regard.allowed(TENSOR[0, :, 0, 0], axes="h"), lambda b, h, i, j: TENSOR[0, h, 0, 0]),
    "rule": (rule(lambda b, h, q, k: (b + h + q + k) % 3 > 0), lambda b, h, i, j: (b + h + i + j) % 3 > 0),
    "and": (
        regard.causal() & regard.padding(LENGTHS),
        lambda b, h, i, j: j <= i + OFF and j < LENGTHS[b],
    ),
    "or": (
        regard.window(1, 0) | regard.padding(PER_QUERY),
        lambda b, h, i, j: -1 <= j - i - OFF <= 0 or j < PER_QUERY[b][i],
    ),
    "not": (~regard.causal(), lambda b, h, i, j: j > i + OFF),
    "all at once": (
        (regard.causal() & regard.documents(IDS) | regard.prefix(1)) & ~regard.allowed(TENSOR),
        lambda b, h, i, j: (
            ((j <= i + OFF and IDS[b][i + OFF] == IDS[b][j]) or (j < 1 or j <= i + OFF)) and not TENSOR[b, h, i, j]
        ),
    ),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_equals_its_definition_cell_by_cell(name):
    mask, sees = MASKS[name]
    assert torch.equal(mask.dense(Q, K, batch=B, heads=H), loop(sees, batch=B, heads=H))


@pytest.mark.parametrize("name", MASKS)
def test_all_forms_of_a_mask_agree(name):
    mask, _ = MASKS[name]
    dense = mask.dense(Q, K, batch=B, heads=H)
    flex = mask.to_flex(Q, K, batch=B, heads=H, block=4).to_dense()  # whole blocks of 4 × 4
    blocks = F.pad(dense, (0, 1, 0, 3)).unflatten(-1, (2, 4)).unflatten(-3, (2, 4)).any(-1).any(-2)
    assert torch.equal(flex.bool(), blocks)
    additive = mask.to_additive(Q, K, batch=B, heads=H, dtype=torch.float16)
    assert torch.equal(additive == 0, dense)
    assert additive.min() in (0, torch.finfo(torch.float16).min)
    text = mask.text(Q, K, batch=B, heads=H)
    assert [c == "■" for c in text if c in "■·"] == dense.flatten().tolist()
    sdpa = mask.to_sdpa(Q, K, batch=B, heads=H)
    q, k, v = torch.randn(B, H, Q, 11), torch.randn(B, H, K, 11), torch.randn(B, H, K, 11)
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=dense)
    torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, **sdpa), theirs)


@pytest.mark.parametrize("name", MASKS)
def test_no_row_sees_a_key_outside_its_span(name):
    mask, _ = MASKS[name]
    sizes = Sizes((B, H), Q, K)
    dense = mask.dense(Q, K, batch=B, heads=H)
    for first, stop in product(range(Q), range(1, Q + 1)):
        if first < stop:
            low, high = mask.span(first, stop, sizes)
            assert 0 <= low <= high <= K
            outside = dense[:, :, first:stop].clone()
            outside[..., low:high] = False
            assert not outside.any()


@pytest.mark.parametrize("name", MASKS)
def test_every_row_sees_every_key_that_is_called_clear(name):
    mask, _ = MASKS[name]
    sizes = Sizes((B, H), Q, K)
    dense = mask.dense(Q, K, batch=B, heads=H)
    for first, stop in product(range(Q), range(1, Q + 1)):
        if first < stop:
            low, high = mask.clear(first, stop, sizes)
            assert 0 <= low <= high <= K
            assert dense[:, :, first:stop, low:high].all()


def test_what_is_clear_under_a_window_and_a_causal_mask_is_all_but_the_edges():
    sizes = Sizes((1, 1), 900, 1000)
    assert regard.causal().clear(50, 60, sizes) == (0, 151)
    assert (regard.causal() & regard.window(40, 3)).clear(50, 60, sizes) == (119, 151)


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_describes_itself_and_survives_pickling(name):
    mask, _ = MASKS[name]
    assert len(mask.describe()) > 10
    assert repr(mask)
    if "rule" in name:
        return  # a lambda has no name to be found by
    again = pickle.loads(pickle.dumps(mask))
    assert torch.equal(again.dense(Q, K, batch=B, heads=H), mask.dense(Q, K, batch=B, heads=H))


def test_descriptions_read_as_sentences():
    assert regard.causal().describe() == "each query sees itself and the keys before it"
    assert (regard.causal() & regard.window(3)).describe() == (
        "each query sees itself and the keys before it, and each query sees itself, 3 keys before it and 0 after it"
    )
    assert repr(regard.causal() & ~regard.padding([1, 2])) == "causal() & ~padding([1, 2])"
    assert repr((regard.causal() | regard.window(2, 1)) & regard.prefix(3)) == ("(causal() | window(2, 1)) & prefix(3)")


@given(st.permutations(["causal", "padding", "window", "documents", "tensor"]), st.integers(2, 5))
@settings(max_examples=25)
def test_the_order_of_and_does_not_matter(names, count):
    chosen = [MASKS[name][0] for name in names[:count]]
    forward, backward = chosen[0], chosen[-1]
    for mask in chosen[1:]:
        forward = forward & mask
    for mask in chosen[-2::-1]:
        backward = backward & mask
    product_ = torch.stack([m.dense(Q, K, batch=B, heads=H) for m in chosen]).all(0)
    assert torch.equal(forward.dense(Q, K, batch=B, heads=H), product_)
    assert torch.equal(backward.dense(Q, K, batch=B, heads=H), product_)


def test_packed_documents_never_leak():
    ids = torch.tensor([0, 0, 0, 1, 1, 2])
    x = torch.randn(1, 6, 4, dtype=torch.float64)
    packed = regard.attend(x, x, x, mask=regard.documents(ids) & regard.causal()).mix
    for one in range(3):
        alone = x[:, ids == one]
        torch.testing.assert_close(packed[:, ids == one], regard.attend(alone, alone, alone, mask=regard.causal()).mix)


def test_a_causal_mask_of_100_000_costs_nothing():
    mask = regard.causal() & regard.window(10, 0)
    sizes = Sizes((), 100_000, 100_000)
    assert mask.span(50_000, 50_001, sizes) == (49_990, 50_001)
    q = torch.randn(100_000, 2)
    weights = AttentionMap(Computed(q, q, sizes, mask=mask))
    row = weights[50_000]
    assert row.nonzero().flatten().tolist() == list(range(49_990, 50_001))


def test_the_causal_flag_is_used_only_where_it_means_the_same():
    assert regard.causal().to_sdpa(5, 5) == {"attn_mask": None, "is_causal": True}
    assert regard.causal(align="first").to_sdpa(5, 7) == {"attn_mask": None, "is_causal": True}
    assert regard.causal().to_sdpa(1, 7) == {"attn_mask": None, "is_causal": False}
    assert regard.causal().to_sdpa(5, 7)["attn_mask"].shape == (5, 7)


def test_the_float_mask_equals_that_of_transformers():
    masking = pytest.importorskip("transformers.masking_utils")
    ours = regard.causal().to_additive(5, 5)
    theirs = masking.eager_mask(
        batch_size=1, q_length=5, kv_length=5, mask_function=masking.causal_mask_function, dtype=torch.float32
    )
    assert torch.equal(ours, theirs)


def test_lengths_are_copied_and_move_with_the_queries():
    lengths = torch.tensor([2, 3], dtype=torch.int32)
    mask = regard.padding(lengths)
    lengths.zero_()
    assert mask.dense(1, 4, batch=2).sum().item() == 5


def test_a_mask_first_used_in_inference_mode_serves_training_later():
    mask = regard.causal() & regard.padding([3, 5])
    x = torch.randn(2, 3, 5, 4)
    with torch.inference_mode():
        before = regard.attend(x, x, x, mask=mask).mix.clone()
    for _ in range(2):
        y = x.clone().requires_grad_()
        mix = regard.attend(y, y, y, mask=mask).mix
        mix.sum().backward()
        assert y.grad.isfinite().all()
        torch.testing.assert_close(mix.detach(), before)


def test_a_remembered_mask_forgets_nothing_and_invents_nothing():
    lengths = [3, 5]
    mask = regard.causal() & regard.padding(lengths)
    x = torch.randn(2, 3, 5, 4)
    first, again = (regard.attend(x, x, x, mask=mask).mix for _ in range(2))
    assert mask.memo is not None
    assert torch.equal(first, again)
    longer = torch.randn(2, 3, 6, 4)  # other sizes: the memory does not fit and is not used
    fresh = regard.attend(longer, longer, longer, mask=regard.causal() & regard.padding(lengths)).mix
    assert torch.equal(regard.attend(longer, longer, longer, mask=mask).mix, fresh)
    theirs = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    own = regard.allowed(theirs)
    open_ = regard.attend(x, x, x, mask=own).mix
    theirs[..., 2:] = False  # a tensor of somebody else's is read anew each time
    assert not torch.equal(regard.attend(x, x, x, mask=own).mix, open_)


def test_a_drawing_shows_what_the_dense_mask_says(tmp_path):
    figure = regard.causal().draw(4, 6, to=tmp_path / "mask.svg")
    shown = figure.axes[0].images[0].get_array() if figure.axes[0].images else figure.axes[0].collections[0].get_array()
    seen = torch.tensor(~shown.mask if hasattr(shown, "mask") else shown == 1).reshape(4, 6)
    assert torch.equal(seen.bool(), regard.causal().dense(4, 6))
    assert (tmp_path / "mask.svg").stat().st_size > 500


# What is refused, and in which words.

Q4 = torch.randn(B, H, Q, 4)
K4 = torch.randn(B, H, K, 4)


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        (torch.ones(Q, K, dtype=torch.bool), MaskError, r"shape \(5, 7\).*could mean several things.*axes='q k'"),
        (torch.ones(B, K, dtype=torch.bool), MaskError, "name its axes"),
        (torch.ones(B, H, Q, K + 1, dtype=torch.bool), MaskError, r"\(2, 3, 5, 8\).*\(2, 3, 5, 7\).*equal or 1"),
        (torch.ones(B, H, Q, K), DtypeError, r"float32 numbers.*regard.allowed\(mask.bool\(\)\)"),
        (torch.full((B, H, Q, K), -1e9), DtypeError, "go in as bias="),
        (torch.ones(B, H, Q, K, dtype=torch.int64), DtypeError, r"int64 numbers.*regard.blocked\(mask.bool\(\)\)"),
        (torch.ones(B, H, Q, K, dtype=torch.uint8), DtypeError, "uint8 numbers"),
        (regard.padding([3, 2, 1]), MaskError, r"lengths of shape \(3,\), but the batch is \(2,\) with 5 queries"),
        (regard.padding([3, 8]), MaskError, "a length is 8, but there are only 7 keys"),
        (regard.documents([0, 1]), MaskError, r"ids of shape \(2,\) for the keys.*give one id per position"),
        (regard.prefix(torch.tensor([1, 2, 3])), MaskError, r"lengths of shape \(3,\).*one length per sequence"),
        (regard.block_sparse(LAYOUT, 3), MaskError, r"3 × 4 blocks of 3.*need 2 × 3"),
        (regard.block_sparse(LAYOUT.expand(2, 3, 4), 2), MaskError, "a layout for 2 heads, but there are 3"),
        (regard.allowed(TENSOR[:, 0, 0, :-1], axes="b k"), MaskError, "has 6 along 'k', but there are 7"),
        (lambda b, h, q, k: q + k, DtypeError, "the rule gave torch.int64.*write it with comparisons"),
    ],
)
def test_masks_that_do_not_fit_are_refused_with_advice(mask, error, words):
    with pytest.raises(error, match=words):
        regard.attend(Q4, K4, K4, mask=mask)


@pytest.mark.parametrize("q", [torch.randn(Q, 4), torch.randn(H, Q, 4)])
def test_padding_without_a_batch_axis_is_refused_with_advice(q):
    with pytest.raises(MaskError, match=r"has no batch axis; make \(b, q, d\) into \(b, 1, q, d\) by q\[:, None\]"):
        regard.attend(q, q, q, mask=regard.padding([3, 2]))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: regard.padding([3, -1]), MaskError, "a length is -1, but lengths count keys"),
        (lambda: regard.padding(torch.tensor([1.0])), DtypeError, "lengths are torch.float32.*give integers"),
        (lambda: regard.padding(torch.tensor([True])), DtypeError, "axes='b k'"),
        (lambda: regard.padding(torch.tensor(3)), MaskError, "one length per sequence"),
        (lambda: regard.window(-1), ValueError, "before is -1"),
        (lambda: regard.window(1, dilation=0), ValueError, "dilation is 0"),
        (lambda: regard.prefix(-2), MaskError, "the prefix is -2 keys long"),
        (lambda: regard.allowed(TENSOR.int()), DtypeError, "a mask is boolean"),
        (lambda: regard.blocked(TENSOR.float()), DtypeError, "a mask is boolean"),
        (lambda: regard.allowed(TENSOR, axes="k q"), MaskError, "in this order"),
        (lambda: regard.allowed(TENSOR, axes="q k"), MaskError, "name 2 axes, but the mask has shape"),
        (lambda: regard.block_sparse(LAYOUT.int(), 2), DtypeError, "layout.bool"),
        (lambda: regard.block_sparse(LAYOUT, 0), ValueError, "block is 0"),
        (lambda: regard.causal() & TENSOR, MaskError, r"wrap a boolean tensor as regard.allowed\(tensor\)"),
        (lambda: regard.causal(align="middle"), ValueError, "'last' or 'first'"),
        (lambda: regard.padding([1], side="top"), ValueError, "'right' or 'left'"),
    ],
)
def test_masks_that_cannot_be_are_refused_with_advice(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_unequal_sizes_never_decide_what_a_short_mask_means():
    square = torch.ones(4, 4, dtype=torch.bool)  # b = h = q = k: it could be anything
    x = torch.randn(4, 4, 4, 4)
    with pytest.raises(MaskError, match="could mean several things"):
        regard.attend(x, x, x, mask=square)
    by_name = regard.attend(x, x, x, mask=regard.allowed(square.tril(), axes="q k")).mix
    torch.testing.assert_close(by_name, regard.attend(x, x, x, mask=regard.causal()).mix)
