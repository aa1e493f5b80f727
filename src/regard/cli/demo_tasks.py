"""`regard demo tasks`: each task runs once on its embedded model, and one page shows what came out and why."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from regard.cli import demo_answer, demo_classify, demo_embed, demo_fill, demo_summarise, demo_translate, demo_write
from regard.cli.harmless import make_harmless
from regard.cli.outputs import check_target, explain_write_errors
from regard.errors import ModelError
from regard.files import put
from regard.models import embedded
from regard.tasks.text_embedder import find_embedded
from regard.views.article.page import ArticleSection, article_page

PAGE = "demo-tasks.html"
TITLE = "What small models do, and what they look at"
LEAD = (
    "Each section is one run of a small model that comes with regard, made when this page was written. Every number is "
    "one of that run, but for the sizes and scores of the models, which stand in their manifests."
)


class DemoTask(NamedTuple):
    """A task, the embedded model that the demo runs it on, and what makes its section of that model."""

    name: str
    model: Callable[[], str]  # its name; a ModelError where this build has none
    section: Callable[[str], ArticleSection]


def find_model(name: str) -> Callable[[], str]:
    """The name of an embedded model, refused where it is not here; a folder of that name is not meant."""

    def find() -> str:
        if name not in embedded.names():
            raise ModelError(f"this build has no embedded model {name!r}")
        return name

    return find


def find_encoder() -> str:
    """The embedded sentence encoder, whatever its name."""
    try:
        return find_embedded()
    except ModelError as error:
        raise ModelError("this build has no embedded sentence encoder") from error


TASKS = (
    DemoTask("translate", find_model(demo_translate.MODEL), demo_translate.translate_section),
    DemoTask("classify", find_model(demo_classify.MODEL), demo_classify.classify_section),
    DemoTask("answer", find_model(demo_answer.MODEL), demo_answer.answer_section),
    DemoTask("summarise", find_model(demo_summarise.MODEL), demo_summarise.summarise_section),
    DemoTask("fill", find_model(demo_fill.MODEL), demo_fill.fill_section),
    DemoTask("write", find_model(demo_write.MODEL), demo_write.write_section),
    DemoTask("embed", find_encoder, demo_embed.embed_section),
)


def write_demo_tasks(folder: Path, models: Mapping[str, str] | None = None) -> str:
    """Run each task, write the page, and return what to print; `models` are others than the embedded, by task."""
    page = folder / PAGE
    check_target(page, (".html",))
    sections, left_out = make_sections(models or {})
    with explain_write_errors(page):
        put(page, article_page(TITLE, LEAD, sections).encode())
    said = [f"{one.name}: {make_harmless(one.summary)}" for one in sections]
    missing = [f"{name} is left out: {why}" for name, why in left_out.items()]
    return "\n\n".join(
        [
            "\n".join(said),
            *(["\n".join(missing)] if missing else []),
            f"What each of them looked at is in {page}, with every layer and head: open it in a browser.",
        ]
    )


def make_sections(models: Mapping[str, str]) -> tuple[list[ArticleSection], dict[str, str]]:
    """A section for each task whose model is here, and why the others are left out."""
    chosen: list[tuple[DemoTask, str]] = []
    left_out: dict[str, str] = {}
    for task in TASKS:
        try:
            chosen.append((task, models[task.name] if task.name in models else task.model()))
        except ModelError as error:
            left_out[task.name] = str(error)
    if not chosen:
        raise ModelError("this build has no embedded models, so there is nothing to show; install a whole copy of it")
    return [task.section(model) for task, model in chosen], left_out
