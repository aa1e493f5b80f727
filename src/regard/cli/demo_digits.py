"""The section of the digits: a Vision Transformer names a digit, and its patches by rollout and by its last layer."""

from typing import Any

from regard.cli.demo_facts import describe_model, find_training, list_commands, name_model, name_run
from regard.cli.picture_lines import describe_run
from regard.data.drawn_digits import draw_digit
from regard.data.picture_file import as_png
from regard.tasks.picture_classifier import open_picture_classifier
from regard.trace.record.trace import Trace
from regard.views.article.markup import Markup, element, join
from regard.views.article.page import ArticleRun, ArticleSection
from regard.views.article.parts import bar_list, note
from regard.views.article.pictures import picture_box

MODEL = "digits"
DIGIT = 5


def digits_section(model: str = MODEL, digit: int = DIGIT) -> ArticleSection:
    """A drawn digit, the probability of each class, and the patches that the class was told from."""
    opened = open_picture_classifier(model)
    data = as_png(draw_digit(digit, size=opened.size[0]))
    output, picture = describe_run(opened, data)
    trace, best = opened.trace(data), output["classes"][0]
    return ArticleSection(
        name="digits",
        title="A Vision Transformer",
        about=describe_model(model, "picture"),
        parts=[
            *tell_digit(digit, picture, output["classes"]),
            ("What it looked at", patch_maps(trace, picture)),
        ],
        commands=list_commands(
            f"regard classify-image PICTURE.png{name_model(model, MODEL)}", "regard train picture --data mnist/"
        ),
        trained_by=find_training(model),
        run=ArticleRun(
            name_run("digits", f"a drawn {digit}"),
            trace,
            output,
            f"layer={len(trace.layers) - 1}&head=0",
            "image",
            picture,
        ),
        summary=f"a drawn {digit} → {best['name']} {best['share']:.3f}",
    )


def tell_digit(digit: int, picture: dict[str, Any], classes: list[dict[str, Any]]) -> list[tuple[str, Markup]]:
    """What was drawn, what it was taken for, and the probability of each class."""
    best = classes[0]
    return [
        ("Input", picture_box(picture, said=f"a drawn {digit}")),
        ("Output", element("p", f"{best['name']}, with probability {best['share']:.3f}", class_="said")),
        ("Classes", bar_list([one["name"] for one in classes], [one["share"] for one in classes])),
    ]


def patch_maps(trace: Trace, picture: dict[str, Any]) -> Markup:
    """The first token over the picture: by rollout through all layers, and the heads of the last one."""
    tokens = trace.layers[-1].queries
    rows, columns = tokens[0].grid or (0, 0) if tokens else (0, 0)
    last = trace.layers[-1].weights.dense()[0, :, 0, -rows * columns :].float()  # h patches
    rolled = trace.rollout(0)[0, -rows * columns :].float()
    shown = [("rollout over all layers and heads", rolled)]
    shown += [(f"last layer, head {head}", one) for head, one in enumerate(last)]
    first = tokens[0].shown[0] if tokens else ""
    boxes = [picture_box(picture, said=said, weights=one.reshape(rows, columns).tolist()) for said, one in shown]
    return join(
        [*boxes, note(f"The stronger the tint, the more {first} attends to the patch; rollout shows no causes.")]
    )
