"""The section of the glimpses: a few small squares of a digit, one after the other, and the way between them."""

from typing import Any

from regard.cli import demo_digits
from regard.cli.demo_digits import tell_digit
from regard.cli.demo_facts import describe_model, find_training, list_commands, name_model, name_run
from regard.cli.picture_lines import describe_run
from regard.data.drawn_digits import draw_digit
from regard.data.picture_file import as_png
from regard.tasks.picture_classifier import open_picture_classifier
from regard.views.article.markup import Markup, element, join
from regard.views.article.page import ArticleRun, ArticleSection
from regard.views.article.parts import note
from regard.views.article.pictures import glimpse_way, picture_box

MODEL = "glimpses"
DIGIT = 3


def glimpses_section(model: str = MODEL, digit: int = DIGIT) -> ArticleSection:
    """A drawn digit, its class, and where the model looked, in order."""
    opened = open_picture_classifier(model)
    data = as_png(draw_digit(digit, size=opened.size[0]))
    output, picture = describe_run(opened, data)
    best = output["classes"][0]
    way = picture["glimpses"]
    count, size = len(way["places"]), way["size"]
    return ArticleSection(
        name="glimpses",
        title="A network that looks by glimpses",
        about=describe_model(model, "picture"),
        parts=[
            *tell_digit(digit, picture, output["classes"]),
            (
                "Where it looked",
                join(
                    [
                        picture_box(
                            picture, said=f"{count} glimpses, in order", marks=glimpse_way(way, picture["width"])
                        ),
                        note(
                            f"It sees squares of {size} × {size} pixels and nothing else, and decides after each where "
                            "to look next. Nothing is weighed: this is hard attention."
                        ),
                    ]
                ),
            ),
            ("What it saw", seen_boxes(picture, way)),
        ],
        commands=list_commands(
            f"regard classify-image PICTURE.png{name_model(model, demo_digits.MODEL)}",
            "regard train picture --data mnist/ --model glimpse",
        ),
        trained_by=find_training(model),
        run=ArticleRun(
            name_run("glimpses", f"a drawn {digit}"), opened.trace(data), output, "layer=0&head=0", "image", picture
        ),
        summary=f"a drawn {digit} → {best['name']} {best['share']:.3f}",
    )


def seen_boxes(picture: dict[str, Any], way: dict[str, Any]) -> Markup:
    """The smallest square of each glimpse, cut out of the picture by what is shown of it."""
    size, width, height = way["size"], picture["width"], picture["height"]
    boxes = []
    for number, (row, column) in enumerate(way["places"], 1):
        whole = element(
            "image", href=str(picture["address"]), width=str(width), height=str(height), x="0", y="0",
            style="image-rendering:pixelated",
        )  # fmt: skip
        cut = {"viewBox": f"{column - size // 2} {row - size // 2} {size} {size}", "width": "72", "height": "72"}
        drawn = element("svg", whole, role="img", style="background:#777", **{"aria-label": f"glimpse {number}"}, **cut)
        boxes.append(
            element(
                "figure", drawn, element("figcaption", str(number)), style="display:inline-block;margin:0 10px 8px 0"
            )
        )
    return join(boxes)
