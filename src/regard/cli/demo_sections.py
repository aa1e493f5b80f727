"""The sections of a demo: each is one run of a small model, made when its page is written, and left out without it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from regard.cli.harmless import make_harmless
from regard.cli.outputs import check_target, explain_write_errors
from regard.errors import ModelError
from regard.files import put
from regard.models import embedded
from regard.views.article.page import ArticleSection, article_page


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


def write_sections(page: Path, title: str, lead: str, tasks: Sequence[DemoTask], models: Mapping[str, str]) -> str:
    """Run each task, write the page, and return what to print; `models` are others than the embedded, by task."""
    check_target(page, (".html",))
    sections, left_out = make_sections(tasks, models)
    with explain_write_errors(page):
        put(page, article_page(title, lead, sections).encode())
    said = [f"{one.name}: {make_harmless(one.summary)}" for one in sections]
    missing = [f"{name} is left out: {why}" for name, why in left_out.items()]
    return "\n\n".join(
        [
            "\n".join(said),
            *(["\n".join(missing)] if missing else []),
            f"What each of them looked at is in {page}, with every layer and head: open it in a browser.",
        ]
    )


def make_sections(tasks: Sequence[DemoTask], models: Mapping[str, str]) -> tuple[list[ArticleSection], dict[str, str]]:
    """A section for each task whose model is here, and why the others are left out."""
    chosen: list[tuple[DemoTask, str]] = []
    left_out: dict[str, str] = {}
    for task in tasks:
        try:
            chosen.append((task, models[task.name] if task.name in models else task.model()))
        except ModelError as error:
            left_out[task.name] = str(error)
    if not chosen:
        raise ModelError("this build has no embedded models, so there is nothing to show; install a whole copy of it")
    return [task.section(model) for task, model in chosen], left_out
