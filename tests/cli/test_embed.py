"""`regard embed`, `regard similar` and `regard search` as a user meets them: vectors, cosines, and bad input."""

import io
import json
import re
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from regard.models.open.load_model import load_model
from regard.tasks.embed import Embed, EmbedSettings
from regard.training.fit import fit
from tests.cli.run import run

NAMES = ("cat", "dog", "man", "bird", "girl")
SIZES = {
    "steps": 9, "width": 18, "heads": 3, "layers": 2, "hidden": 20, "vocab_size": 290, "max_length": 15, "lr": 0.01,
    "batch_pairs": 7, "warmup_steps": 2, "dropout": 0.0, "validation_size": 5, "eval_every": 9, "save_every": 9,
}  # fmt: skip
TEXTS = ["The cat sees the dog.", "A bird", "The dog is seen by the cat.", "Tea, please!"]
LINES = f"{TEXTS[0]}\r\n\n {TEXTS[1]}\t\n   \n{TEXTS[2]}\n{TEXTS[3]}".encode()
NUMBERS = [1, 3, 5, 6]  # of the lines that hold something
LONG = "the cat and the dog " * 9
CUT = "1 text is longer than 15 tokens: only the first 15 were read\n"


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """The folder of a run that came to its end."""
    folder = tmp_path_factory.mktemp("pairs")
    pairs = [(f"The {a} sees the {b}.", f"The {b} is seen by the {a}.") for a in NAMES for b in NAMES if a != b]
    (folder / "pairs.tsv").write_text("text\tother\n" + "".join(f"{one}\t{two}\n" for one, two in pairs))
    torch.set_num_threads(1)
    settings = EmbedSettings(data=str(folder / "pairs.tsv"), **SIZES)
    assert fit(Embed(), settings, folder / "run").code == 0
    return folder / "run"


@pytest.fixture(scope="module")
def vector(where):
    """The vector of a text by the same weights, read alone."""
    model, tokenizer = load_model(where)[:2]
    model.eval()

    @torch.no_grad()
    def read(text):
        ids = tokenizer.encode(text).ids
        ids = ids if len(ids) <= SIZES["max_length"] else [*ids[: SIZES["max_length"] - 1], ids[-1]]
        return model(torch.tensor([ids]))[0].double().numpy()

    return read


@pytest.fixture
def lines(tmp_path):
    (tmp_path / "lines.txt").write_bytes(LINES)
    return tmp_path / "lines.txt"


def cosine(one, two):
    return one @ two / (np.linalg.norm(one) * np.linalg.norm(two))


def call(monkeypatch, capsys, name, where, *words, stdin=None):
    if stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    named = [] if "--model" in words or where is None else ["--model", str(where)]
    return run(monkeypatch, capsys, name, *map(str, words), *named)


# embed


def test_the_first_numbers_of_each_vector_are_shown(monkeypatch, capsys, where, vector):
    code, printed, said = call(monkeypatch, capsys, "embed", where, *TEXTS[:3])
    rows = [re.fullmatch(r"\[(.*) …\] of 18  (.*)", line) for line in printed.splitlines()]
    assert (code, said, [row[2] for row in rows]) == (0, "", TEXTS[:3])
    for row, text in zip(rows, TEXTS):
        np.testing.assert_allclose([float(cell) for cell in row[1].split()], vector(text)[:4], atol=6e-4)


@pytest.mark.parametrize("way", ["texts", "file", "dash"])
def test_json_holds_each_vector_and_the_true_number_of_its_line(monkeypatch, capsys, where, vector, lines, way):
    words = {"texts": [*TEXTS[:1], "", *TEXTS[1:]], "file": ["--file", lines], "dash": ["-"]}[way]
    code, printed, said = call(monkeypatch, capsys, "embed", where, *words, "--json", stdin=LINES)
    rows = [json.loads(line) for line in printed.splitlines()]
    assert (code, said, [row["text"] for row in rows]) == (0, "", TEXTS)
    assert [row["line"] for row in rows] == ([1, 3, 4, 5] if way == "texts" else NUMBERS)
    for row in rows:
        np.testing.assert_allclose(row["vector"], vector(row["text"]), atol=2e-6)


@pytest.mark.parametrize("name", ["v.safetensors", "v.npy", "v.jsonl", "v.NPY"])
def test_vectors_are_written_as_the_name_says(monkeypatch, capsys, where, vector, lines, tmp_path, name):
    to = tmp_path / name
    code, printed, said = call(monkeypatch, capsys, "embed", where, "--file", lines, "--to", to)
    assert (code, said) == (0, "")
    assert printed.startswith(f"{to} is written: 4 vectors of 18 numbers.")
    if name == "v.safetensors":
        assert printed.endswith(f' Search in it: regard search "…" --in {lines} --vectors {to}\n')
        tensors = load_file(to)
        assert tensors["lines"].tolist() == NUMBERS
        found = tensors["vectors"].numpy()
    elif name == "v.jsonl":
        rows = [json.loads(line) for line in to.read_text(encoding="utf-8").splitlines()]
        assert [(row["line"], row["text"]) for row in rows] == list(zip(NUMBERS, TEXTS))
        found = np.array([row["vector"] for row in rows])
    else:
        found = np.load(to)
    np.testing.assert_allclose(found, [vector(text) for text in TEXTS], atol=2e-6)


