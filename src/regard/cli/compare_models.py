"""A GPT and a BERT read one text: their numbers side by side, and their maps as one page."""

from collections.abc import Sequence
from pathlib import Path

from regard.cli.harmless import format_json
from regard.cli.opening import load_named_model
from regard.cli.outputs import check_target, explain_write_errors
from regard.errors import ConfigError, ModelError
from regard.models import embedded
from regard.views.readings.compare import ModelComparison, compare_models, name_of

EXAMPLE = "A young girl in a red dress is reading a book on the grass."
EMBEDDED = ("writer", "filler")  # a GPT and a BERT that were trained on the same text


def compare_readings(
    text: str,
    models: Sequence[str],
    *,
    to: Path | None = None,
    written: int = 8,
    download: bool = False,
    as_json: bool = False,
) -> str:
    """The comparison as text or JSON; its page is written where `to` says so."""
    check_target(to, (".html",))
    first, second = choose_models(models)
    names = name_of(first), name_of(second)
    opened = [load_named_model(one, download=download)[:2] for one in (first, second)]
    made = compare_models(text, opened[0], opened[1], names=names, written=written)
    if to is not None:
        with explain_write_errors(to):
            made.page(to)
    if as_json:
        return format_json(made.to_json())
    return describe(made, to)


def choose_models(given: Sequence[str]) -> tuple[str, str]:
    """The two models that are given, or the two embedded ones."""
    if len(given) == 2:
        return given[0], given[1]
    if given:
        raise ConfigError(f"{len(given)} of --model came, but two models are compared; give two: -m GPT -m BERT")
    missing = [name for name in EMBEDDED if name not in embedded.names()]
    if missing:
        raise ModelError(
            f"this build has no embedded model {missing[0]!r}; give two models, one that writes and one that fills "
            "gaps: -m GPT -m BERT"
        )
    return EMBEDDED


def describe(made: ModelComparison, to: Path | None) -> str:
    """The text, the tables, and the next step."""
    step = (
        "Both maps side by side in a browser: --to both.html"
        if to is None
        else f"{to} is written. Open it in a browser."
    )
    return f"{made.text}\n\n{made!r}\n\n{step}"
