"""Pictures of plain shapes whose captions are true, and whose objects lie where we say: for learning and for judging.

A scene is a function of seed, part and number. The larger of two objects is named first, so a scene has one caption.
"""

import math
from itertools import combinations
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from jaxtyping import UInt8

from regard.data.picture_file import import_pillow
from regard.errors import ConfigError

COLOURS = {
    "red": (205, 38, 38), "green": (40, 150, 60), "blue": (42, 80, 205), "yellow": (235, 205, 45),
    "orange": (240, 130, 30), "purple": (128, 50, 165), "pink": (245, 135, 185), "black": (28, 28, 32),
}  # fmt: skip
SHAPES = {
    "circle": "circles", "square": "squares", "triangle": "triangles", "star": "stars", "cross": "crosses",
    "ring": "rings", "diamond": "diamonds",
}  # fmt: skip
RADII = {"small": (5, 6), "large": (9, 10)}  # pixels of a scene of SIDE, both among them
RELATIONS = {"above": (1, 0), "below": (-1, 0), "left of": (0, 1), "right of": (0, -1)}  # where the second one is
COUNTS = {2: "two", 3: "three"}
PARTS = ("train", "validation", "test")
HELD_OUT = 20  # one caption in so many is kept for validation, and another for the test
SIDE = 48  # pixels of a scene
FINE = 4  # how much larger it is drawn, for smooth edges
GAP = 2  # pixels between objects, and to the border


class Thing(NamedTuple):
    """One object of a scene."""

    shape: str
    colour: str
    size: str
    box: tuple[int, int, int, int]  # first row, first column, and the row and column after the last
    word: int  # which word of the caption names it, from 0: that of its shape

    def holds(self, row: float, column: float) -> bool:
        """Whether a place, in pixels, lies in its box.

        >>> Thing("circle", "red", "small", (3, 5, 17, 19), 3).holds(16.5, 5.0)
        True
        """
        first_row, first_column, end_row, end_column = self.box
        return first_row <= row < end_row and first_column <= column < end_column


class Scene(NamedTuple):
    """A picture with its caption and its objects."""

    pixels: UInt8[np.ndarray, "y x c"]
    caption: str
    things: tuple[Thing, ...]


class ScenePlace(NamedTuple):
    """Where an object is, and how large."""

    row: int
    column: int
    radius: int


class Plan(NamedTuple):
    """What a scene shows: words, and an object for each noun with the places where it stands."""

    caption: str
    nouns: tuple[tuple[str, str, str, int, tuple[ScenePlace, ...]], ...]  # shape, colour, size, word, places


def make_scene(seed: int, part: str, number: int) -> Scene:
    """The scene of this number in a part: "train", "validation" or "test", no two of which share a caption.

    Captions are such as "a large red circle above a small blue square", "three small green stars", "a large black ring
    between two small pink crosses". Above and below mean at least twice as far up or down as aside.

    >>> scene = make_scene(7, "train", 3)
    >>> scene.pixels.shape, scene.caption, [thing.box for thing in scene.things]
    ((48, 48, 3), 'a large green square left of a small pink cross', [(2, 2, 21, 21), (9, 34, 22, 47)])
    """
    if part not in PARTS:
        raise ConfigError(f"there is no part {part!r} of the shapes; choose one of {', '.join(PARTS)}")
    random = np.random.default_rng((seed, PARTS.index(part), number))
    plan = make_plan(random)
    while part_of(plan.caption) != part:
        plan = make_plan(random)
    things = tuple(
        Thing(shape, colour, size, box_of(spot), word)
        for shape, colour, size, word, spots in plan.nouns
        for spot in spots
    )
    return Scene(draw(plan, random), plan.caption, things)


def part_of(caption: str) -> str:
    """The part that all scenes with this caption are of.

    >>> part_of("a small red circle"), part_of("two large red rings")
    ('train', 'test')
    """
    return {0: "validation", 1: "test"}.get(crc32(caption.encode()) % HELD_OUT, "train")


