"""Tokens drawn by their probability."""

from collections import Counter

import pytest
import torch

from regard.decode import Limits, greedy, sample, stream
from regard.decode.choice import draw
from regard.decode.filters import keep_min_p, keep_top_k, keep_top_p
from regard.decode.repetition import RepetitionPenalty
from regard.errors import ConfigError, ShapeError
from tests.decode.toys import END, Recurrent, Table

SOURCES = [[5, 7, 3], [8, 4], [6, 6, 3, 9, 12], [11]]


def generators(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("share", [1, 2, 7, 50, 300])
def test_top_k_equals_that_of_transformers(share):
    from transformers import TopKLogitsWarper

    logits = torch.randn(11, 57).mul(3).round(decimals=1)  # rounded, so that some tie
    assert torch.equal(keep_top_k(logits, share), TopKLogitsWarper(share)(None, logits))


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9, 0.99, 1.0])
def test_top_p_equals_that_of_transformers(share):
    from transformers import TopPLogitsWarper

    logits = torch.randn(11, 57) * 3
    assert torch.equal(keep_top_p(logits, share), TopPLogitsWarper(share)(None, logits))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_min_p_equals_that_of_transformers(share):
    from transformers import MinPLogitsWarper

    logits = torch.randn(11, 57) * 3
    assert torch.equal(keep_min_p(logits, share), MinPLogitsWarper(share)(None, logits))


