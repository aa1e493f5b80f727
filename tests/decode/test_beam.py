"""Beam search beside plain loops, beside all texts there are, and beside itself."""

import pytest
import torch

from regard.decode import Limits, beam, greedy
from regard.decode.penalties import plain, wu
from regard.errors import ConfigError
from regard.models import GPTConfig, Seq2SeqConfig, TranslatorConfig
from regard.models.decoder_state import HasHead
from tests.decode.test_greedy import Growing
from tests.decode.toys import END, Recurrent, Table, all_texts, by_hand, covered

SOURCES = [[5, 7, 3], [8, 4], [6, 6, 3, 9, 12], [11]]
PENALTIES = {
    "none": (0, "plain"),
    "mean": (1.0, "plain"),
    "short": (-0.5, "plain"),
    "Wu": (0.6, "wu"),
    "long": (2, "wu"),
}


def divisor_of(penalty, rule):
    return {"plain": plain, "wu": wu}[rule](penalty)


@pytest.mark.parametrize("stop", ["full", "likely", "sure"])
@pytest.mark.parametrize(("penalty", "rule"), PENALTIES.values(), ids=PENALTIES)
@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_a_batch_finds_what_plain_loops_find_text_by_text(stop, penalty, rule, beta):
    longest, seed = [6, 7, 5, 4], 11
    found = beam(
        Recurrent(SOURCES, seed=seed), 4, beams=3, best=3, length_penalty=penalty, length_rule=rule, stop=stop,
        coverage_penalty=beta, limits=Limits(longest=longest, shortest=1),
    )  # fmt: skip
    for texts, source, most in zip(found, SOURCES, longest):
        wanted = by_hand(
            lambda source=source: Recurrent([source], seed=seed), 9, beams=3, divisor=divisor_of(penalty, rule),
            stop=stop, longest=most, shortest=1, beta=beta,
        )  # fmt: skip
        assert [text.ids for text in texts] == [ids for ids, _ in wanted]
        assert [text.score for text in texts] == pytest.approx([score for _, score in wanted], abs=1e-9)


@pytest.mark.parametrize(("penalty", "rule"), PENALTIES.values(), ids=PENALTIES)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_with_beams_enough_it_finds_the_best_of_all_texts(penalty, rule, beta):
    make = lambda: Recurrent([[5, 7, 3]], vocabulary=6, seed=2)  # noqa: E731
    lp = divisor_of(penalty, rule)
    every = [
        (ids, total / lp(len(ids) + 1) + covered(looked, beta))
        for ids, total, looked in all_texts(make, vocabulary=6, longest=4)
    ]
    assert len(every) == 1 + 3 + 9 + 27 + 81
    every.sort(key=lambda text: -text[1])
    [found] = beam(
        make(), 1, beams=125, best=7, length_penalty=penalty, length_rule=rule, coverage_penalty=beta, stop="sure",
        limits=Limits(longest=4),
    )  # fmt: skip
    assert [text.ids for text in found] == [ids for ids, _ in every[:7]]
    assert [text.score for text in found] == pytest.approx([score for _, score in every[:7]], abs=1e-9)


def test_more_beams_than_texts_give_every_text_once():
    make = lambda: Recurrent([[5, 7, 3], [8]], vocabulary=5)  # noqa: E731
    for texts in beam(make(), 2, beams=20, best=20, limits=Limits(longest=[2, 1])):
        ids = [tuple(text.ids) for text in texts]
        assert sorted(ids) in ([(), (3,), (3, 3), (3, 4), (4,), (4, 3), (4, 4)], [(), (3,), (4,)])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("stop", ["full", "likely", "sure"])
def test_a_batch_equals_single_texts(seed, stop):
    settings = {"beams": 5, "best": 5, "stop": stop, "coverage_penalty": 0.2, "length_penalty": 0.8}
    longest = [9, 13, 6, 17]
    together = beam(Recurrent(SOURCES, 40, seed=seed), 4, limits=Limits(longest=longest), **settings)
    for row, texts in enumerate(together):
        [alone] = beam(Recurrent([SOURCES[row]], 40, seed=seed), 1, limits=Limits(longest=longest[row]), **settings)
        assert [text.ids for text in texts] == [text.ids for text in alone]
        assert [text.score for text in texts] == pytest.approx([text.score for text in alone], abs=1e-9)


def test_sure_finds_the_same_best_as_searching_to_the_end_in_fewer_steps():
    fewer = 0
    for seed in range(6):
        steps = Recurrent([SOURCES[0]], seed=seed)
        [found] = beam(steps, 1, beams=4, best=2, length_penalty=0.5, stop="sure", limits=Limits(longest=9))
        wanted = by_hand(
            lambda seed=seed: Recurrent([SOURCES[0]], seed=seed), 9, beams=4, divisor=plain(0.5), stop="none", longest=9
        )
        assert [text.ids for text in found] == [ids for ids, _ in wanted[:2]]
        fewer += len(steps.sizes) < 10
    assert fewer


