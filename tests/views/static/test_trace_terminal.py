"""A trace in the terminal: the same text with and without colour, aligned in any script."""

import io
import re

import pytest
import torch
from rich.cells import cell_len

import regard
from regard.errors import TraceError
from regard.trace.record.trace import Trace
from regard.trace.record.weights import from_weights
from regard.views.static.trace_terminal import print_trace, trace_text
from tests.views.traces import decoder, translator


def printed(*arguments, **options) -> str:
    file = io.StringIO()
    print_trace(*arguments, file=file, **options)
    return file.getvalue()


def lines(*arguments, **options) -> list[str]:
    return trace_text(*arguments, **options).plain.splitlines()


def test_one_head_as_shaded_cells_with_values_and_tokens():
    assert lines(translator(), "decoder.1.cross", 0) == [
        "decoder.1.cross, head 0",
        "cross-attention; computed from q and k, float32; unverified",
        "      The  cat  sat </s> <pad>",
        "<s>  █1.0   0    0    0     ·",
        "猫     0  █1.0   0    0     ·",
        "坐     0    0  █1.0   0     ·",
        "。     0    0    0  █1.0    ·",
    ]


def test_blocks_grow_with_the_weight():
    trace = from_weights(torch.tensor([[0.004, 0.2, 0.3, 0.496], [0.0, 0.0, 0.2, 0.8]]), ["a", "b"], keys=list("wxyz"))
    assert [line[3:] for line in lines(trace)[-2:]] == ["  0  ░.20 ▒.30 ▒.50", "  0    0  ░.20 █.80"]


def test_columns_line_up_whatever_the_script():
    tokens = ["猫", "แมว", "cat", "ねこ", "e\u0301t\u0301e"]
    trace = from_weights(torch.eye(5), tokens)
    shown = lines(trace)[2:]
    ends = [[cell_len(line[: m.end()]) for m in re.finditer(r"█1\.0", line)] for line in shown[1:]]
    assert [one for (one,) in ends] == [10, 15, 20, 25, 30]


def test_a_longer_text_lists_the_strongest_keys_of_each_query():
    weights = torch.full((30, 30), 0.01 / 28)
    weights[:, 4], weights[:, 7] = 0.91, 0.08
    shown = lines(from_weights(weights, [f"word{i}" for i in range(30)]), width=60)
    assert shown[2:4] == [" 0 word0  → word4 0.91, word7 0.08", " 1 word1  → word4 0.91, word7 0.08"]
    assert len(shown) == 32


def test_tokens_of_one_name_are_told_apart():
    weights = torch.eye(30)
    shown = lines(from_weights(weights, ["the", "cat"] * 15), width=60)
    assert shown[2 + 17] == "17 cat → cat#17 1.00"


def test_hidden_keys_are_never_listed_and_a_blind_row_says_nothing():
    trace = decoder(tokens=40, heads=1, layers=1, mask=regard.window(0, 0) & ~regard.padding([1]))
    shown = lines(trace, width=60)
    assert shown[2] == " 0 t0  → nothing"
    assert shown[3] == " 1 t1  → t1 1.00"


def test_very_many_queries_are_counted():
    shown = lines(decoder(tokens=200, heads=1, layers=1), 0, 0)
    assert shown[-1] == "… 80 more queries; choose some with rows="
    assert len(lines(decoder(tokens=200, heads=1, layers=1), 0, 0, rows=slice(0, 3))) == 2 + 3


def test_a_layer_shows_its_heads_on_one_scale():
    weak, strong = torch.full((4, 4), 0.25), torch.eye(4)
    shown = lines(from_weights(torch.stack([weak, strong, weak]), list("abcd")), 0)
    assert shown[0] == "layer.0, 3 heads"
    assert shown[4].split() == ["head", "0", "head", "1", "head", "2"]
    assert shown[5].split() == ["░░░░░░░░", "██", "░░░░░░░░"]
    assert shown[9].split("   ")[0].startswith("a → a 0.25")


def test_what_there_is_lists_layers_kinds_and_the_sharpest_heads():
    shown = lines(translator())
    assert shown[:2] == ["Translator", "6 layers, 18 heads; 6 unverified"]
    assert shown[8].split() == ["5", "decoder.1.cross", "cross", "4", "×", "5", "███"]
    first = next(line for line in shown if " nats " in line)
    assert re.fullmatch(r"  layer [35], head [012] +0\.00 nats   \S+ → \S+ 1\.00", first)
    assert max(map(cell_len, shown)) <= 80


@pytest.mark.parametrize("width", [40, 60, 100])
@pytest.mark.parametrize("which", [(), (0,), (0, 1)], ids=["all", "layer", "head"])
def test_lines_fit_the_width(width, which):
    shown = trace_text(decoder(tokens=25), *which, width=width).plain.splitlines()
    told = ("Sharpest", "self-attention;", "rows are", "  layer")
    assert max(cell_len(line) for line in shown if not line.startswith(told)) <= width


@pytest.mark.parametrize("which", [(), (0,), (0, 1)], ids=["all", "layer", "head"])
def test_colour_adds_only_colour(which):
    plain, coloured = (printed(translator(), *which, width=80, colour=colour) for colour in (False, True))
    assert "\x1b[" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
    assert coloured != plain


def test_a_file_and_no_color_are_plain(monkeypatch):
    assert "\x1b" not in printed(translator(), 5, 0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in printed(translator(), 5, 0)


def test_tokens_are_only_text(capsys):
    tokens = ["[bold red]x[/]", "\x1b[2J", "a\nb", "\u202eab", ":smile:"]
    shown = printed(from_weights(torch.eye(5), tokens), 0, 0, width=200)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    for words in ("[bold …]x[/]", "␛[2J", "a⏎b", ":smile:"):
        assert words in shown


def test_it_prints_to_the_terminal_unless_told_otherwise(capsys):
    print_trace(translator(), 5, 0)
    assert capsys.readouterr().out.startswith("decoder.1.cross, head 0\n")


def test_words_and_batch_entries_are_chosen():
    trace = from_weights(torch.rand(2, 3, 4, 4).softmax(-1), [list("abcd"), ["un", "##seen", "c", "d"]])
    assert [line.split()[0] for line in lines(trace, 0, 1, batch=1, words=True)[3:]] == ["unseen", "c", "d"]


def test_bad_wishes_are_refused():
    with pytest.raises(TraceError, match="the trace has no layers, so there is nothing to show"):
        trace_text(Trace())
    with pytest.raises(TraceError, match="head 0 was asked for, but there are 6 layers; say which"):
        trace_text(translator(), head=0)
