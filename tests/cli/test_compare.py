"""`regard compare-attention`: every kind of attention, measured in one run."""

import json

import pytest

from regard.attention.mask import bigbird, causal, window
from regard.cli.compare import visible_share
from tests.cli.run import run

SMALL = ["--heads", "3", "--width", "8", "--keys", "16"]
KINDS = ["dense", "unfused", "causal", "window", "longformer", "bigbird", "performer", "linformer"]


def test_the_table_names_every_kind_at_every_length(monkeypatch, capsys):
    code, printed, beside = run(monkeypatch, capsys, "compare-attention", "--length", "40", "--length", "70", *SMALL)
    assert code == 0
    assert beside == ""
    for kind in KINDS:
        assert printed.count(f"{kind} ") >= 2
    assert printed.startswith("3 heads of 8, about 16 keys")
    assert "regard.swap(" in printed
    assert "\x1b" not in printed


def test_json_holds_what_the_table_says(monkeypatch, capsys):
    _, printed, _ = run(monkeypatch, capsys, "compare-attention", "--length", "600", "--json", *SMALL)
    found = json.loads(printed)
    assert (found["heads"], found["width"], found["keys"]) == (3, 8, 16)
    by = {one["attention"]: one for one in found["results"]}
    assert list(by) == KINDS
    assert by["dense"]["speedup"] == 1.0
    assert [by[kind]["path"] for kind in ("window", "longformer", "bigbird")] == ["banded"] * 3
    assert by["window"]["speedup"] == pytest.approx(by["dense"]["seconds"] / by["window"]["seconds"])
    assert by["unfused"]["bytes"] >= 3 * 600 * 600 * 4
    assert by["window"]["mix_error"] == 0.0
    assert by["performer"]["mix_error"] > 0
    assert 0 < by["performer"]["weight_error"] < 1
    assert by["window"]["visible"] == pytest.approx(float(window(8, 8).dense(600).float().mean()))


def test_a_plot_is_written(monkeypatch, capsys, tmp_path):
    plot = tmp_path / "plot.svg"
    lengths = ["--length", "30", "--length", "60"]
    code, printed, _ = run(monkeypatch, capsys, "compare-attention", *lengths, "--to", str(plot), *SMALL)
    assert code == 0
    assert str(plot) in printed
    drawn = plot.read_text(encoding="utf-8")
    assert all(kind in drawn for kind in KINDS)


@pytest.mark.parametrize("mask", [causal(), window(3, 1), bigbird(4)], ids=["causal", "window", "bigbird"])
def test_the_share_of_the_map_is_counted_in_blocks_of_rows(mask):
    assert visible_share(mask, 37, rows=5) == pytest.approx(float(mask.dense(37).double().mean()))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "plot.txt"], "ends in none of .svg, .png, .pdf"),
        (["--to", "none/plot.svg"], "does not exist"),
        (["--keys", "3"], "BigBird needs 8 blocks"),
    ],
    ids=["ending", "folder", "keys"],
)
def test_what_cannot_be_done_is_said_before_anything_is_measured(monkeypatch, capsys, words, said):
    monkeypatch.setattr("regard.cli.compare.measure_length", lambda *_, **__: pytest.fail("measured"))
    code, _, beside = run(monkeypatch, capsys, "compare-attention", *words)
    assert code == 2
    assert said in beside


def test_a_length_of_one_is_refused(monkeypatch, capsys):
    code, _, beside = run(monkeypatch, capsys, "compare-attention", "--length", "1")
    assert code == 2
    assert "Invalid value for '--length'" in beside


def test_lengths_where_the_matrix_would_be_too_large_leave_it_out(monkeypatch, capsys):
    monkeypatch.setattr("regard.cli.compare.MOST", 1000)
    monkeypatch.setattr("regard.cli.compare.LONGEST", 10)
    _, printed, _ = run(monkeypatch, capsys, "compare-attention", "--length", "40", "--json", *SMALL)
    by = {one["attention"]: one for one in json.loads(printed)["results"]}
    assert "unfused" not in by
    assert by["performer"]["mix_error"] is None
