"""What may be written, and what is refused."""

import pytest
import torch

from regard.decode import Limits, beam, greedy, sample
from regard.errors import ConfigError, ModelError, RegardError, ShapeError
from tests.decode.toys import END, Recurrent, Table

SOURCES = [[5, 7, 3], [8, 4], [6, 6, 3, 9, 12]]
DECODERS = {
    "greedy": lambda steps, rows, limits: greedy(steps, rows, limits=limits),
    "sample": lambda steps, rows, limits: sample(
        steps, rows, limits=limits, generator=torch.Generator().manual_seed(rows)
    ),
    "beam": lambda steps, rows, limits: [
        best[0] for best in beam(steps, rows, beams=4, limits=limits, length_penalty=0.7)
    ],
}
every_decoder = pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)


@every_decoder
def test_no_text_is_longer_than_its_row_allows_or_shorter_than_all_must_be(decode):
    for end in (-9.0, 9.0):  # never of its own will, or at once
        texts = decode(Recurrent(SOURCES, end=end), 3, Limits(longest=[7, 2, 5], shortest=2))
        lengths = [len(text.ids) for text in texts]
        assert lengths == ([7, 2, 5] if end < 0 else [2, 2, 2])


@every_decoder
def test_what_is_never_said_is_not_said_and_still_has_its_probability(decode):
    limits = Limits(longest=6, never=(0, 1, 4, 5, 6, 7))
    for row, text in enumerate(decode(Recurrent(SOURCES), 3, limits)):
        assert set(text.ids) <= {3, 8}
        steps, total = Recurrent([SOURCES[row]]), 0.0
        for previous, token in zip([1, *text.ids], [*text.ids, END]):
            total += float(steps(torch.tensor([[previous]])).log_softmax(-1)[0, token])
        length = len(text.ids) + 1
        assert text.score == pytest.approx(total / (length**0.7 if decode is DECODERS["beam"] else 1), abs=1e-9)


@every_decoder
def test_no_rows_give_no_texts(decode):
    assert decode(Recurrent(SOURCES), 0, Limits(longest=3)) == []
    assert decode(Recurrent(SOURCES), 0, Limits(longest=[])) == []


@every_decoder
def test_a_text_of_no_tokens_is_a_text(decode):
    assert [text.ids for text in decode(Recurrent(SOURCES), 3, Limits(longest=0))] == [[], [], []]


@every_decoder
def test_rows_that_have_ended_leave_the_batch(decode):
    steps = Recurrent(SOURCES, end=-20.0)
    decode(steps, 3, Limits(longest=[4, 1, 2]))
    width = 4 if decode is DECODERS["beam"] else 1
    assert steps.sizes == [3, 3 * width, 2 * width, width, width]


@every_decoder
def test_logits_that_are_not_numbers_are_refused(decode):
    table = torch.zeros(9, 9)
    table[4] = torch.nan
    table[1, 4] = 99.0
    with pytest.raises(ModelError, match="not numbers \\(NaN\\) for token 2; look at its weights"):
        decode(Table(table), 2, Limits(longest=5))


@every_decoder
def test_ids_that_the_model_does_not_know_are_refused(decode):
    with pytest.raises(ConfigError, match="never holds the id 9, but the model says 9 tokens; give ids from 0 to 8"):
        decode(Recurrent(SOURCES), 3, Limits(longest=2, never=(0, 9)))


@every_decoder
def test_one_longest_per_row_is_wanted(decode):
    with pytest.raises(ShapeError, match="longest came for 2 rows, but 3 are written"):
        decode(Recurrent(SOURCES), 3, Limits(longest=[4, 4]))


@every_decoder
def test_rows_count_texts(decode):
    with pytest.raises(ShapeError, match="rows is -1"):
        decode(Recurrent(SOURCES), -1, Limits(longest=4))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"longest": -1}, "longest is -1, but it counts tokens"),
        ({"longest": [4, -2]}, "longest is -2"),
        ({"longest": 4, "shortest": -3}, "shortest is -3"),
        ({"longest": [9, 4], "shortest": 5}, "longest is 4, but a text has at least shortest=5 tokens"),
        ({"longest": 4, "never": (0, 2)}, "the id 2 is both end and never said"),
    ],
)
def test_limits_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        Limits(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beams": 0}, "beams is 0"),
        ({"beams": 3, "best": 4}, "best is 4, but 3 beams find 1 to 3 texts"),
        ({"best": 0}, "best is 0"),
        ({"coverage_penalty": -0.1}, "coverage_penalty is -0.1"),
        ({"stop": "soon"}, "stop is 'soon'; choose one of 'full', 'likely', 'sure'"),
        ({"length_rule": "long"}, "length_rule is 'long'; choose one of 'plain', 'wu'"),
        ({"length_penalty": float("inf")}, "length_penalty is inf"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_search_that_makes_no_sense_is_refused(settings, message):
    with pytest.raises(RegardError, match=message):
        beam(Recurrent(SOURCES), 3, limits=Limits(longest=3), **settings)