def test_a_file_that_is_no_text_leaves_no_vectors_behind(monkeypatch, capsys, where, tmp_path):
    monkeypatch.chdir(tmp_path)
    for words in (["--file", "bad.txt"], ["-"], [" "]):
        (tmp_path / "bad.txt").write_bytes(b"a cat\ncaf\xe9\n")
        code, printed, said = call(monkeypatch, capsys, "embed", where, *words, "--to", "v.npy", stdin=b"a cat\nb\0d\n")
        assert (code, printed, said.count("\n")) == (2, "", 1)
        assert [path.name for path in tmp_path.iterdir()] == ["bad.txt"]


@pytest.mark.parametrize("name", ["embed", "similar", "search"])
def test_a_text_that_is_too_long_is_cut_and_said_to_be(monkeypatch, capsys, where, vector, tmp_path, name):
    (tmp_path / "two.txt").write_text(f"{TEXTS[0]}\n{LONG}\n")
    words = ["a cat", "--in", tmp_path / "two.txt"] if name == "search" else [TEXTS[0], LONG]
    code, printed, said = call(monkeypatch, capsys, name, where, *words, "--json")
    assert (code, said) == (0, CUT)
    if name == "embed":
        np.testing.assert_allclose(json.loads(printed.splitlines()[1])["vector"], vector(LONG), atol=2e-6)
    elif name == "similar":
        wanted = cosine(vector(TEXTS[0]), vector(LONG))
        assert json.loads(printed)["cosines"][0][1] == pytest.approx(wanted, abs=2e-6)


# similar


@pytest.mark.parametrize("way", ["texts", "file", "dash"])
def test_each_two_texts_are_compared(monkeypatch, capsys, where, vector, lines, way):
    words = {"texts": TEXTS, "file": ["--file", lines], "dash": ["-"]}[way]
    code, printed, said = call(monkeypatch, capsys, "similar", where, *words, stdin=LINES)
    head, *rows = printed.splitlines()
    assert (code, said, head.split()) == (0, "", ["1", "2", "3", "4"])
    wanted = [[cosine(vector(one), vector(two)) for two in TEXTS] for one in TEXTS]
    for at, row in enumerate(rows):
        number, *cells = row.split(maxsplit=5)
        assert (number, cells[4]) == (str(at + 1), TEXTS[at])
        np.testing.assert_allclose([float(cell) for cell in cells[:4]], wanted[at], atol=6e-4)
    code, printed, _ = call(monkeypatch, capsys, "similar", where, *words, "--json", stdin=LINES)
    found = json.loads(printed)
    assert (code, found["texts"]) == (0, TEXTS)
    np.testing.assert_allclose(found["cosines"], wanted, atol=2e-6)


def test_more_texts_than_a_table_holds_are_refused_with_another_way(monkeypatch, capsys, where, tmp_path):
    (tmp_path / "many.txt").write_text("".join(f"line {number}\n" for number in range(1001)))
    code, printed, said = call(monkeypatch, capsys, "similar", where, "--file", tmp_path / "many.txt")
    assert (code, printed) == (2, "")
    assert said == "regard: more than 1,000 texts came, too many to compare each two; use regard search --in FILE\n"


# search


def rank(vector, query, texts=TEXTS, numbers=NUMBERS):
    """Every line with its cosine, the nearest first."""
    found = [(float(cosine(vector(query), vector(text))), line, text) for line, text in zip(numbers, texts)]
    return sorted(found, reverse=True)


@pytest.mark.parametrize("way", ["file", "dash"])
def test_the_nearest_lines_come_first_with_their_cosines(monkeypatch, capsys, where, vector, lines, way):
    queries = ["A dog sees a cat.", "tea"]
    words = [*queries, "--in", lines if way == "file" else "-", "-k", 3]
    code, printed, said = call(monkeypatch, capsys, "search", where, *words, stdin=LINES)
    wanted = []
    for query in queries:
        wanted += [f"{query}:", *(f"{near:.3f}  line {line}  {text}" for near, line, text in rank(vector, query)[:3])]
    assert (code, said, printed.splitlines()) == (0, "", wanted)
    code, printed, _ = call(monkeypatch, capsys, "search", where, *words[:-2], "--json", "-k", 9, stdin=LINES)
    for query, row in zip(queries, map(json.loads, printed.splitlines()), strict=True):
        ranked = rank(vector, query)
        assert (row["query"], [one["line"] for one in row["found"]]) == (query, [line for _, line, _ in ranked])
        assert [one["text"] for one in row["found"]] == [text for _, _, text in ranked]
        np.testing.assert_allclose([one["cosine"] for one in row["found"]], [near for near, *_ in ranked], atol=2e-6)


