"""The section of the captioner: a scene of shapes that it never saw, its caption, and where it looked for each word."""

from regard.cli.caption_lines import keep_run
from regard.cli.demo_facts import describe_model, find_training, list_commands, name_model, name_run
from regard.data.picture_file import as_png, describe_picture
from regard.data.shapes import make_scene
from regard.tasks.picture_captioner import open_captioner
from regard.views.article.markup import element, join
from regard.views.article.page import ArticleRun, ArticleSection
from regard.views.article.parts import note
from regard.views.article.pictures import picture_box

MODEL = "shapes-captioner"
SEED, NUMBER = 3, 4


def captions_section(model: str = MODEL, number: int = NUMBER) -> ArticleSection:
    """A scene of the test part, what the model writes of it, and the picture once for each word."""
    opened = open_captioner(model)
    scene = make_scene(SEED, "test", number)
    pixels = opened.fit(as_png(scene.pixels))
    [written] = opened.write([pixels])
    run, picture = keep_run(opened, f"scene {number}", pixels, written), describe_picture(pixels)
    looked = opened.look(pixels, written).tolist()
    boxes = [picture_box(picture, said=word, weights=rows) for word, rows in zip(written.words, looked)]
    return ArticleSection(
        name="captions",
        title="A captioner: show, attend and tell",
        about=describe_model(model, "caption"),
        parts=[
            ("Input", picture_box(picture, said=f"drawn as: {scene.caption}")),
            ("Output", element("p", written.text, class_="said")),
            (
                "Where it looked",
                join(
                    [
                        *boxes,
                        note("Each picture is one word: the stronger the tint, the more the model took from there."),
                    ]
                ),
            ),
        ],
        commands=list_commands(
            f"regard caption PICTURE.png{name_model(model, MODEL)}", "regard train caption --data shapes"
        ),
        trained_by=find_training(model),
        run=ArticleRun(
            name_run("captions", written.text), run.trace(), run.output, "layer=0&head=0&query=0", "image", picture
        ),
        summary=f"{scene.caption} → {written.text}",
    )
