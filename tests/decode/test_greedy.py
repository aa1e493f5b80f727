"""The likeliest token, again and again."""

import pytest
import torch

from regard.decode import Limits, greedy, stream
from regard.models import GPTConfig
from tests.decode.toys import END, Recurrent, Table

SOURCES = [[5, 7, 3], [8, 4], [6, 6, 3, 9, 12], [11]]


def plainly(make, longest, shortest=0):
    """The same in a loop that takes one text at a time."""
    steps, ids, total = make(), [1], 0.0
    while True:
        chances = steps(torch.tensor([[ids[-1]]])).log_softmax(-1)[0]
        allowed = [i for i in range(len(chances)) if i not in (0, 1) and (i != END or len(ids) > shortest)]
        token = END if len(ids) > longest else max(allowed, key=lambda i: float(chances[i]))
        total += float(chances[token])
        if token == END:
            return ids[1:], total
        ids.append(token)


@pytest.mark.parametrize("seed", range(6))
def test_a_batch_equals_a_plain_loop_over_single_texts(seed):
    found = greedy(Recurrent(SOURCES, seed=seed), 4, limits=Limits(longest=[7, 8, 9, 5], shortest=1))
    for text, source, longest in zip(found, SOURCES, [7, 8, 9, 5]):
        ids, score = plainly(lambda source=source: Recurrent([source], seed=seed), longest, 1)
        assert text.ids == ids
        assert text.score == pytest.approx(score, abs=1e-9)


def test_of_equally_likely_tokens_the_lowest_id_is_said():
    table = torch.zeros(7, 7)
    table[:, END] = -1
    assert greedy(Table(table), 1, limits=Limits(longest=3))[0].ids == [3, 3, 3]


class Growing:
    """Our GPT with its caches, as steps."""

    def __init__(self, model, cached=True):
        self.model, self.cache, self.ids = model, model.make_cache() if cached else None, None

    def __call__(self, ids):
        if self.cache is not None:
            return self.model(ids, self.cache)[:, -1]
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], 1)
        return self.model(self.ids)[:, -1]

    def reorder(self, index):
        for layer in self.cache or ():
            layer.reorder(index)
        self.ids = None if self.ids is None else self.ids[index]

    def attention(self):
        return None


@torch.no_grad()
def test_a_gpt_with_its_cache_says_what_it_says_without_and_what_is_streamed():
    model = GPTConfig(vocab_size=23, width=12, heads=3, layers=2, context=16).build().double().eval()
    for parameter in model.parameters():
        parameter.mul_(6)
    limits = Limits(longest=[11, 4], never=())
    with_cache, without = (greedy(Growing(model, cached), 2, limits=limits) for cached in (True, False))
    assert [text.ids for text in with_cache] == [text.ids for text in without]
    assert [text.score for text in with_cache] == pytest.approx([text.score for text in without], abs=1e-9)
    begun = model.begin(torch.ones(1, 1, dtype=torch.int64))
    told = [int(step.tokens) for step in stream(begun, 1, limits=Limits(longest=11, end=None))]
    told = told[: told.index(END)] if END in told else told
    assert with_cache[0].ids == told
    assert len(told) > 2
    assert with_cache[1].ids == told[:4]
