"""A picture in a section: by itself, with the patches that were looked at, or with the way of glimpses over it."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.views.article.markup import Markup, element, join

WIDE = 168  # pixels of a picture on the page
STRONG = 0.8  # how much of the picture the heaviest patch covers
TINT = "#f28c28"
FIGURE = f"display:inline-block;vertical-align:top;width:{WIDE}px;margin:0 18px 10px 0"


def picture_box(
    picture: Mapping[str, Any],
    *,
    said: str,
    weights: Sequence[Sequence[float]] = (),
    marks: Sequence[Markup] = (),
) -> Markup:
    """A picture (`ShownPicture` of the protocol), tinted by the weights of its patches, with marks in its pixels."""
    width, height = picture["width"], picture["height"]
    whole = element(
        "image",
        href=picture["address"],
        width=str(width),
        height=str(height),
        style="image-rendering:pixelated",
        x="0",
        y="0",
    )
    top = max((weight for row in weights for weight in row), default=0.0) or 1.0
    tints = [
        element(
            "rect",
            element("title", f"{row},{column}: {weight:.4f}"),
            x=f"{column * width / len(line):g}",
            y=f"{row * height / len(weights):g}",
            width=f"{width / len(line):g}",
            height=f"{height / len(weights):g}",
            fill=TINT,
            **{"fill-opacity": f"{STRONG * weight / top:.3f}"},
        )
        for row, line in enumerate(weights)
        for column, weight in enumerate(line)
    ]
    box = {"viewBox": f"0 0 {width} {height}", "width": str(WIDE), "height": str(round(WIDE * height / width))}
    drawn = element("svg", whole, *tints, *marks, role="img", **{"aria-label": said}, **box)
    return element("figure", drawn, element("figcaption", said), style=FIGURE)


def glimpse_way(glimpses: Mapping[str, Any], width: int) -> list[Markup]:
    """Marks of the way from glimpse to glimpse: the square of each, a line, and their numbers at the middle."""
    places, size = glimpses["places"], glimpses["size"]
    unit = width / 28  # of lines, so that they look alike whatever the size of the picture
    squares = [
        element(
            "rect",
            x=str(column - size // 2),
            y=str(row - size // 2),
            width=str(size),
            height=str(size),
            fill="none",
            stroke=TINT,
            **{"stroke-width": f"{0.25 * unit:g}"},
        )
        for row, column in places
    ]
    points = " ".join(f"{column},{row}" for row, column in places)
    line = element("polyline", points=points, fill="none", stroke="#4aa3ff", **{"stroke-width": f"{0.4 * unit:g}"})
    numbers = [
        join(
            [
                element("circle", cx=str(column), cy=str(row), r=f"{1.3 * unit:g}", fill="#4aa3ff"),
                element(
                    "text",
                    str(number),
                    x=str(column),
                    y=f"{row + 0.7 * unit:g}",
                    fill="#000000",
                    **{"font-size": f"{2 * unit:g}", "text-anchor": "middle"},
                ),
            ]
        )
        for number, (row, column) in enumerate(places, 1)
    ]
    return [*squares, line, *numbers]
