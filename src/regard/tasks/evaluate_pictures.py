"""The scores of a trained model of pictures, on what was held out or on any labelled pictures."""

from pathlib import Path
from typing import Any

from regard.data.picture_sets import PictureSet, find_pictures, share_classes
from regard.errors import DataError
from regard.tasks.classification_scores import confusion_table, describe_confusion
from regard.tasks.picture import PictureOptions, PictureSettings, find_parts, judge_pictures
from regard.tasks.picture_classifier import PictureClassifier, open_picture_classifier
from regard.training.settings import settings_from


def evaluate_pictures(folder: Path, options: PictureOptions) -> dict[str, Any]:
    """Scores, the confusion matrix, and precision and recall of each class, as plain values."""
    opened = open_picture_classifier(folder)
    pictures = choose_pictures(opened, options)
    found = judge_pictures(opened.model, pictures, opened.scaling, opened.size, opened.crop)
    result = {"task": "picture", "pictures": len(pictures), "scores": found.scores}
    return result | describe_confusion(found.confusion, opened.classes)


def choose_pictures(opened: PictureClassifier, options: PictureOptions) -> PictureSet:
    """The pictures to judge by, with the numbers that the classes have in the model."""
    settings = settings_from(PictureSettings, opened.facts.get("settings") or {})
    path = Path(options.data or settings.data)
    if not options.data and not path.exists():
        raise DataError(f"the pictures that this model was trained on are not here ({path}); name some with --data")
    if not options.data and options.part == "validation":
        return find_parts(settings).validation
    parts = find_pictures(path)
    pictures = parts.get(options.part, parts["train"] if options.data and len(parts) == 1 else None)
    if pictures is None:
        raise DataError(f"{path} has no part {options.part!r}, but {', '.join(parts)}; name others with --data")
    unknown = next((name for name in pictures.classes if name not in opened.classes), None)
    if unknown is not None:
        raise DataError(f"{path} has the class {unknown!r}, which the model does not know; leave its pictures out")
    return share_classes(pictures, tuple(opened.classes))


def report_pictures(result: dict[str, Any]) -> str:
    """The result of an evaluation as a terminal shows it."""
    scores = "  ".join(f"{name.replace('_', '-')} {value:.4g}" for name, value in result["scores"].items())
    table = confusion_table(result["confusion"], result["classes"])
    return f"{result['pictures']:,} pictures  {scores}\n\n{table}"
