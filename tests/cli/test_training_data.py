"""Bad data for `regard train`: one sentence with the file, an exit code that is not 0, and no run is begun."""

import json

import pytest

from tests.cli.run import run
from tests.tasks.questions import ask, squad

FILMS = "".join(f"the film {number} was {word}\t{word}\n" for number in range(9) for word in ("good", "bad"))
MAILS = "".join(json.dumps({"body": f"we meet at {number}", "subject": f"meet {number}"}) + "\n" for number in range(9))
PAIRS = "".join(f"The cat {number} sleeps.\tA cat {number} is asleep.\n" for number in range(9))
CAT = "A cat sat."
ELSEWHERE = ask(1, "Who?", CAT, "cat") | {"answers": [{"text": "dog", "answer_start": 2}]}
LATIN, NUL = b"idea\tgood\nid\xe9e\tgood\n", b"a\tb\nc\0\td\n"

CASES = {
    "classify": [
        ("a.tsv", b"", "a.tsv holds no labelled text"),
        ("a.csv", b"text,label\n", "a.csv holds no labelled text"),
        ("a.tsv", b"a film\tgood\n", "a.tsv, line 1: 'good' is the only class of all 1 texts"),
        ("a.tsv", f"{FILMS}a film\n", "a.tsv, line 19: there is 1 column, but 2 in the first row"),
        ("a.tsv", f"{FILMS}a film\t\n", "a.tsv, line 19: the label 'label' is empty; give one"),
        ("a.tsv", f"utterance\tintent\n{FILMS}", "a.tsv, line 1: 'intent' is the label of this row alone"),
        ("a.csv", f"text;label\n{FILMS}".replace("\t", ";"), "a.csv, line 1: the columns are separated by semicolons"),
        ("a.csv", 'text,label\n"a film,good\nfine,bad\n', "a.csv, line 2: a quote (\") opens here and is never"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text": \n', "a.jsonl, line 2: there is no JSON"),
        ("a.tsv", LATIN, "a.tsv, line 2: byte 12 (0xe9) is no UTF-8"),
        ("a.tsv", NUL, "a.tsv, line 2: byte 5 is NUL"),
    ],
    "answer": [
        ("a.json", b"", "a.json is no JSON"),
        ("a.json", json.dumps(squad([])), "a.json holds no question"),
        ("a.json", json.dumps(squad([(CAT, [ask(1, "Who?", CAT, "cat")])])), "leave none to learn from, as a.json has"),
        ("a.json", json.dumps(squad([(CAT, [ELSEWHERE])])), "question 'q1': the answer 'dog' does not stand at 2"),
        ("a.json", json.dumps(squad([("", [])])), "a.json, article 1 'Small', paragraph 1: 'context' is empty"),
        ("a.json", LATIN, "a.json, line 2: byte 12 (0xe9) is no UTF-8"),
        ("a.json", NUL, "a.json, line 2: byte 5 is NUL"),
    ],
    "summarise": [
        ("a.jsonl", b"", "a.jsonl holds no text with a summary"),
        ("a.tsv", b"text\tsummary\n", "a.tsv holds no text with a summary"),
        ("a.jsonl", MAILS.splitlines()[0], "leave nothing to learn from, as there are 1 distinct ones"),
        ("a.jsonl", MAILS.replace("body", "letter"), "a.jsonl, line 1: no field holds a text (there is 'letter',"),
        ("a.jsonl", f"{MAILS}{{\n", "a.jsonl, line 10: there is no JSON"),
        ("a.tsv", LATIN, "a.tsv, line 2: byte 12 (0xe9) is no UTF-8"),
        ("a.tsv", NUL, "a.tsv, line 2: byte 5 is NUL"),
    ],
    "pretrain": [
        ("a.txt", b"", "a.txt holds no text"),
        ("a.txt", b"One. Two.\n", "leave nothing to learn from, as there are 1 distinct ones"),
        ("a.txt", LATIN, "a.txt, line 2: byte 12 (0xe9) is no UTF-8"),
        ("a.txt", NUL, "a.txt, line 2: byte 5 is NUL"),
    ],
    "embed": [
        ("a.tsv", b"", "a.tsv holds no text"),
        ("a.tsv", b"text\tother\n", "a.tsv holds no text"),
        ("a.tsv", PAIRS.splitlines()[0], "of 1 pairs none can be held out"),
        ("a.tsv", f"premise\thypothesis\n{PAIRS}", "a.tsv, line 1: 'premise', 'hypothesis' read as names of columns"),
        ("a.csv", 'text,other\n"Hi.,Hello.\nBye.,See you.\n', "a.csv, line 2: a quote (\") opens here and is never"),
        ("a.csv", 'text,other\n"Hi.,Hello.\nA 15",A screen\n', "a.csv, line 2: a quoted field goes on to line 3"),
        ("a.jsonl", '{"text": "a"}\n{"text": \n', "a.jsonl, line 2: there is no JSON"),
        ("a.tsv", LATIN, "a.tsv, line 2: byte 12 (0xe9) is no UTF-8"),
        ("a.tsv", NUL, "a.tsv, line 2: byte 5 is NUL"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("task", "name", "content", "said"), [(task, *case) for task in CASES for case in CASES[task]])
def test_data_that_cannot_be_learned_from_are_refused(monkeypatch, capsys, tmp_path, task, name, content, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    code, printed, told = run(monkeypatch, capsys, "train", task, "--data", name, "--vocab-size", "300")
    assert (code, printed) == (2, "")
    assert (told[:8], told.count("\n"), said in told) == ("regard: ", 1, True), told
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("task", CASES)
def test_data_that_are_not_there_are_said_not_to_be(monkeypatch, capsys, tmp_path, task):
    monkeypatch.chdir(tmp_path)
    for words, said in ((["--data", "nowhere.tsv"], "nowhere.tsv"), ([], "named")):
        code, printed, told = run(monkeypatch, capsys, "train", task, *words)
        assert (code, printed, told.count("\n"), told[:10]) == (2, "", 1, "regard: no" if not words else "regard: th")
        assert said in told
    assert not list(tmp_path.iterdir())
