"""`regard fill` as a user meets it: texts, files, pipes, maps, and bad input."""

import io
import json
import sys

import pytest

from regard.tasks.text_filler import open_filler
from regard.trace.file import load
from regard.views.explorer.bundle import BUILT
from tests.cli.run import run

BIKE, SEA = "A man is [MASK] a bike.", "Two [MASK] are playing in the [MASK]."


def fill(monkeypatch, capsys, *words, stdin=None):
    if stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    return run(monkeypatch, capsys, "fill", *map(str, words))


def bars(printed):
    """The words and probabilities of each gap, as they were drawn."""
    rows = [line.split() for line in printed.splitlines() if line.startswith("  ")]
    return [(row[0], float(row[1])) for row in rows]


def test_the_words_of_a_gap_are_drawn_with_their_probabilities(monkeypatch, capsys):
    code, printed, said = fill(monkeypatch, capsys, BIKE)
    filled = open_filler("filler").fill(BIKE)
    assert (code, said) == (0, "")
    assert printed.splitlines()[0] == filled.text == BIKE.replace("[MASK]", filled.gaps[0].words[0].name)
    assert bars(printed) == [(word.name, round(word.probability, 3)) for word in filled.gaps[0].words]
    assert "gap" not in printed


def test_several_gaps_and_texts_and_more_words(monkeypatch, capsys):
    code, printed, _ = fill(monkeypatch, capsys, SEA, BIKE, "--top", 7)
    assert code == 0
    assert printed.count("gap ") == 2
    assert len(bars(printed)) == 3 * 7
    assert printed.split("\n\n")[1].startswith(open_filler("filler").fill(BIKE).text)


@pytest.mark.parametrize("way", ["file", "dash"])
def test_lines_are_filled_and_blank_ones_are_left_out(monkeypatch, capsys, tmp_path, way):
    lines = f"{BIKE}\n\n{SEA}\n".encode()
    (tmp_path / "lines.txt").write_bytes(lines)
    words = ["--file", tmp_path / "lines.txt"] if way == "file" else ["-"]
    code, printed, said = fill(monkeypatch, capsys, *words, "--json", "--top", 2, stdin=lines)
    assert (code, said) == (0, "")
    first, second = (json.loads(line) for line in printed.splitlines())
    wanted = open_filler("filler").fill(SEA, top=2)
    assert (first["source"], second["source"]) == (BIKE, SEA)
    assert second["text"] == wanted.text
    assert [gap["position"] for gap in second["gaps"]] == [gap.position for gap in wanted.gaps]
    assert [word["probability"] for word in second["gaps"][1]["words"]] == [
        pytest.approx(word.probability) for word in wanted.gaps[1].words
    ]


def test_see_in_a_pipe_says_what_each_gap_looked_at_and_why(monkeypatch, capsys):
    code, printed, said = fill(monkeypatch, capsys, SEA, "--see")
    assert code == 0
    assert said.startswith("shown here, because what is printed here goes to no terminal; open it with: regard serve")
    filler = open_filler("filler")
    filled = filler.fill(SEA)
    rows = [line for line in printed.splitlines() if "←" in line]
    assert len(rows) == 2
    weights = filler.trace(filled).layers[-1].weights.dense()[0].mean(0)  # q k
    for line, gap in zip(rows, filled.gaps):
        share, key = weights[gap.position].max(0)
        strongest = line.split("← ")[1].split(",")[0]
        assert strongest.endswith(f"#{int(key)} {float(share):.2f}")


@pytest.mark.parametrize("ending", ["trace", "svg", "png", "html"])
def test_what_it_looked_at_is_written(monkeypatch, capsys, tmp_path, ending):
    if ending == "html" and not BUILT.exists():
        pytest.skip("the explorer is not built; run make bundle")
    to = tmp_path / f"x.{ending}"
    code, printed, said = fill(monkeypatch, capsys, SEA, "--to", to)
    assert (code, said) == (0, f"wrote {to}\n")
    assert printed.startswith(open_filler("filler").fill(SEA).text)
    assert to.stat().st_size > 1000
    if ending == "trace":
        tokens = load(to).layers[0].keys[0].shown
        assert tokens.count("[MASK]") == 2
    if ending == "html":
        page = to.read_text()
        assert r"\u0026q=2" in page
        assert '"masked":[{"name":"men"' in page.replace(" ", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["A man."], "'A man.' has no gap; write [MASK] where a word is hidden"),
        ([BIKE, "--model", "writer"], "writer is a GPT, which guesses no hidden words; name one that fills gaps"),
        ([BIKE, "--model", "en-zh"], "en-zh is a Translator, which guesses no hidden words"),
        ([BIKE, "--model", "nowhere"], "nowhere"),
        (["[MASK] " + "cat " * 400], "tokens, but filler takes at most"),
        ([BIKE, "--to", "x.gif"], "'x.gif' ends in none of"),
        ([BIKE, SEA, "--to", "x.svg"], "'x.svg' holds one map, but 2 texts came"),
        ([], "no text was given"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(monkeypatch, capsys, tmp_path, words, said):
    monkeypatch.chdir(tmp_path)
    code, printed, errors = fill(monkeypatch, capsys, *words)
    assert (code, printed) == (2, "")
    assert errors.startswith("regard: ")
    assert errors.count("\n") == 1
    assert said in errors


def test_a_line_without_a_gap_is_named_before_anything_is_filled(monkeypatch, capsys, tmp_path):
    (tmp_path / "a.txt").write_text(f"{BIKE}\n\nA dog.\n")
    code, printed, said = fill(monkeypatch, capsys, "--file", tmp_path / "a.txt")
    assert (code, printed) == (2, "")
    assert "a.txt, line 3: 'A dog.' has no gap" in said


def test_no_control_character_reaches_the_terminal(monkeypatch, capsys):
    code, printed, said = fill(monkeypatch, capsys, "A \x1b[31m\u202e man is [MASK] a bike.", "--see")
    assert code == 0
    assert not {"\x1b", "\u202e"} & set(printed + said)