def test_a_line_number_stands_below_another_and_one_query_has_no_title(monkeypatch, capsys, where, vector, tmp_path):
    texts = [f"cat {number}" for number in range(1, 13)]
    (tmp_path / "a.txt").write_text("\n".join(texts))
    code, printed, _ = call(monkeypatch, capsys, "search", where, "a cat", "--in", tmp_path / "a.txt", "-k", 12)
    ranked = rank(vector, "a cat", texts, range(1, 13))
    assert (code, [row[7:14] for row in printed.splitlines()]) == (0, [f"line {line:>2}" for _, line, _ in ranked])


def test_vectors_that_were_kept_are_used_until_the_file_changes(monkeypatch, capsys, where, vector, lines):
    def search(*words):
        return call(monkeypatch, capsys, "search", where, "a bird", "--in", lines, *words)

    first = search("--keep")
    beside = lines.with_name("lines.txt.safetensors")
    assert (first[0], beside.exists()) == (0, True)
    with monkeypatch.context() as patch:
        patch.setattr("regard.cli.embedding.LineEmbedder.embed_blocks", lambda *_: pytest.fail("computed anew"))
        assert search() == search("--vectors", beside) == first
    lines.write_bytes(LINES.replace(b"bird", b"bat"))
    code, printed, said = search()
    changed = [text.replace("bird", "bat") for text in TEXTS]
    assert code == 0
    assert printed.splitlines() == [
        f"{near:.3f}  line {line}  {text}" for near, line, text in rank(vector, "a bird", changed)
    ]
    stale = f"{beside} holds vectors of another text: line 3 of {lines} is not what it was; make them again with:"
    assert said.startswith(f"computed anew, because {stale}")
    code, printed, said = search("--vectors", beside)
    assert (code, printed, said.startswith(f"regard: {stale}")) == (2, "", True)


def test_vectors_of_another_model_are_refused(monkeypatch, capsys, where, lines, tmp_path):
    settings = EmbedSettings(data=str(where.parent / "pairs.tsv"), **SIZES | {"steps": 1, "seed": 3})
    assert fit(Embed(), settings, tmp_path / "run").code == 0
    to = tmp_path / "v.safetensors"
    assert call(monkeypatch, capsys, "embed", tmp_path / "run", "--file", lines, "--to", to)[0] == 0
    code, printed, said = call(monkeypatch, capsys, "search", where, "a cat", "--in", lines, "--vectors", to)
    assert (code, printed, said.count("\n")) == (2, "", 1)
    assert f"holds vectors of another model ({tmp_path / 'run'}) than {where}" in said


# All three


COMMANDS = {"embed": ["a"], "similar": ["a", "and b"], "search": ["a", "--in", "good.txt"]}
BAD = {
    "embed similar search": {
        (
            "caf\udce9",
            "--in",
            "good.txt",
        ): r"'caf\udce9' holds bytes that are no UTF-8; give a text of whole characters",
        ("--model", "writer"): "writer is a GPT, but a sentence encoder was wanted; train one with: regard train embed",
        ("--model", "filler"): "filler is a Bert, but a sentence encoder was wanted",
        ("--model", "nowhere"): "'nowhere' is neither an embedded model",
        ("--model", "good.txt"): "good.txt",
    },
    "embed similar": {
        (): "no text was given; give TEXT, - to read standard input, or --file PATH",
        ("--file", "nowhere.txt"): "there is no file nowhere.txt; give one that exists",
        ("--file", "empty.txt"): "empty.txt holds no text; give a file with one text on each line",
        ("--file", "latin.txt"): "latin.txt, line 2: byte 5 (0xe9) is no UTF-8",
        ("--file", "nul.txt"): "nul.txt, line 3: byte 6 is NUL",
        ("a", "--file", "good.txt"): "both a text and the file good.txt were given",
        ("a", "-"): "2 texts were given, and one of them is -; give texts, or - alone",
    },
    "embed": {
        ("",): "there is no text in what came; give texts, or a file with one text on each line",
        ("-",): "there is no text in what came",
        ("a", "--to", "v.csv"): "'v.csv' ends in none of .safetensors, .npy, .jsonl",
        ("a", "--to", "nowhere/v.npy"): "the folder 'nowhere' for 'v.npy' does not exist",
    },
    "similar": {
        ("a",): "1 text came, but similarity is between two; give another",
        ("a", " "): "1 text came, but similarity is between two",
        ("-",): "0 texts came, but similarity is between two; give two",
    },
    "search": {
        (" ", "--in", "good.txt"): "a query is empty, so there is nothing to look for",
        ("a", "--in", "nowhere.txt"): "there is no file nowhere.txt; give one that exists",
        ("a", "--in", "."): ". cannot be read (Is a directory)",
        ("a", "--in", "empty.txt"): "empty.txt holds no text; give a file with one text on each line",
        ("a", "--in", "latin.txt"): "latin.txt, line 2: byte 5 (0xe9) is no UTF-8",
        ("a", "--in", "nul.txt"): "nul.txt, line 3: byte 6 is NUL",
        ("a", "--in", "-"): "standard input holds no text; give one text on each line",
        ("a", "--in", "-", "--keep"): "standard input has no place for vectors beside it",
        ("a", "--in", "good.txt", "--vectors", "no.npy"): "there is no file no.npy; make one with: regard embed",
        ("a", "--in", "good.txt", "--vectors", "nul.txt"): "nul.txt is no whole safetensors file",
    },
}


