"""SQuAD files: what real ones hold, and what is wrong with bad ones, with its place."""

import copy
import gzip
import json

import pytest

from regard.data.squad import SquadAnswer, read_squad
from regard.errors import DataError
from tests.shared import MISSING_DATA, SHARED

FOLDER = SHARED / "data/squad"
IMPOSSIBLE = {"id": "b", "question": "When?", "answers": [], "is_impossible": True}
IMPOSSIBLE["plausible_answers"] = [{"text": "sat", "answer_start": 16}]
QUESTIONS = [{"id": "a", "question": "Who?", "answers": [{"text": "Mia", "answer_start": 12}] * 2}, IMPOSSIBLE]
PARAGRAPHS = [{"context": "Ein 🐈 named Mia sat.", "qas": QUESTIONS}, {"context": "No question here.", "qas": []}]
GOOD = {"version": "v2.0", "data": [{"title": "Cats", "paragraphs": PARAGRAPHS}, {"paragraphs": []}]}


def write(path, content):
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["one.json", "one.json.gz"])
def test_passages_questions_and_answers_come_in_order(tmp_path, name):
    data = read_squad(write(tmp_path / name, GOOD))
    assert data.passages == ["Ein 🐈 named Mia sat.", "No question here."]
    assert [(one.id, one.text, one.passage) for one in data.questions] == [("a", "Who?", 0), ("b", "When?", 0)]
    assert data.questions[0].answers == (SquadAnswer("Mia", 12), SquadAnswer("Mia", 12))
    assert (data.questions[1].answers, data.has_unanswerable, data.skipped) == ((), True, 0)
    first = data.questions[0].answers[0]
    assert data.passages[0][first.start : first.stop] == first.text


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING_DATA)
@pytest.mark.parametrize(
    ("name", "passages", "questions", "answers"),
    [("train-v1.1-first44", 2430, 11877, 11877), ("dev-v1.1", 2067, 10570, 34726)],
)
def test_every_answer_of_the_real_files_stands_in_its_passage(name, passages, questions, answers):
    data = read_squad(FOLDER / f"{name}.json.gz")
    assert (len(data.passages), len(data.questions), data.skipped) == (passages, questions, 0)
    assert sum(len(one.answers) for one in data.questions) == answers
    for one in data.questions:
        assert all(data.passage_of(one)[answer.start : answer.stop] == answer.text for answer in one.answers)


