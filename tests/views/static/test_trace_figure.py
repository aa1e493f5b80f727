"""Figures of a trace: what is on them is read back from the figure, or from the file."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.errors import TraceError
from regard.trace.record.trace import Trace
from regard.trace.record.weights import from_weights
from regard.views.static.trace_figure import columns_for, figure
from tests.views.traces import SOURCE, TARGET, aimed, decoder, translator


def panels(drawn):
    """The axes that hold maps, without the colours beside them."""
    return [axes for axes in drawn.axes if axes.get_label() != "<colorbar>" and axes.get_visible()]


def values(axes):
    return axes.collections[0].get_array()


def labels(axes):
    return [text.get_text() for text in axes.get_yticklabels()], [text.get_text() for text in axes.get_xticklabels()]


def below(drawn):
    return drawn.legends[0].get_title().get_text(), [text.get_text() for text in drawn.legends[0].get_texts()]


def texts(path):
    root = ET.parse(path).getroot()
    return ["".join(node.itertext()).strip() for node in root.iter("{http://www.w3.org/2000/svg}text")]


def test_one_head_shows_its_weights_tokens_and_what_may_not_be_looked_at():
    trace = translator()
    drawn = figure(trace, "decoder.1.cross", 2)
    (axes,) = panels(drawn)
    wanted = trace["decoder.1.cross"].head(2).dense()
    np.testing.assert_allclose(values(axes)[:, :4], wanted[:, :4], rtol=1e-6)
    assert values(axes).mask.tolist() == [[False] * 4 + [True]] * 4
    assert labels(axes) == (list(TARGET), list(SOURCE))
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("queries", "keys")
    assert drawn.get_suptitle() == "decoder.1.cross, head 2"
    title, keys = below(drawn)
    assert "Rows are queries, columns are keys: each row shows where one query attends." in title
    assert "cross-attention; computed from q and k, float32; unverified" in title
    assert keys == ["masked"]


def test_small_maps_say_the_value_in_each_cell_and_long_ones_do_not():
    assert len(panels(figure(translator(), 5, 0))[0].texts) == 4 * 4
    assert not panels(figure(decoder(tokens=30), 0, 0))[0].texts


def test_the_first_query_is_on_top():
    axes = panels(figure(translator(), 5, 0))[0]
    assert axes.get_ylim() == (4, 0)
    assert axes.get_xlim() == (0, 5)


def test_the_heads_of_a_layer_share_one_colour_scale():
    torch.manual_seed(1)
    weak, strong = torch.randn(5, 5).mul(0.1).softmax(-1), torch.randn(5, 5).mul(9).softmax(-1)
    trace = from_weights(torch.stack([weak, strong, weak, strong, weak]))
    drawn = figure(trace, 0)
    shown = panels(drawn)
    assert [axes.get_title() for axes in shown] == [f"head {h}" for h in range(5)]
    assert len({axes.collections[0].get_clim() for axes in shown}) == 1
    assert shown[0].collections[0].get_clim() == (0.0, pytest.approx(strong.max().item()))
    assert len(drawn.axes) - len(shown) == 2  # one place left over, and one bar of colours
    for head, axes in enumerate(shown):
        np.testing.assert_allclose(values(axes), trace[0].head(head).dense(), rtol=1e-6)


def test_stacks_stand_side_by_side_each_with_its_own_tokens():
    trace = translator()
    drawn = figure(trace)
    encoder, own, cross = panels(drawn)
    assert [axes.get_title().split("\n")[:2] for axes in (encoder, own, cross)] == [
        ["self-attention", "encoder.1.self"],
        ["self-attention", "decoder.1.self"],
        ["cross-attention", "decoder.1.cross"],
    ]
    assert labels(encoder) == (list(SOURCE), list(SOURCE))
    assert labels(own) == (list(TARGET), list(TARGET))
    assert labels(cross) == (list(TARGET), list(SOURCE))
    assert values(own).mask.tolist() == (~torch.ones(4, 4).tril().bool()).tolist()
    assert len({axes.collections[0].get_clim() for axes in (encoder, own, cross)}) == 1
    assert drawn.get_suptitle() == "Translator"


def test_the_sharpest_head_is_shown_unless_one_is_asked_for():
    weights = torch.stack([aimed([0, 1, 2], 3, 1, sharp)[0, 0].dense() for sharp in (0.1, 9.0, 1.0)])
    trace = from_weights({"encoder": weights, "decoder": weights})
    assert [axes.get_title().split("\n")[2] for axes in panels(figure(trace))] == ["head 1, the sharpest of 3"] * 2
    assert [axes.get_title().split("\n")[2] for axes in panels(figure(trace, head=2))] == ["head 2"] * 2


def test_everything_at_once_has_a_thumbnail_for_each_head():
    trace = decoder(tokens=6, heads=4, layers=3, mask=regard.causal())
    drawn = figure(trace)
    (axes,) = panels(drawn)
    assert labels(axes) == (["0  blocks.0", "1  blocks.1", "2  blocks.2"], [f"head {h}" for h in range(4)])
    mosaic = axes.images[0].get_array()
    side = mosaic.shape[0] // 3
    assert mosaic.shape == (3 * side, 4 * side)
    inner = mosaic[side : 2 * side, 2 * side : 3 * side]  # layer 1, head 2
    margin = np.flatnonzero(~inner.mask.all(1))[0]
    size = (side - 2 * margin) // 6
    cells = inner[margin : side - margin, margin : side - margin][size // 2 :: size, size // 2 :: size]
    np.testing.assert_allclose(cells.filled(0), trace[1].head(2).dense(), rtol=1e-6)
    assert cells.mask.tolist() == (~torch.ones(6, 6).tril().bool()).tolist()


def test_layers_with_different_numbers_of_heads_leave_room_empty():
    trace = from_weights([torch.eye(3).repeat(h, 1, 1) for h in (1, 4, 2)])
    mosaic = panels(figure(trace))[0].images[0].get_array()
    side = mosaic.shape[0] // 3
    there = ~mosaic.mask.reshape(3, side, 4, side).all((1, 3))
    assert there.sum(1).tolist() == [1, 4, 2]


def test_many_tokens_are_thinned_and_the_axis_says_so():
    (axes,) = panels(figure(decoder(tokens=120, heads=1, layers=1), 0, 0))
    rows, columns = labels(axes)
    assert rows == columns == [f"t{i}" for i in range(0, 120, 2)]
    assert axes.get_ylabel() == "queries (1 in 2 named)"


def test_more_than_512_tokens_are_pooled_and_the_colours_say_by_which_rule():
    trace = decoder(tokens=700, heads=2, layers=1, mask=regard.causal())
    drawn = figure(trace, 0, 1)
    shown = values(panels(drawn)[0])
    dense = trace[0].head(1).dense()
    np.testing.assert_allclose(shown.filled(0), dense.reshape(350, 2, 350, 2).amax((1, 3)), rtol=1e-6)
    assert shown.mask[0, 1]
    assert drawn.axes[1].get_ylabel() == "each cell is the largest of 2 × 2"


def test_rows_columns_and_words_are_chosen():
    tokens = ["[CLS]", "un", "##seen", "cat", "[SEP]", "sat", "[SEP]"]
    trace = from_weights(torch.rand(2, 7, 7).softmax(-1), tokens)
    (axes,) = panels(figure(trace, 0, 1, rows="A", cols="B", words=True))
    assert labels(axes) == (["unseen", "cat"], ["sat"])
    np.testing.assert_allclose(values(axes)[0, 0], trace[0].head(1).dense()[1:3, 5].mean(), rtol=1e-6)
    (axes,) = panels(figure(trace, 0, 1, rows=slice(2, 5)))
    assert labels(axes)[0] == ["seen", "cat", "[SEP]"]


def test_a_batch_entry_is_chosen():
    trace = from_weights(torch.rand(3, 2, 4, 4).softmax(-1), [list("abcd"), list("efgh"), list("ijkl")])
    (axes,) = panels(figure(trace, 0, 1, batch=2))
    assert labels(axes) == (list("ijkl"), list("ijkl"))
    np.testing.assert_allclose(values(axes), trace[0].head(1, batch=2).dense(), rtol=1e-6)


@pytest.mark.parametrize("which", [{"layer": 5, "head": 1}, {"layer": 5}, {}], ids=["head", "layer", "side by side"])
def test_an_svg_holds_every_token_as_text_in_any_script(tmp_path, which):
    figure(translator(), **which, title="猫 $x$ & <b>", to=tmp_path / "a.svg")
    found = texts(tmp_path / "a.svg")
    for words in [*TARGET, *SOURCE, "猫 $x$ & <b>", "masked"]:
        assert words in found
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_each_ending_is_written_as_what_it_says(tmp_path, ending, start):
    figure(decoder(), to=tmp_path / f"a.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes().startswith(start)


def test_tokens_do_not_overlap(tmp_path):
    drawn = figure(decoder(tokens=40, heads=1, layers=1), 0, 0, to=tmp_path / "a.png")
    for axis in (drawn.axes[0].xaxis, drawn.axes[0].yaxis):
        boxes = [text.get_window_extent() for text in axis.get_ticklabels()]
        assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    assert max(Image.open(tmp_path / "a.png").size) < 2000


def test_bad_wishes_are_refused_in_one_sentence(tmp_path):
    trace = translator()
    with pytest.raises(TraceError, match="the trace has no layers, so there is nothing to draw"):
        figure(Trace())
    with pytest.raises(TraceError, match=r"decoder\.1\.cross has 3 heads, but head 7 was asked for"):
        figure(trace, 5, 7)
    with pytest.raises(TraceError, match="saw a batch of 1, but entry 1 was asked for"):
        figure(trace, 5, batch=1)
    with pytest.raises(ValueError, match=r"written as \.svg, \.png, \.pdf, but 'a\.gif'"):
        figure(trace, to=tmp_path / "a.gif")
    many = from_weights([torch.eye(2)])
    for number, one in enumerate(many.layers * 5):
        many.runs[0].layers.append(type(one)("abcde"[number], "self", one.weights))
    with pytest.raises(TraceError, match="head 0 was asked for, but there are 6 stacks of layers; say which layer"):
        figure(many, head=0)


def test_panels_stand_in_full_rows_where_they_can():
    assert [columns_for(n) for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32)] == [1, 2, 3, 2, 3, 3, 4, 4, 3, 4, 4, 8]
