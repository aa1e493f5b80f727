"""`regard demo tasks`: each task runs once on its embedded model, and one page shows what came out and why."""

from collections.abc import Mapping
from pathlib import Path

from regard.cli import demo_answer, demo_classify, demo_embed, demo_fill, demo_summarise, demo_translate, demo_write
from regard.cli.demo_sections import DemoTask, find_model, write_sections
from regard.errors import ModelError
from regard.tasks.text_embedder import find_embedded

PAGE = "demo-tasks.html"
TITLE = "What small models do, and what they look at"
LEAD = (
    "Each section is one run of a small model that comes with regard, made when this page was written. Every number is "
    "one of that run, but for the sizes and scores of the models, which stand in their manifests."
)


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
    return write_sections(folder / PAGE, TITLE, LEAD, TASKS, models or {})
