"""`regard demo pictures`: small models look at pictures, and one page shows where."""

from collections.abc import Mapping
from pathlib import Path

from regard.cli import demo_captions, demo_digits, demo_glimpses
from regard.cli.demo_sections import DemoTask, find_model, write_sections

PAGE = "demo-pictures.html"
TITLE = "Where small models look in a picture"
LEAD = (
    "Each section is one run of a small model that comes with regard, made when this page was written, on a picture "
    "that regard draws itself. Every number is one of that run, but for the sizes and scores of the models, which "
    "stand in their manifests."
)

# A further model is a file with its section, and an entry here.
PICTURES = (
    DemoTask("digits", find_model(demo_digits.MODEL), demo_digits.digits_section),
    DemoTask("glimpses", find_model(demo_glimpses.MODEL), demo_glimpses.glimpses_section),
    DemoTask("captions", find_model(demo_captions.MODEL), demo_captions.captions_section),
)


def write_demo_pictures(folder: Path, models: Mapping[str, str] | None = None) -> str:
    """Run each model, write the page, and return what to print; `models` are others than the embedded, by name."""
    return write_sections(folder / PAGE, TITLE, LEAD, PICTURES, models or {})
