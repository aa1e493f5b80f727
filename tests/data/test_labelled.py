"""Labelled texts: every form that films are rated in, read alike; faults told with their line, none swallowed."""

import csv
import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest

from regard.data.label_survey import TEST, TRAIN, VALIDATION, LabelSurvey
from regard.data.labelled import LabelledTexts, labelled_paths
from regard.errors import ConfigError, DataError
from tests.shared import MISSING_DATA, SHARED

ROWS = [("A good film.", "1"), ("Bad,\nvery bad.", "0"), ('She said "no".', "0"), ("Fine\n\nindeed", "1")]
FLAT = [(text.replace("\n", " "), label) for text, label in ROWS]


def as_csv(rows, header):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue().encode()


FORMS = {
    "sst2": ("a.tsv", b"label\tsentence\n" + b"".join(f"{one}\t{text}\n".encode() for text, one in FLAT), FLAT),
    "glue": ("a.tsv", b"sentence\tlabel\n" + b"".join(f"{text}\t{one}\n".encode() for text, one in FLAT), FLAT),
    "imdb": (
        "a.tsv.gz",
        gzip.compress(
            b"label\trating\tid\ttext\n" + b"".join(f"{one}\t9\tpos/{one}\t{t}\n".encode() for t, one in FLAT)
        ),
        FLAT,
    ),
    "kaggle": ("a.csv", as_csv(ROWS, ["review", "sentiment"]), ROWS),
    "broken lines": ("a.csv", as_csv([(t.replace("\n", "<br />"), one) for t, one in ROWS], ["review", "label"]), ROWS),
    "objects": ("a.jsonl", b"".join(json.dumps({"text": t, "label": int(o)}).encode() + b"\n" for t, o in ROWS), ROWS),
    "no header": ("a.csv", as_csv(ROWS[1:], ROWS[0]), ROWS),
}


@pytest.mark.parametrize(("name", "content", "wanted"), FORMS.values(), ids=FORMS)
def test_texts_come_with_their_labels_from_every_form(tmp_path, name, content, wanted):
    path = tmp_path / name
    path.write_bytes(content)
    assert [(one.text, one.label) for one in LabelledTexts([path])] == wanted


def test_a_folder_of_class_folders_is_read_and_what_is_not_is_said(tmp_path):
    for part in ("train", "test"):
        for name, texts in {"pos": ["good<br />film", "fine"], "neg": ["bad"], "unsup": ["who knows"]}.items():
            folder = tmp_path / "aclImdb" / part / name
            folder.mkdir(parents=True)
            for number, text in enumerate(texts):
                (folder / f"{number}_{part}.txt").write_text(text, encoding="utf-8")
        (tmp_path / "aclImdb" / part / "urls_pos.txt").write_text("http://nowhere")
    whole = tmp_path / "aclImdb"
    for path, part in ((whole, "train"), (whole / "train", "train"), (whole / "test", "test")):
        texts = LabelledTexts([path])
        found = [(one.text, one.label, one.path.name) for one in texts]
        assert found == [
            ("bad", "neg", f"0_{part}.txt"), ("good\nfilm", "pos", f"0_{part}.txt"), ("fine", "pos", f"1_{part}.txt")
        ]  # fmt: skip
        assert [note for note in texts.notices if "unsup is left out" in note]
    assert "train is read" in LabelledTexts([whole]).notices[0]