QUESTION = ("data", 0, "paragraphs", 0, "qas", 0)
ANSWER = (*QUESTION, "answers", 0)
IN_Q = "article 1 'Cats', paragraph 1, question 'a': "


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ((), [], "bad.json: there is [], but an object was wanted"),
        (("data",), None, "'data' is None, but a list was wanted"),
        (("data",), ..., "there is no 'data', but a list was wanted"),
        (("data",), [], "holds no question; give a SQuAD file"),
        (("data", 0), 3, "article 1: there is 3, but an object was wanted"),
        (("data", 0, "paragraphs"), ..., "article 1 'Cats': there is no 'paragraphs'"),
        (("data", 0, "paragraphs", 0), [], "article 1 'Cats', paragraph 1: there is [], but an object"),
        (("data", 0, "paragraphs", 0, "context"), " \n", "paragraph 1: 'context' is empty; give some words"),
        (("data", 0, "paragraphs", 0, "context"), 5, "paragraph 1: 'context' is 5, but a string was wanted"),
        (("data", 0, "paragraphs", 0, "context"), "a\0b", "paragraph 1: 'context' holds NUL"),
        (("data", 0, "paragraphs", 0, "context"), "a\ud800b", "paragraph 1: 'context' holds NUL or half a character"),
        (("data", 0, "paragraphs", 0, "qas"), {}, "paragraph 1: 'qas' is {}, but a list was wanted"),
        ((*QUESTION,), "Who?", "paragraph 1, question 1: there is 'Who?', but an object was wanted"),
        ((*QUESTION, "id"), ..., "paragraph 1, question 1: there is no 'id'"),
        ((*QUESTION, "id"), "b", "question 'b': there was a question of this id before"),
        ((*QUESTION, "question"), "", IN_Q + "'question' is empty"),
        ((*QUESTION, "question"), ["Who?"], IN_Q + "'question' is ['Who?'], but a string"),
        ((*QUESTION, "answers"), [], IN_Q + "it has no answer; give answers, or is_impossible"),
        ((*QUESTION, "is_impossible"), True, IN_Q + "it is impossible, but has answers"),
        ((*QUESTION, "is_impossible"), "no", IN_Q + "is_impossible is 'no', but true or false"),
        (ANSWER, "Mia", IN_Q + "there is 'Mia', but an object was wanted"),
        ((*ANSWER, "text"), None, IN_Q + "the text of an answer is None"),
        ((*ANSWER, "answer_start"), "12", IN_Q + "answer_start is '12', but a whole number"),
        ((*ANSWER, "answer_start"), True, IN_Q + "answer_start is True"),
        ((*ANSWER, "answer_start"), 11, IN_Q + "the answer 'Mia' does not stand at 11, where ' Mi' does"),
        ((*ANSWER, "answer_start"), -9, IN_Q + "the answer 'Mia' does not stand at -9, where nothing does"),
        ((*ANSWER, "answer_start"), 10**9, "where nothing does; correct it, or leave such answers out"),
        ((*ANSWER, "text"), " ", IN_Q + "an answer is empty"),
    ],
)
def test_a_fault_is_one_sentence_with_its_place(tmp_path, place, value, said):
    bad = copy.deepcopy(GOOD)
    if not place:
        bad = value
    else:
        holder = bad
        for step in place[:-1]:
            holder = holder[step]
        if value is ...:
            del holder[place[-1]]
        else:
            holder[place[-1]] = value
    with pytest.raises(DataError) as error:
        read_squad(write(tmp_path / "bad.json", bad))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b'{"data":\n [{]}'])
def test_what_is_no_json_is_refused(tmp_path, content):
    with pytest.raises(DataError, match=r"bad\.json is no JSON \("):
        read_squad(write(tmp_path / "bad.json", content))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{\n"data": "\xff"}', r"line 2: byte 11 \(0xff\) is no UTF-8; save the file as UTF-8"),
        (b'\xef\xbb\xbf{\n"data": "\0"}', "line 2: byte 14 is NUL"),
        (json.dumps(GOOD).encode("utf-16"), "is a UTF-16 file, but UTF-8 text was wanted"),
    ],
)
def test_what_is_no_text_is_refused_with_its_line(tmp_path, content, said):
    with pytest.raises(DataError, match=rf"bad\.json,? {said}"):
        read_squad(write(tmp_path / "bad.json", content))


def test_files_that_are_not_there_or_not_whole_are_named(tmp_path):
    """In one sentence, not within another that says that it is no JSON."""
    with pytest.raises(DataError, match=r"^there is no file \S+none\.json; give one that exists$"):
        read_squad(tmp_path / "none.json")
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(json.dumps(GOOD).encode())[:-9])
    with pytest.raises(DataError, match=r"^\S+cut\.json\.gz is no whole gzip file"):
        read_squad(tmp_path / "cut.json.gz")


def test_bad_answers_are_left_out_and_counted_if_that_is_wanted(tmp_path):
    bad = copy.deepcopy(GOOD)
    asked = bad["data"][0]["paragraphs"][0]["qas"]
    asked[0]["answers"] = [{"text": "Mia", "answer_start": 3}, {"text": "Mia", "answer_start": 12}]
    asked.append({"id": "c", "question": "What?", "answers": [{"text": "dog", "answer_start": 0}]})
    data = read_squad(write(tmp_path / "bad.json", bad), skip_bad_answers=True)
    assert [one.id for one in data.questions] == ["a", "b"]
    assert (data.questions[0].answers, data.skipped) == ((SquadAnswer("Mia", 12),), 2)
    bad["data"][0]["paragraphs"][0]["qas"] = asked[2:]
    with pytest.raises(DataError, match="holds no question whose answer can be used"):
        read_squad(write(tmp_path / "bad.json", bad), skip_bad_answers=True)