def test_filters_come_in_the_order_of_transformers():
    from transformers import (
        LogitsProcessorList,
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    logits = (torch.randn(1, 31) * 2).index_fill(1, torch.tensor([0, 1, END]), -torch.inf)
    left = LogitsProcessorList(
        [TemperatureLogitsWarper(1.7), TopKLogitsWarper(9), TopPLogitsWarper(0.8), MinPLogitsWarper(0.2)]
    )(None, logits)
    wanted = {i for i, value in enumerate(left[0].tolist()) if value > -torch.inf}
    assert 2 < len(wanted) < 9
    table = logits.expand(31, 31)
    texts = sample(
        Table(table), 3, temperature=1.7, top_k=9, top_p=0.8, min_p=0.2, limits=Limits(longest=400),
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    assert {token for text in texts for token in text.ids} == wanted


@pytest.mark.parametrize("temperature", [0.5, 1, 2.0])
def test_tokens_come_as_often_as_their_probability_says(temperature):
    logits = torch.tensor([1.0, 1.0, 0.0, 0.5, 2.0, -1.0, 1.2])
    drawn = sample(
        Table(logits.expand(7, 7)), 6000, temperature=temperature, limits=Limits(longest=1, shortest=1),
        generator=torch.Generator().manual_seed(3),
    )  # fmt: skip
    counted = Counter(text.ids[0] for text in drawn)
    assert set(counted) == {3, 4, 5, 6}
    chances = (logits[3:] / temperature).softmax(-1)
    squares = sum((counted[3 + i] - 6000 * float(p)) ** 2 / (6000 * float(p)) for i, p in enumerate(chances))
    assert squares < 16.3  # chi-squared with 3 degrees of freedom: exceeded once in a thousand


def test_what_has_no_chance_is_never_drawn():
    chances = torch.tensor([[0.0, 0.25, 0.0, 0.75, 0.0]])
    at = torch.tensor([0.0, 0.2499, 0.25, 0.9999, 1.0], dtype=torch.float64)
    assert draw(chances.expand(5, 5), at).tolist() == [1, 1, 3, 3, 3]


def test_with_a_generator_per_row_a_batch_equals_single_texts():
    settings = {"temperature": 1.3, "top_k": 6, "top_p": 0.95}
    longest = [17, 9, 14, 20]
    together = sample(
        Recurrent(SOURCES, end=-1.0), 4, generator=generators(4, 5, 6, 7), limits=Limits(longest=longest), **settings
    )
    assert len({len(text.ids) for text in together}) > 2
    for row, text in enumerate(together):
        [alone] = sample(
            Recurrent([SOURCES[row]], end=-1.0), 1, generator=torch.Generator().manual_seed(4 + row),
            limits=Limits(longest=longest[row]), **settings,
        )  # fmt: skip
        assert text.ids == alone.ids
        assert text.score == pytest.approx(alone.score, abs=1e-9)


def test_one_generator_gives_the_same_texts_again_and_leaves_torchs_own_alone():
    before = torch.random.get_rng_state()
    first, again, other = (
        sample(Recurrent(SOURCES), 4, generator=generator, limits=Limits(longest=19))
        for generator in generators(8, 8, 9)
    )
    assert first == again != other
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("settings", [{"temperature": 0}, {"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}], ids=str)
def test_where_only_the_likeliest_is_left_sampling_is_greedy(settings):
    drawn = sample(Recurrent(SOURCES), 4, limits=Limits(longest=8), **settings)
    wanted = greedy(Recurrent(SOURCES), 4, limits=Limits(longest=8))
    assert [text.ids for text in drawn] == [text.ids for text in wanted]
    assert [text.score for text in drawn] == pytest.approx([text.score for text in wanted])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1}, "temperature is -1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": 0}, "top_k is 0"),
        ({"top_p": 0}, "top_p is 0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"min_p": -0.5}, "min_p is -0.5"),
    ],
    ids=["cold", "no number", "none", "nothing", "more than all", "less than none"],
)
def test_what_cannot_be_drawn_from_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        sample(Recurrent(SOURCES), 4, limits=Limits(longest=3), **settings)


def test_one_generator_per_row_is_wanted():
    with pytest.raises(ShapeError, match="2 generators came for 4 rows"):
        sample(Recurrent(SOURCES), 4, generator=generators(1, 2), limits=Limits(longest=3))


@pytest.mark.parametrize("penalty", [0.7, 1.0, 1.3, 5])
def test_a_repetition_penalty_equals_that_of_transformers(penalty):
    from transformers import RepetitionPenaltyLogitsProcessor

    ids, logits = torch.randint(57, (11, 8)), torch.randn(11, 57) * 3
    mine = RepetitionPenalty(penalty, Table(None))
    assert torch.equal(mine(logits, ids), RepetitionPenaltyLogitsProcessor(float(penalty))(ids, logits))
    more = torch.randint(57, (11, 1))
    wanted = RepetitionPenaltyLogitsProcessor(float(penalty))(torch.cat([ids, more], 1), logits)
    assert torch.equal(mine(logits, more), wanted)


def test_padding_before_a_shorter_prompt_is_not_what_was_said():
    steps = Table(None)
    steps.left_padding = torch.tensor([2, 0])
    scored = RepetitionPenalty(2, steps)(torch.ones(2, 5), torch.tensor([[0, 0, 3], [1, 0, 3]]))
    assert scored.tolist() == [[1, 1, 1, 0.5, 1], [0.5, 0.5, 1, 0.5, 1]]


@pytest.mark.parametrize("penalty", [0, -1, float("inf"), float("nan")])
def test_a_repetition_penalty_that_is_none_is_refused(penalty):
    with pytest.raises(ConfigError, match=f"repetition_penalty is {penalty}, but it divides the logits"):
        greedy(Recurrent(SOURCES), 4, repetition_penalty=penalty, limits=Limits(longest=3))


def test_a_penalty_changes_what_is_said_and_scores_stay_those_of_the_model():
    plain = greedy(Recurrent(SOURCES, end=-9), 4, limits=Limits(longest=12))
    varied = greedy(Recurrent(SOURCES, end=-9), 4, repetition_penalty=3, limits=Limits(longest=12))
    assert sum(len(set(text.ids)) for text in varied) > sum(len(set(text.ids)) for text in plain)
    assert all(one.score <= other.score + 1e-9 for one, other in zip(varied, plain) if one.ids[:1] == other.ids[:1])


def test_a_stream_draws_what_sampling_draws_from_the_same_generators():
    how = {"temperature": 1.2, "top_k": 6, "top_p": 0.9, "min_p": 0.02, "repetition_penalty": 1.4}
    drawn = sample(Recurrent(SOURCES), 4, generator=generators(3, 1, 4, 5), limits=Limits(longest=9), **how)
    said = [[] for _ in SOURCES]
    tokens = stream(Recurrent(SOURCES), 4, generator=generators(3, 1, 4, 5), limits=Limits(longest=9), **how)
    for step in tokens:
        for row, token in zip(step.rows.tolist(), step.tokens.tolist(), strict=True):
            said[row].append(token)
    assert [[token for token in row if token != END] for row in said] == [text.ids for text in drawn]
    assert len({len(row) for row in said}) > 1


def test_rows_of_a_stream_can_be_stopped_and_the_others_say_what_they_would_have_said():
    limits, texts = Limits(longest=9, end=None), [[] for _ in SOURCES]
    whole = greedy(Recurrent(SOURCES), 4, limits=limits)
    tokens = stream(Recurrent(SOURCES), 4, limits=limits, alternatives=3)
    for number, step in enumerate(tokens):
        for row, token in zip(step.rows.tolist(), step.tokens.tolist(), strict=True):
            texts[row].append(token)
        assert torch.equal(step.alternatives.ids[:, 0], step.tokens)
        assert step.alternatives.values[:, 0].tolist() == step.log_probs.tolist()
        tokens.stop([[2], [], [0, 3]][number] if number < 3 else [])
    assert [len(text) for text in texts] == [3, 9, 1, 3]
    assert texts == [text.ids[: len(mine)] for text, mine in zip(whole, texts)]
