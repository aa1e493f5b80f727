"""The best spans, beside a loop over all of them in float64."""

import math

import pytest
import torch
from torch.testing import assert_close

from regard.models import BertConfig
from regard.tasks.answer_spans import AskedRows, choose_answers, find_spans
from regard.tasks.answer_windows import WindowEncoder, choose_contexts
from regard.tasks.encoder import train_tokenizer
from regard.tasks.encoder_tokens import EncoderTokenizer

TEXT = "The cat  sat on the mat, and the dog slept by the door.\tA 🐈 ran. " * 3
ENCODER = WindowEncoder(
    EncoderTokenizer.wrap(train_tokenizer([TEXT], 300, lowercase=False)), max_length=40, stride=9, max_question=9
)


def model_of(seed, **more):
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=300, width=12, heads=3, layers=1, context=40, head="span", **more)
    model = config.build().double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    return model


def every_span(model, asked, max_answer):
    """(score, start, stop) of all spans of a passage, one after the other: as characters, each in its best window."""
    found, contexts = [], choose_contexts([row.window for row in asked.rows])
    nulls = []
    for number, row in enumerate(asked.rows):
        with torch.no_grad():
            types = torch.tensor([row.types]) if model.types is not None else None
            start, end = model(torch.tensor([row.ids]), types)[0].unbind(-1)
        nulls.append(float(start[0] + end[0]))
        for first in range(*row.window):
            for last in range(first, min(first + max_answer, row.window.stop)):
                spans = asked.passage.spans
                is_text = spans[first, 0] < spans[first, 1] and spans[last, 0] < spans[last, 1]
                if contexts[first] == number and is_text:
                    shift = row.inside.start - row.window.start
                    score = float(start[first + shift] + end[last + shift])
                    found.append((score, int(spans[first, 0]), int(spans[last, 1])))
    return sorted(found, reverse=True), min(nulls)


@pytest.mark.parametrize("max_answer", [1, 4, 100])
@pytest.mark.parametrize("token_types", [2, 0])
def test_the_best_spans_are_those_of_a_loop_over_all(max_answer, token_types):
    model = model_of(max_answer, token_types=token_types)
    passages = ENCODER.encode_passages([TEXT, TEXT[:29], "x"])
    questions = ENCODER.encode_questions(["Who sat?", "Where is the mat?", "Why"])
    asked = [AskedRows(p, list(ENCODER.frame(q, p))) for p in passages for q in questions]
    assert max(len(one.rows) for one in asked) > 3
    for knows_null in (False, True):
        chosen = choose_answers(model, asked, max_answer=max_answer, count=6, knows_null=knows_null)
        for one, answer in zip(asked, chosen):
            wanted, null = every_span(model, one, max_answer)
            total = math.fsum(math.exp(score) for score, *_ in wanted) + (math.exp(null) if knows_null else 0)
            assert len(answer.spans) == min(6, len(wanted))
            for span, (score, start, stop) in zip(answer.spans, wanted):
                assert (span.start, span.stop) == (start, stop)
                assert span.score == pytest.approx(score, abs=1e-9)
                assert span.probability == pytest.approx(math.exp(score) / total, rel=1e-9)
                row = one.rows[span.row]
                assert row.inside.start <= span.tokens[0] <= span.tokens[1] < row.inside.stop
            assert answer.null_score == pytest.approx(null - wanted[0][0], abs=1e-9)


def test_questions_together_are_answered_as_each_alone():
    model = model_of(5)
    [passage] = ENCODER.encode_passages([TEXT])
    asked = [AskedRows(passage, list(ENCODER.frame(q, passage))) for q in ENCODER.encode_questions(["Who?", "Why so?"])]
    both = choose_answers(model, asked, max_answer=5, count=3)
    for one, answer in zip(asked, both):
        [alone] = choose_answers(model, [one], max_answer=5, count=3)
        assert [span[:2] for span in alone.spans] == [span[:2] for span in answer.spans]
        assert_close([span.score for span in alone.spans], [span.score for span in answer.spans])
    assert choose_answers(model, [], max_answer=5) == []


def test_a_span_may_only_begin_and_end_where_it_is_allowed():
    torch.manual_seed(1)
    logits = torch.randn(3, 11, 2, dtype=torch.float64)
    starts, ends = torch.rand(3, 11) < 0.5, torch.rand(3, 11) < 0.5
    found = find_spans(logits, starts, ends, max_answer=4, count=50)
    for row in range(3):
        wanted = sorted(
            (float(logits[row, i, 0] + logits[row, j, 1]), i, j)
            for i in range(11)
            for j in range(i, min(i + 4, 11))
            if starts[row, i] and ends[row, j]
        )[::-1]
        count = int(found.scores[row].isfinite().sum())
        assert count == min(50, len(wanted))
        assert [*zip(found.starts[row, :count].tolist(), found.ends[row, :count].tolist())] == [w[1:] for w in wanted]
        assert_close(found.null[row], logits[row, 0].sum())


def test_a_passage_without_a_letter_has_no_answer():
    model = model_of(2)
    [passage], [question] = ENCODER.encode_passages(["  "]), ENCODER.encode_questions(["Who?"])
    [answer] = choose_answers(model, [AskedRows(passage, list(ENCODER.frame(question, passage)))], max_answer=5)
    assert (answer.spans, answer.null_score, answer.cut_best("  ")) == ([], math.inf, "")
