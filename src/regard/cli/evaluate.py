"""`regard evaluate`: flags in, the scores of a trained model out."""

from collections.abc import Sequence

from regard.cli.harmless import format_json
from regard.tasks.evaluate import evaluate, task_of
from regard.training.settings import read_flags


def evaluate_run(where: str, words: Sequence[str], *, as_json: bool) -> str:
    """Scores of a model, by the task that it was trained on, as JSON or as that task reports them."""
    result = evaluate(where, **read_flags(words))
    return format_json(result, indent=1) if as_json else task_of(where).report(result)