def make_plan(random: np.random.Generator) -> Plan:
    """What a scene shows, and where: one object, several alike, two, or one between two."""
    sort = random.choice(4, p=[0.1, 0.2, 0.5, 0.2])
    return (plan_one, plan_several, plan_two, plan_between)[sort](random)


def plan_one(random: np.random.Generator) -> Plan:
    """A large red circle."""
    size, colour, shape = pick(random, RADII), pick(random, COLOURS), pick(random, SHAPES)
    return Plan(f"a {size} {colour} {shape}", ((shape, colour, size, 3, scatter(random, size, 1)),))


def plan_several(random: np.random.Generator) -> Plan:
    """Three small green stars."""
    count = int(random.integers(2, 4))
    size = "small" if count == 3 else pick(random, RADII)
    colour, shape = pick(random, COLOURS), pick(random, SHAPES)
    return Plan(
        f"{COUNTS[count]} {size} {colour} {SHAPES[shape]}", ((shape, colour, size, 3, scatter(random, size, count)),)
    )


def plan_two(random: np.random.Generator) -> Plan:
    """A large red circle above a small blue square."""
    large, small = draw_radius(random, "large"), draw_radius(random, "small")
    relation = pick(random, RELATIONS)
    down, right = RELATIONS[relation]
    far = int(random.integers(large + small + GAP, SIDE - large - small - 2 * GAP + 1))
    aside = int(random.integers(-(far // 2), far // 2 + 1))
    offset = (down * far, aside) if down else (aside, right * far)
    spots = shift(random, (ScenePlace(0, 0, large), ScenePlace(*offset, small)))
    first, second = ((pick(random, COLOURS), pick(random, SHAPES)) for _ in range(2))
    caption = f"a large {first[0]} {first[1]} {relation} a small {second[0]} {second[1]}"
    at = len(caption.split()) - 1
    return Plan(
        caption,
        ((first[1], first[0], "large", 3, spots[:1]), (second[1], second[0], "small", at, spots[1:])),
    )


def plan_between(random: np.random.Generator) -> Plan:
    """A large black ring between two small pink crosses."""
    large, small = RADII["large"][0], draw_radius(random, "small")
    least, most = large + small + GAP, SIDE // 2 - small - GAP
    far = int(random.integers(least, max(least, most) + 1))
    down, right = ((1, 0), (0, 1))[int(random.integers(2))]
    before, after = ScenePlace(-down * far, -right * far, small), ScenePlace(down * far, right * far, small)
    spots = shift(random, (ScenePlace(0, 0, large), before, after))
    first, second = ((pick(random, COLOURS), pick(random, SHAPES)) for _ in range(2))
    caption = f"a large {first[0]} {first[1]} between two small {second[0]} {SHAPES[second[1]]}"
    return Plan(caption, ((first[1], first[0], "large", 3, spots[:1]), (second[1], second[0], "small", 8, spots[1:])))


def pick(random: np.random.Generator, names: dict[str, Any]) -> str:
    """One of these names, each as likely."""
    return list(names)[int(random.integers(len(names)))]


def draw_radius(random: np.random.Generator, size: str) -> int:
    least, most = RADII[size]
    return int(random.integers(least, most + 1))


def scatter(random: np.random.Generator, size: str, count: int) -> tuple[ScenePlace, ...]:
    """So many places that do not touch: drawn together until it is so, as the first ones can leave no room."""
    while True:
        radii = [draw_radius(random, size) for _ in range(count)]
        places = [random.integers(one + GAP, SIDE - one - GAP, 2).tolist() for one in radii]
        spots = [ScenePlace(row, column, radius) for (row, column), radius in zip(places, radii)]
        if all(are_apart(one, other) for one, other in combinations(spots, 2)):
            return tuple(spots)


def are_apart(one: ScenePlace, other: ScenePlace) -> bool:
    far = max(abs(one.row - other.row), abs(one.column - other.column))
    return far > one.radius + other.radius + GAP


def shift(random: np.random.Generator, spots: tuple[ScenePlace, ...]) -> tuple[ScenePlace, ...]:
    """The same places among each other, moved together to anywhere in the picture where all of them fit."""
    moved = []
    for axis in (0, 1):
        first = GAP - min(spot[axis] - spot.radius for spot in spots)
        last = SIDE - GAP - 1 - max(spot[axis] + spot.radius for spot in spots)
        moved.append(int(random.integers(first, max(first, last) + 1)))
    return tuple(ScenePlace(spot.row + moved[0], spot.column + moved[1], spot.radius) for spot in spots)


def box_of(spot: ScenePlace) -> tuple[int, int, int, int]:
    """The rows and columns that an object of this radius lies in."""
    row, column, radius = spot
    return row - radius, column - radius, row + radius + 1, column + radius + 1


def draw(plan: Plan, random: np.random.Generator) -> UInt8[np.ndarray, "y x c"]:
    """The picture of a plan: its objects on a light ground, all colours a little off, with a little noise."""
    pillow = import_pillow()
    from PIL import ImageDraw

    ground = random.integers(205, 250) + random.integers(-6, 7, 3)
    canvas = pillow.new("RGB", (SIDE * FINE, SIDE * FINE), as_colour(ground))
    pen = ImageDraw.Draw(canvas)
    for shape, colour, _, _, spots in plan.nouns:
        for spot in spots:
            fill = as_colour(np.array(COLOURS[colour]) + random.integers(-12, 13, 3))
            draw_shape(pen, shape, spot, fill, as_colour(ground))
    pixels = np.asarray(canvas.reduce(FINE)) + random.normal(0, 3, (SIDE, SIDE, 1))
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


def as_colour(shades: np.ndarray) -> tuple[int, ...]:
    return tuple(int(shade) for shade in np.clip(shades, 0, 255))


def draw_shape(pen: Any, shape: str, spot: ScenePlace, fill: tuple[int, ...], ground: tuple[int, ...]) -> None:
    """One object that fills its box from border to border."""
    row, column, radius = ((one + 0.5) * FINE for one in spot)
    whole = (column - radius, row - radius, column + radius - 1, row + radius - 1)  # Pillow draws the last pixel too
    if shape in ("circle", "ring"):
        pen.ellipse(whole, fill=fill)
        if shape == "ring":
            pen.ellipse(tuple((edge + middle) / 2 for edge, middle in zip(whole, (column, row) * 2)), fill=ground)
    elif shape == "square":
        pen.rectangle(whole, fill=fill)
    elif shape == "cross":
        third = radius / 3
        pen.rectangle((column - third, row - radius, column + third, row + radius - 1), fill=fill)
        pen.rectangle((column - radius, row - third, column + radius - 1, row + third), fill=fill)
    else:
        pen.polygon([(column + radius * x, row + radius * y) for x, y in CORNERS[shape]], fill=fill)


def star_corners(points: int, inner: float) -> tuple[tuple[float, float], ...]:
    """The corners of a star, x and y, stretched until it touches all sides of the square from −1 to 1."""
    turns = [math.pi * at / points for at in range(2 * points)]
    corners = [(math.sin(turn) * size, -math.cos(turn) * size) for turn, size in zip(turns, (1, inner) * points)]
    sides = [(min(one), max(one)) for one in zip(*corners)]
    return tuple(
        (
            2 * (x - sides[0][0]) / (sides[0][1] - sides[0][0]) - 1,
            2 * (y - sides[1][0]) / (sides[1][1] - sides[1][0]) - 1,
        )
        for x, y in corners
    )


CORNERS = {
    "triangle": ((0.0, -1.0), (1.0, 1.0), (-1.0, 1.0)),
    "diamond": ((0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)),
    "star": star_corners(5, 0.42),
}
