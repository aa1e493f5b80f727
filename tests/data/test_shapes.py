"""Scenes of shapes: captions are true of boxes, boxes of pixels, and no caption is in two parts."""

import numpy as np
import pytest

from regard.data.caption_sets import make_shapes, read_captions
from regard.data.shapes import COLOURS, PARTS, RADII, RELATIONS, SHAPES, SIDE, make_scene, part_of
from regard.errors import ConfigError, DataError

SEED, COUNT = 5, 90


@pytest.fixture(scope="module")
def scenes():
    return {part: [make_scene(SEED, part, at) for at in range(COUNT)] for part in PARTS}


def middle(thing):
    top, left, bottom, right = thing.box
    return (top + bottom) / 2, (left + right) / 2


def test_captions_say_what_the_boxes_say(scenes):
    plural = {many: one for one, many in SHAPES.items()}
    related = 0
    for scene in [one for part in PARTS for one in scenes[part]]:
        words = scene.caption.split()
        for thing in scene.things:
            assert plural.get(words[thing.word], words[thing.word]) == thing.shape
            assert words[thing.word - 2 : thing.word] == [thing.size, thing.colour]
            sides = {thing.box[2] - thing.box[0], thing.box[3] - thing.box[1]}
            assert sides <= {2 * radius + 1 for radius in RADII[thing.size]}
        counts = {"a": 1, "two": 2, "three": 3}
        nouns = sorted({thing.word for thing in scene.things})
        assert [counts[words[noun - 3]] for noun in nouns] == [
            sum(thing.word == noun for thing in scene.things) for noun in nouns
        ]
        relation = next((name for name in RELATIONS if f" {name} " in scene.caption), None)
        (row, column), (other_row, other_column) = middle(scene.things[0]), middle(scene.things[-1])
        down, right = other_row - row, other_column - column
        if relation is not None:
            related += 1
            along, aside = (down, right) if relation in ("above", "below") else (right, down)
            assert abs(along) >= 2 * abs(aside)
            assert (along > 0) == (relation in ("above", "left of"))
        if "between" in words:
            assert (row, column) == tuple(np.mean([middle(one) for one in scene.things[1:]], 0))
    assert related > COUNT


def test_boxes_hold_the_colours_that_captions_name_and_the_rest_is_ground(scenes):
    for scene in scenes["test"][:40]:
        free, ground = np.ones((SIDE, SIDE), dtype=bool), np.median(scene.pixels, (0, 1))
        for thing in scene.things:
            top, left, bottom, right = thing.box
            assert min(thing.box) >= 0
            assert max(thing.box) <= SIDE
            assert free[top:bottom, left:right].all()  # no two lie over each other
            free[top : bottom + 1, left : right + 1] = False  # a smooth edge may reach a quarter of a pixel beyond
            off = np.abs(scene.pixels[top:bottom, left:right].astype(int) - COLOURS[thing.colour]).max(-1)
            assert (off < 40).mean() > 0.2
            painted = np.abs(scene.pixels[top:bottom, left:right] - ground).max(-1) > 20
            for edge in (painted[:2], painted[-2:], painted[:, :2], painted[:, -2:]):
                assert edge.any()  # it touches all sides of its box
        assert np.ptp(scene.pixels[free].astype(int), axis=0).max() < 30


def test_a_scene_is_a_function_of_seed_part_and_number_and_parts_share_no_caption(scenes):
    again = make_scene(SEED, "test", 7)
    assert again.caption == scenes["test"][7].caption
    assert np.array_equal(again.pixels, scenes["test"][7].pixels)
    assert not np.array_equal(make_scene(SEED + 1, "test", 7).pixels, again.pixels)
    captions = {part: {one.caption for one in scenes[part]} for part in PARTS}
    for part in PARTS:
        assert {part_of(one) for one in captions[part]} == {part}
    assert len(captions["train"]) > 0.8 * COUNT
    words = {word for one in captions["train"] for word in one.split()}
    assert {word for one in captions["test"] for word in one.split()} <= words
    with pytest.raises(ConfigError, match="no part 'dev'"):
        make_scene(SEED, "dev", 0)


def test_a_set_holds_scenes_with_their_captions_and_objects(scenes):
    made = make_shapes(9, seed=SEED, part="test").select(np.array([7, 2]))
    assert len(made) == 2
    assert made.captions_of(0) == (scenes["test"][7].caption,)
    assert made.things_of(1) == scenes["test"][2].things
    assert np.array_equal(made.pictures.read(1, 3), scenes["test"][2].pixels)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"caption": "a"}', "line 1: there is no file or image or picture"),
        ('\n{"file": "a.png"}', "line 2: there is no caption"),
        ('{"file": "a.png", "captions": ["a", " "]}', "there is no caption"),
        ('{"file": "a.png", "caption": "a"}', "a.png, which is not there"),
        ("", "holds no picture with a caption"),
    ],
)
def test_lines_without_a_picture_or_a_caption_are_refused(lines, said, tmp_path):
    (tmp_path / "few.jsonl").write_text(lines)
    with pytest.raises(DataError, match=said):
        read_captions(tmp_path / "few.jsonl")
