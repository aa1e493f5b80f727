"""Scores by name: each the formula it names, and one of its own for every layer."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention.score.named import SCORES, make_score
from regard.layers import BlockConfig, DecoderBlock, EncoderBlock

WIDTH, Q, K = 6, 5, 7


def formula(name, score, q, k):
    """One pair at a time, as the layer will compare them."""
    if name in ("dot", "scaled dot"):
        return q @ k / (WIDTH**0.5 if name == "scaled dot" else 1)
    if name in ("bilinear", "general"):
        return q @ score.weight @ k
    if name == "additive":
        return score.v @ torch.tanh(score.query_to_hidden.weight @ q + score.key_to_hidden.weight @ k)
    if name == "cosine":
        return 10 * (q @ k) / (q.norm() * k.norm())
    return -(q - k).square().sum() / (2 * WIDTH**0.5)  # width² is √d


@pytest.mark.parametrize("name", SCORES)
def test_a_name_is_its_formula(name):
    score = make_score(name, WIDTH)
    if isinstance(score, torch.nn.Module):
        score.double()
    q, k = torch.randn(Q, WIDTH, dtype=torch.float64), torch.randn(K, WIDTH, dtype=torch.float64)
    found = regard.attend(q, k, k, score=score).weights.dense()
    wanted = torch.stack([torch.stack([formula(name, score, a, b) for b in k]) for a in q]).softmax(-1)
    assert_close(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", SCORES)
def test_blocks_take_a_score_by_name_and_share_none(name):
    encoder = EncoderBlock(BlockConfig(12, 2, 9, score=name))
    decoder = DecoderBlock(BlockConfig(12, 2, 9, score=name))
    x, memory = torch.randn(3, 4, 12), torch.randn(3, 5, 12)
    (encoder(x).square().sum() + decoder(x, memory).square().sum()).backward()
    scores = [each.score for each in (encoder.attention, decoder.self_attention, decoder.cross_attention)]
    learned = [p for score in scores if isinstance(score, torch.nn.Module) for p in score.parameters()]
    assert len({id(p) for p in learned}) == len(learned)
    assert all(p.grad is not None for p in learned)


def test_other_names_are_refused_with_those_there_are():
    with pytest.raises(ValueError, match="attention is 'loud'; choose one of 'scaled dot', 'dot', 'additive'"):
        EncoderBlock(BlockConfig(12, 2, 9, score="loud"))