def test_a_penalty_may_be_a_function_of_the_length():
    named, given = (
        beam(Recurrent(SOURCES), 4, length_penalty=penalty, length_rule="wu", limits=Limits(longest=7))
        for penalty in (0.9, lambda length: ((5 + length) / 6) ** 0.9)
    )
    assert named == given


def test_one_beam_that_stops_when_full_is_greedy():
    for seed in range(4):
        found = beam(Recurrent(SOURCES, seed=seed), 4, beams=1, length_penalty=0, stop="full", limits=Limits(longest=8))
        wanted = greedy(Recurrent(SOURCES, seed=seed), 4, limits=Limits(longest=8))
        assert [text.ids for [text] in found] == [text.ids for text in wanted]
        assert [text.score for [text] in found] == pytest.approx([text.score for text in wanted])


def test_of_equal_scores_the_lower_beam_comes_first_then_the_lower_id():
    table = torch.zeros(2000, 2000)  # long enough for chunks
    table[:, END] = -torch.inf
    [texts] = beam(Table(table), 1, beams=3, best=3, limits=Limits(longest=2))
    assert texts == []  # END has no chance, so nothing can be finished
    table[:, END] = -1.0
    [texts] = beam(Table(table), 1, beams=3, best=3, limits=Limits(longest=2))
    assert [text.ids for text in texts] == [[3, 3], [3, 4], [3, 5]]


def test_attention_is_asked_for_once_a_step_and_only_where_coverage_counts():
    steps = Recurrent(SOURCES)
    beam(steps, 4, limits=Limits(longest=3))
    assert steps.asked == 0
    beam(steps := Recurrent(SOURCES), 4, coverage_penalty=0.1, limits=Limits(longest=3))
    assert steps.asked == len(steps.sizes)
    with pytest.raises(ConfigError, match="this model tells no attention to a source; give coverage_penalty=0"):
        beam(Table(torch.zeros(7, 7)), 1, coverage_penalty=0.1, limits=Limits(longest=3))


def test_coverage_prefers_a_text_that_looks_at_all_of_its_source():
    class Torn(Table):
        """After 3 it looks at the first of two source positions for ever, after 4 at the other one."""

        def __call__(self, ids):
            self.last = ids[:, -1]
            return super().__call__(ids)

        def reorder(self, index):
            self.last = self.last[index]

        def attention(self):
            return torch.tensor([[0.9, 0.1], [0.1, 0.9]])[(self.last == 4).long()]

    table = torch.full((5, 5), -9.0)
    table[1, 3], table[1, 4], table[3, END], table[4, END] = 1.0, 0.5, 3.0, 3.0
    first = [
        beam(Torn(table), 1, beams=2, coverage_penalty=beta, limits=Limits(longest=3))[0][0].ids for beta in (0, 2.0)
    ]
    assert first == [[3], [4]]


def test_half_precision_logits_are_scored_in_float32():
    table = torch.randn(11, 11).bfloat16()
    [[text]] = beam(Table(table), 1, limits=Limits(longest=4))
    [[same]] = beam(Table(table.float()), 1, limits=Limits(longest=4))
    assert text == same


@torch.no_grad()
def test_a_gpt_with_its_cache_finds_what_it_finds_without():
    model = (
        GPTConfig(vocab_size=23, width=12, heads=3, layers=2, context=16, positions="rotary").build().double().eval()
    )
    for parameter in model.parameters():
        parameter.mul_(6)
    limits = Limits(longest=[11, 4])
    with_cache, without = (beam(Growing(model, cached), 2, beams=4, best=4, limits=limits) for cached in (True, False))
    for mine, other in zip(with_cache, without):
        assert [text.ids for text in mine] == [text.ids for text in other]
        assert [text.score for text in mine] == pytest.approx([text.score for text in other], abs=1e-9)


class Untold:
    """Steps without their head."""

    def __init__(self, steps):
        self.step, self.reorder, self.attention = steps.__call__, steps.reorder, steps.attention

    def __call__(self, ids):
        return self.step(ids)


def test_a_model_that_tells_its_head_is_searched_to_the_same_texts():
    torch.manual_seed(5)
    for model in (
        TranslatorConfig(17, 19, width=12, heads=3, layers=2).build(),
        Seq2SeqConfig(17, 19, width=10, attention="dot").build(),
    ):
        source = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0], [9, 10, 2, 0]])
        limits = Limits(longest=[9, 4, 7])
        told, untold = (model.eval().begin(source) for _ in range(2))
        untold = Untold(untold)
        assert isinstance(told, HasHead)
        assert not isinstance(untold, HasHead)
        found, wanted = (beam(steps, 3, beams=4, best=3, limits=limits) for steps in (told, untold))
        assert [[text.ids for text in row] for row in found] == [[text.ids for text in row] for row in wanted]
        torch.testing.assert_close(
            torch.tensor([[text.score for text in row] for row in found]),
            torch.tensor([[text.score for text in row] for row in wanted]),
        )
