"""The section of the translator: which word of the source each written token looked at."""

from regard.cli.demo_facts import (
    describe_model,
    find_training,
    list_commands,
    name_model,
    name_run,
    quote_text,
)
from regard.cli.explore import written_output
from regard.cli.pages import alignment_address
from regard.tasks.text_translator import open_translator
from regard.tokens.visible import visible
from regard.views.article.markup import element, join
from regard.views.article.page import ArticleRun, ArticleSection
from regard.views.article.parts import note, text_box, weight_table

MODEL = "en-zh"
TEXT = "My brother bought a new car yesterday."


def translate_section(model: str = MODEL, text: str = TEXT) -> ArticleSection:
    """A sentence, its translation, and the cross-attention between them."""
    [one] = open_translator(model).translate([text])
    trace = one.trace()
    written, read, weights = one.alignment(trace)
    table = weight_table([*map(visible, written)], [*map(visible, read)], weights.tolist())
    about = (
        "A row is a token that was written, a column one that was read; each number is how much of its attention the "
        "written token gave to the read one, the mean over the heads of the layer that aligns best. A row adds up to 1."
    )
    place = alignment_address(one, trace).removeprefix("#/")
    return ArticleSection(
        name="translate",
        title="Translate",
        about=describe_model(model, "translate"),
        parts=[
            ("Input", text_box(text)),
            ("Output", element("p", one.text, class_="said", dir="auto")),
            ("What it looked at", join([table, note(about)])),
        ],
        commands=list_commands(
            f"regard translate{name_model(model, MODEL)} {quote_text(text)} --see",
            "regard train translate --data pairs.tsv",
        ),
        trained_by=find_training(model),
        run=ArticleRun(name_run("translate", text), trace, written_output(one.text), place),
        summary=f"{text} → {one.text}",
    )
