"""The table of all heads: its numbers, its order, and the ways out of it."""

import math
import sys
from types import SimpleNamespace

import pytest
import torch

import regard
from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.measure.measure import NAMES, measure
from regard.trace.measure.summary import Summary, summarise
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace

EVIL = "<script>[red]\x1b[31m\n"


def layer(name="blocks.0.attention", kind="self", b=2, h=3, q=5, k=5, mask=None, special="[CLS]"):
    x, y = torch.randn(b, h, q, 4, dtype=torch.float64), torch.randn(b, h, k, 4, dtype=torch.float64)
    lengths = regard.padding([3, k])
    weights = regard.attend(x, y, y, mask=lengths if mask is None else lengths & mask).weights
    shown = (special, *(f"t{i}" for i in range(1, k)))
    one = Tokens(shown, tuple(i % 3 for i in range(k)), special=(True, *[False] * (k - 1)))
    rows = Tokens(shown[-q:], one.ids[-q:], special=one.special[-q:])
    return Layer(name, kind, weights, queries=(rows,) * b, keys=(one,) * b)


def trace(**options):
    layers = [layer(mask=regard.causal(), **options), layer("blocks.1.cross", "cross", h=4, q=6, k=7, **options)]
    return Trace([Run([layer("older")]), Run(layers)], model="Tiny")


def test_a_summary_adds_the_batch_up_by_rows():
    seen = trace()
    summary = summarise(seen)
    assert isinstance(summary, Summary)
    assert len(summary) == 7
    assert [(row["layer"], row["head"]) for row in summary.records()][:4] == [
        *(("blocks.0.attention", h) for h in range(3)),
        ("blocks.1.cross", 0),
    ]
    found = measure(seen.layers[0])
    assert found.rows[:, 0].tolist() == [3, 5]
    for name in ("entropy", "distance", "sink", "itself"):
        by_hand = [
            (3 * float(getattr(found, name)[0, h]) + 5 * float(getattr(found, name)[1, h])) / 8 for h in range(3)
        ]
        assert [row[name] for row in summary.records()[:3]] == pytest.approx(by_hand)
    previous = [(2 * float(found.previous[0, h]) + 4 * float(found.previous[1, h])) / 6 for h in range(3)]
    assert [row["previous"] for row in summary.records()[:3]] == pytest.approx(previous)
    assert summary.records()[0]["rows"] == 8


def test_one_entry_of_the_batch_can_be_summarised():
    seen = trace()
    for batch, row in ((1, 1), (-2, 0)):
        records = summarise(seen, batch).records()
        found = measure(seen.layers[0])
        for name in NAMES:
            ours, theirs = [one.get(name) for one in records[:3]], getattr(found, name)[row]
            assert [math.nan if x is None else x for x in ours] == pytest.approx(theirs.tolist(), nan_ok=True)
    with pytest.raises(TraceError, match="saw a batch of 2, but entry 2 was asked for"):
        summarise(seen, 2)


def test_what_no_layer_can_fill_is_left_out_and_explained():
    summary = summarise(trace())
    assert "next" not in summary.columns  # nobody may see the next token
    assert summary.records()[-1]["previous"] is None
    said = "– rows and columns of blocks.1.cross are not known to be one sequence (kind 'cross')"
    assert summary.notes == [said]
    twice = summarise(Trace([Run([*trace().layers, layer("blocks.2.cross", "cross")])]))
    assert twice.notes == [said.replace("cross are", "cross and 1 more are")]


def test_sorting_gives_another_table_and_puts_what_is_unknown_last():
    summary = summarise(trace())
    up, down = summary.sort("entropy"), summary.sort("previous", descending=True)
    assert [row["entropy"] for row in up.rows] == sorted(row["entropy"] for row in summary.rows)
    shares = [row["previous"] for row in down.rows]
    assert shares[:3] == sorted(shares[:3], reverse=True)
    assert shares[3:] == [None] * 4
    assert isinstance(down, Summary)
    assert summary.rows[0]["head"] == 0
    with pytest.raises(TraceError, match="no column 'entropie' to sort by; there are: layer, kind, head, entropy"):
        summary.sort("entropie")


def test_plain_text_names_every_head_and_control_characters_stay_text():
    summary = summarise(trace(special=EVIL))
    lines = repr(summary).splitlines()
    assert lines[0] == "Tiny: means over rows, entropy in nats"
    assert len([line for line in lines if line.startswith("blocks.")]) == 7
    assert "\x1b" not in repr(summary)
    assert "to <script>[red]\\x1b[31m\\n" in lines[1]
    assert "–" in repr(summary)
    many = Summary(summary.rows * 20)
    assert "… 92 more lines" in repr(many)


def test_rich_shows_the_same_cells_without_reading_markup():
    from io import StringIO

    from rich.console import Console

    console = Console(width=300, record=True, file=StringIO())
    console.print(summarise(trace(special=EVIL)))
    text = console.export_text()
    assert "[red]" in text
    assert text.count("blocks.1.cross") == 4 + 1  # the heads, and the note
    assert "\x1b[31m" not in text


def test_a_narrow_terminal_shows_whole_numbers_and_names_the_rest():
    from io import StringIO

    from rich.console import Console

    console = Console(width=80, file=StringIO())
    console.print(summarise(trace()))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "more columns: " in text
    assert "…" not in text.split("more columns")[0].rsplit("\n", 1)[0]


def test_html_is_escaped():
    text = summarise(trace(special=EVIL))._repr_html_()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert text.count("<tr>") == 8


def test_records_go_to_pandas():
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    frame = summarise(trace()).to_pandas()
    assert frame.shape[0] == 7
    assert frame["entropy"].dtype.kind == "f"
    assert frame["previous"].isna().sum() == 4
    assert isinstance(frame, pandas.DataFrame)


def test_records_go_to_polars(monkeypatch):
    given = []
    frame = SimpleNamespace(DataFrame=lambda records, **_: given.append(records) or "frame")
    if "polars" not in sys.modules:
        monkeypatch.setitem(sys.modules, "polars", frame)
        assert summarise(trace()).to_polars() == "frame"
        assert given[0] == summarise_twice()
    else:
        assert summarise(trace()).to_polars().height == 7


def summarise_twice():
    torch.manual_seed(0)
    return summarise(trace()).records()


def test_a_library_that_is_missing_is_named_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(TraceError, match="pip install polars"):
        summarise(trace()).to_polars()


def test_an_empty_trace_has_an_empty_summary():
    assert repr(summarise(Trace())).strip() == "no layers were seen"
    assert summarise(Trace()).records() == []