def list_bad():
    """Command, words and what is said of them."""
    for names, cases in BAD.items():
        for name in names.split():
            for words, said in cases.items():
                if words[:1] == ("--model",):
                    yield name, (*COMMANDS[name], *words), said
                else:
                    yield name, words if name == "search" or "caf\udce9" not in words else words[:1], said


@pytest.mark.parametrize(("name", "words", "said"), list(list_bad()))
def test_bad_input_is_refused_in_one_sentence(monkeypatch, capsys, where, tmp_path, name, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.txt").write_text("a cat\ntwo dogs\n")
    (tmp_path / "empty.txt").write_text(" \n\n")
    (tmp_path / "latin.txt").write_bytes("ab\nidée\n".encode("latin-1"))
    (tmp_path / "nul.txt").write_bytes(b"ab\nc\nd\0\n")
    code, printed, told = call(monkeypatch, capsys, name, where, *words, stdin=b"\n \n")
    assert (code, printed) == (2, "")
    assert (told[:8], told.count("\n"), said in told) == ("regard: ", 1, True), told
    assert len(list(tmp_path.iterdir())) == 4


def test_a_line_of_standard_input_that_is_no_text_is_named(monkeypatch, capsys, where):
    for stdin, sentence in ((b"a\ncaf\xe9\n", r"byte 3 \(0xe9\) is no UTF-8"), (b"a\nb\0\n", "byte 1 is NUL")):
        for name, words in (("embed", ["-"]), ("similar", ["-"]), ("search", ["a", "--in", "-"])):
            code, printed, said = call(monkeypatch, capsys, name, where, *words, stdin=stdin)
            assert (code, printed) == (2, "")
            assert re.match(rf"regard: standard input, line 2: {sentence}", said), said


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_control_character_of_a_text_reaches_the_terminal(monkeypatch, capsys, where, tmp_path, name, as_json):
    evil = "\x1b[m\x9b\u202e\nb"
    (tmp_path / "a.txt").write_text(evil.replace("\n", " "))
    words = [evil, "--in", tmp_path / "a.txt"] if name == "search" else [evil, "b"]
    code, printed, said = call(monkeypatch, capsys, name, where, *words, *as_json)
    assert (code, said) == (0, "")
    assert not {"\x1b", "\x9b", "\u202e"} & set(printed)
    if as_json:
        rows = [json.loads(line) for line in printed.splitlines()]
        assert evil in (rows[0]["texts"] if name == "similar" else rows[0].values())
    else:
        assert printed.count("\n") == {"embed": 2, "similar": 3, "search": 1}[name]


@pytest.mark.parametrize(
    "words", [("search", "a"), ("search", "--in", "a.txt"), ("search", "a", "--in", "x", "-k", "0")]
)
def test_what_a_search_needs_is_said_with_its_usage(monkeypatch, capsys, words):
    code, printed, said = run(monkeypatch, capsys, *words)
    assert (code, printed, said.startswith("Usage: regard search")) == (2, "", True)


def test_evaluate_prints_scores_or_json(monkeypatch, capsys, where, tmp_path):
    (tmp_path / "few.csv").write_text("text,other\n" + "".join(f"The {name}.,A {name}.\n" for name in NAMES))
    words = ("evaluate", str(where), "--data", str(tmp_path / "few.csv"))
    code, printed, said = run(monkeypatch, capsys, *words)
    assert (code, said) == (0, "")
    assert re.fullmatch(r"embed: loss [\d.]+  accuracy@1 [\d.]+  mrr@10 [\d.]+\n", printed)
    found = json.loads(run(monkeypatch, capsys, *words, "--json")[1])
    assert (found["task"], found["scores"].keys()) == ("embed", {"loss", "accuracy@1", "mrr@10"})
