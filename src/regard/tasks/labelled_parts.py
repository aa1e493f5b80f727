"""Which labelled texts a run learns from and is judged by: one pass that counts labels and parts the texts."""

from typing import Any, NamedTuple

import numpy as np

from regard.data.label_survey import LabelSurvey
from regard.data.labelled import LabelledTexts, labelled_paths, split_names
from regard.tasks.labelled_examples import must_be_class


class LabelledParts(NamedTuple):
    """The texts that settings name: where they lie, what labels they have, and in which part each is."""

    texts: LabelledTexts
    survey: LabelSurvey
    parts: np.ndarray
    validation: LabelledTexts | None  # where a file of its own is named
    notices: list[str]


def find_texts(settings: Any) -> LabelledParts:
    """Go through the texts once: labels, parts, and what is worth a sentence."""
    fields: dict[str, Any] = {"text_field": settings.text_field, "label_field": settings.label_field}
    fields["label_names"] = split_names(settings.label_names)
    texts = LabelledTexts(labelled_paths(settings.data), **fields)
    survey = LabelSurvey.read(texts, seed=settings.seed)
    survey.must_teach()
    notices = [*texts.notices, *survey.rare()]
    if not settings.validation:
        size = settings.validation_size or survey.tenth
        return LabelledParts(texts, survey, survey.split(validation=size, test=settings.test_size), None, notices)
    held = LabelledTexts(labelled_paths(settings.validation), **fields)
    judged = LabelSurvey.read(held, seed=settings.seed)
    for label, place in judged.first.items():
        must_be_class(label, survey.counts, *place)
    notices += [*held.notices, *tell_common(survey, judged)]
    return LabelledParts(texts, survey, survey.split(validation=0, test=settings.test_size), held, notices)


def tell_common(survey: LabelSurvey, other: LabelSurvey) -> list[str]:
    """A sentence where texts of the validation are learned from, too."""
    common = int(np.isin(other.hashes, survey.hashes).sum())
    if not common:
        return []
    which = "1 text of the validation stands" if common == 1 else f"{common:,} texts of the validation stand"
    return [f"{which} in the training texts, too, so the scores flatter"]