def test_other_columns_can_be_named(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("Words\tlabel\tMood\nhello\t9\tgood\n", encoding="utf-8")
    assert [(one.text, one.label) for one in LabelledTexts([path], "words", "mood")] == [("hello", "good")]
    with pytest.raises(ConfigError, match="text and label are both 'words'"):
        LabelledTexts([path], "words", "words")


FAULTS = {
    "no label": ("a.tsv", "text\tlabel\ngood\t1\nbad\t\n", "line 3: the label 'label' is empty"),
    "null": ("a.jsonl", '{"text": "good", "label": 1}\n{"text": "bad", "label": null}\n', "line 2: .* is missing"),
    "no key": ("a.jsonl", '{"text": "good", "label": 1}\n{"text": "bad"}\n', "line 2: .* is missing"),
    "list": ("a.jsonl", '{"text": "good", "label": [1]}\n', "line 1: the label 'label' is list"),
    "no text": ("a.tsv", "label\ttext\n1\tgood\n0\t  \n", "line 3: the text is empty"),
    "breaks alone": ("a.csv", "text,label\ngood,1\n<br /><br/>,0\n", "line 3: the text is empty"),
    "no column": ("a.tsv", "index\tsentence\n0\tgood\n", "line 2: there is none of label, .* name its column"),
    "swallowed, text first": (
        "a.csv",
        'text,label\n"good,1\nbad,0\nso-so",1\nfine,0\n',
        "line 2: a quoted field goes on to line 4, and its line 2 reads as a row of its own with the label '1'",
    ),
    "swallowed, label first": (
        "a.csv",
        'label,text\n1,"good\n0,bad"\n0,fine\n',
        "line 2: a quoted field goes on to line 3, and its line 3 reads as a row of its own with the label '0'",
    ),
    "swallowed, label in the middle": (
        "a.csv",
        'id,label,text\n1,pos,"good\n2,neg,bad\n3,pos,fine"\n4,neg,poor\n',
        "line 2: .* line 3 reads as a row of its own with the label 'neg'",
    ),
}


@pytest.mark.parametrize(("name", "content", "said"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_with_file_and_line(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=f"{name}, {said}"):
        list(LabelledTexts([path]))


def test_lines_within_a_text_that_are_no_rows_are_text(tmp_path):
    """Commas in prose, other labels, a space before what might be one, another number of columns."""
    path = tmp_path / "a.csv"
    text = "Good, bad\nand so on, pos\na,neutral\none,two,pos\n\nposneg"
    path.write_bytes(as_csv([(text, "pos"), ("bad", "neg")], ["text", "label"]))
    assert [one.text for one in LabelledTexts([path])] == [text, "bad"]
    for line in ("one\rtwo", "x" * 200_000):  # which no reader of rows takes
        path.write_bytes(as_csv([(f"good\n{line}\nfine", "pos")], ["text", "label"]))
        assert [one.text for one in LabelledTexts([path])] == [f"good\n{line}\nfine"]


def test_what_is_not_there_is_said():
    with pytest.raises(DataError, match=r"there is no file or folder 'nowhere\.tsv'"):
        labelled_paths("nowhere.tsv")
    with pytest.raises(ConfigError, match="no texts were named"):
        labelled_paths(" ,")


def test_folders_without_classes_or_texts_are_refused(tmp_path):
    with pytest.raises(DataError, match="has no folder for any class"):
        list(LabelledTexts([tmp_path]))
    (tmp_path / "pos").mkdir()
    with pytest.raises(DataError, match=r"pos holds no \.txt file"):
        list(LabelledTexts([tmp_path]))


def write_rows(path: Path, rows) -> LabelledTexts:
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")
    return LabelledTexts([path])


def test_parts_hold_no_text_in_common_whatever_the_order(tmp_path):
    rows = [(f"film {number % 40}{'!' * (number // 40)}", str(number % 3)) for number in range(80)]
    parts = {}
    for name, some in (("a", rows), ("b", rows[::-1])):
        texts = write_rows(tmp_path / f"{name}.tsv", some)
        found = LabelSurvey.read(texts, seed=3).split(validation=7, test=5)
        parts[name] = [{some[at][0].strip("!") for at in np.flatnonzero(found == part)} for part in range(3)]
    assert parts["a"] == parts["b"]
    assert [len(part) for part in parts["a"]] == [28, 7, 5]
    assert not parts["a"][TRAIN] & parts["a"][VALIDATION] | parts["a"][TRAIN] & parts["a"][TEST]
    other = LabelSurvey.read(texts, seed=4).split(validation=7, test=5)
    assert not np.array_equal(other, found)


def test_labels_are_counted_and_sorted_and_rare_ones_told(tmp_path):
    survey = LabelSurvey.read(write_rows(tmp_path / "a.tsv", [("a", "b"), ("c", "10"), ("d", "b"), ("e", "2")]), seed=0)
    assert survey.counts == {"10": 1, "2": 1, "b": 2}
    assert survey.classes == ["10", "2", "b"]
    assert [note.partition("a.tsv, ")[2][:40] for note in survey.rare()] == [
        "line 3: class '10' has this one text alo", "line 5: class '2' has this one text alon"
    ]  # fmt: skip


def test_labels_from_which_nothing_is_learned_are_refused(tmp_path):
    survey = LabelSurvey.read(write_rows(tmp_path / "a.tsv", [("a", "x"), ("b", "x")]), seed=0)
    with pytest.raises(DataError, match=r"a\.tsv, line 2: 'x' is the only class of all 2 texts"):
        survey.must_teach()
    with pytest.raises(DataError, match="leave nothing to learn from"):
        survey.split(validation=1, test=1)
    survey = LabelSurvey.read(write_rows(tmp_path / "a.tsv", [(f"a {n}", f"text {n}") for n in range(30)]), seed=0)
    with pytest.raises(DataError, match=r"one of 30 labels of 30 texts, .* name the column of the labels"):
        survey.must_teach()
    with pytest.raises(DataError, match="holds no labelled text"):
        LabelSurvey.read(write_rows(tmp_path / "a.tsv", []), seed=0)


ROW = "good film\tpos\nbad film\tneg\nfine\tpos\n"


@pytest.mark.parametrize(
    "files",
    [
        {"a.tsv": f"utterance\tintent\n{ROW}"},
        {"a.tsv": f"utterance\tintent\n{ROW}", "b.csv": f"utterance\tintent\n{ROW}".replace("\t", ",")},
        {"a.tsv": "".join(f"{n}\t{line}\n" for n, line in enumerate(["intent\tx", "pos\ty", "neg\tz", "pos\tw"]))},
    ],
)
def test_a_header_of_other_names_is_no_class(tmp_path, files):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    texts = LabelledTexts([tmp_path / name for name in files])
    with pytest.raises(
        DataError, match=r"a\.tsv, line 1: 'intent' is the label of this row alone, as if the row were a"
    ):
        LabelSurvey.read(texts, seed=0).must_teach()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", ROW + "great\tpos\nodd\trare\n"),  # the first row has a label that others have
        ("a.tsv", "text\tlabel\nodd\trare\n" + ROW),  # a header stands above it
        ("a.tsv", "good\tpos\nbad\tneg\n"),  # each label stands alone
        ("a.jsonl", '{"text": "odd", "label": "rare"}\n{"text": "a", "label": 1}\n{"text": "b", "label": 1}\n'),
    ],
)
def test_a_first_row_of_a_rare_class_is_learned_from_where_it_cannot_be_a_header(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    survey = LabelSurvey.read(LabelledTexts([tmp_path / name]), seed=0)
    survey.must_teach()
    assert len(survey.counts) > 1


COUNTS = {
    "sst2/train.tsv.gz": {"0": 3310, "1": 3610},
    "sst2/train_phrases.tsv.gz": {"0": 29780, "1": 37569},
    "sst2/dev.tsv.gz": {"0": 428, "1": 444},
    "sst2/test.tsv.gz": {"0": 912, "1": 909},
}


@pytest.mark.parametrize(("name", "wanted"), COUNTS.items())
def test_published_data_have_the_rows_that_their_publishers_count(name, wanted):
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(MISSING_DATA)
    assert LabelSurvey.read(LabelledTexts([path]), seed=0).counts == wanted


@pytest.mark.slow
def test_every_review_of_imdb_is_read():
    path = SHARED / "data/imdb/train.tsv.gz"
    if not path.exists():
        pytest.skip(MISSING_DATA)
    texts = LabelledTexts([path])
    assert LabelSurvey.read(texts, seed=0).counts == {"0": 12500, "1": 12500}
    assert not any("<br" in one.text for one in texts)
