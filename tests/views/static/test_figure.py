"""Figures are real files: what is written is opened again and looked at."""

import os
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from matplotlib import pyplot
from PIL import Image

from regard.errors import ShapeError
from regard.views.static.colours import weight_colours
from regard.views.static.figure import heatmap
from regard.views.static.grid import clean_label

WEIGHTS = np.array([[1.0, np.nan, np.nan], [0.25, 0.75, np.nan], [0.5, 0.0, 0.5]])
TOKENS = ["The", " cat", "<eos>"]


def texts(path) -> list[str]:
    root = ET.parse(path).getroot()
    return ["".join(node.itertext()).strip() for node in root.iter("{http://www.w3.org/2000/svg}text")]


def test_an_svg_holds_its_labels_values_and_axis_names_as_text(tmp_path):
    heatmap(WEIGHTS, title="One head", row_labels=TOKENS, column_labels=TOKENS, to=tmp_path / "a.svg")
    found = texts(tmp_path / "a.svg")
    for words in ["One head", "queries", "keys", "The", "·cat", "<eos>", "0.25", "0.75", "1.00", "0.00"]:
        assert words in found
    assert "nan" not in found
    assert found.count("0.50") >= 2


def test_a_png_is_darker_where_the_weight_is_larger(tmp_path):
    values = np.array([[1.0, 0.5], [0.25, 0.0]]).repeat(20, 0).repeat(20, 1)  # no numbers in the cells
    heatmap(values, to=tmp_path / "a.png")
    pixels = np.asarray(Image.open(tmp_path / "a.png").convert("RGB"), dtype=float)
    seen = {tuple(colour) for colour in pixels.reshape(-1, 3).astype(int)}
    wanted = [tuple(round(255 * c) for c in weight_colours()(share)[:3]) for share in (1.0, 0.5, 0.25, 0.0)]
    for colour in wanted:
        assert any(np.abs(np.subtract(colour, other)).max() <= 1 for other in seen), colour
    grey = [np.dot(colour, (0.299, 0.587, 0.114)) for colour in wanted]
    assert grey == sorted(grey)


def test_the_colours_grow_darker_all_the_way():
    grey = weight_colours()(np.linspace(0, 1, 256))[:, :3] @ (0.299, 0.587, 0.114)
    assert (np.diff(grey) < 0).all()


def test_hidden_cells_are_hatched_and_not_pale(tmp_path):
    hidden = np.full((40, 40), np.nan)
    hidden[0, 0] = 0.0
    heatmap(hidden, to=tmp_path / "hidden.png")
    heatmap(np.zeros((40, 40)), to=tmp_path / "open.png")

    def kinds(name):
        centre = np.asarray(Image.open(tmp_path / name).convert("L"))[300:600, 300:600]
        return len(np.unique(centre))

    assert kinds("open.png") == 1
    assert kinds("hidden.png") > 2


def test_differences_are_blue_below_zero_and_red_above():
    figure = heatmap([[-1.0, 0.0], [0.5, 0.0]], diverging=True)
    mesh = figure.axes[0].collections[0]
    assert mesh.get_clim() == (-1.0, 1.0)
    (red_low, _, blue_low, _), (red_high, _, blue_high, _) = mesh.cmap(0.1), mesh.cmap(0.9)
    assert blue_low > red_low
    assert red_high > blue_high


@pytest.mark.parametrize(
    "make",
    [
        lambda a: a.tolist(),
        lambda a: torch.tensor(a, requires_grad=True),
        lambda a: torch.tensor(a, dtype=torch.bfloat16),
    ],
    ids=["lists", "tensor that requires grad", "bfloat16"],
)
def test_any_kind_of_numbers_gives_the_same_picture(make):
    drawn = [heatmap(values).axes[0].collections[0].get_array() for values in (WEIGHTS, make(WEIGHTS))]
    assert np.ma.allequal(*drawn)
    assert (drawn[0].mask == np.isnan(WEIGHTS)).all()


def test_minus_infinity_is_hidden_too():
    mesh = heatmap([[1.0, -np.inf]]).axes[0].collections[0]
    assert mesh.get_array().mask.tolist() == [[False, True]]


def test_many_labels_are_thinned_and_numbers_go_by_round_steps():
    names = [f"token{i}" for i in range(200)]
    axes = heatmap(np.zeros((200, 200)), row_labels=names).axes[0]
    shown = [text.get_text() for text in axes.get_yticklabels()]
    assert 10 < len(shown) <= 40
    assert shown[0] == "token0"
    steps = np.diff([int(text.get_text()) for text in axes.get_xticklabels()])
    assert set(steps) == {10}


def test_a_map_of_any_length_keeps_its_peaks_and_says_how_coarse_it_is():
    values = np.zeros((2000, 1000))
    values[1234, 567] = 1.0
    figure = heatmap(values)
    drawn = figure.axes[0].collections[0].get_array()
    assert drawn.shape == (500, 500)
    assert drawn[1234 // 4, 567 // 2] == 1.0
    assert drawn.sum() == 1.0
    assert figure.axes[1].get_ylabel() == "each cell is the largest of 4 × 2"


def test_labels_of_any_kind_are_drawn_as_they_are(tmp_path):
    odd = ["$x$", "a&b<c>", "\x00\x1b", "猫", " \n ", "\ud800", "a" * 40, " "]
    heatmap(np.eye(8), row_labels=odd, title="costs $5 or $6", to=tmp_path / "odd.svg")
    found = texts(tmp_path / "odd.svg")
    for words in ["$x$", "a&b<c>", "␀␛", "猫", "·⏎·", "⟨U+D800⟩", "·", "costs $5 or $6"]:
        assert words in found
    assert clean_label("a" * 20 + "b" * 20) == "a" * 9 + "…" + "b" * 8


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")]
)
def test_each_ending_is_written_as_what_it_says(tmp_path, ending, start):
    heatmap(WEIGHTS, to=str(tmp_path / f"a.{ending}"))
    assert (tmp_path / f"a.{ending}").read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{ending}"]


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    for name in ("a.svg", "b.svg"):
        heatmap(WEIGHTS, row_labels=TOKENS, to=tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    (tmp_path / "a.svg").write_text("old")

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        heatmap(WEIGHTS, to=tmp_path / "a.svg")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.svg", "old")]


def test_another_ending_is_refused_with_the_allowed_ones():
    with pytest.raises(ValueError, match=r"written as \.svg, \.png, \.pdf, but 'a\.gif' ends otherwise"):
        heatmap(WEIGHTS, to="a.gif")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        heatmap(WEIGHTS, to=tmp_path / "no" / "a.svg")


def test_more_axes_than_two_are_refused_with_advice():
    with pytest.raises(ShapeError, match=r"shape \(2, 3, 4\); choose two axes"):
        heatmap(np.zeros((2, 3, 4)))


def test_too_few_labels_are_refused():
    with pytest.raises(ShapeError, match="2 row labels came for 3 rows"):
        heatmap(WEIGHTS, row_labels=["a", "b"])


def test_no_global_state_is_touched(tmp_path):
    before = dict(pyplot.rcParams)
    heatmap(WEIGHTS, to=tmp_path / "a.svg")
    assert pyplot.get_fignums() == []
    assert dict(pyplot.rcParams) == before
