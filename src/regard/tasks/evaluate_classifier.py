"""The scores of a trained classifier, on what was held out of its training texts or on any labelled texts."""

from pathlib import Path
from typing import Any

from regard.data.label_survey import TEST, VALIDATION, empty_error
from regard.data.labelled import LabelledTexts, labelled_paths, split_names
from regard.errors import ConfigError, DataError
from regard.tasks.classification_scores import confusion_table, describe_confusion, judge_examples
from regard.tasks.classify import ClassifyOptions, ClassifySettings
from regard.tasks.explanation_agreement import agreement_sentence, measure_agreement
from regard.tasks.labelled_examples import EncodedTexts, encode_labelled, tell_cut
from regard.tasks.labelled_parts import find_texts
from regard.tasks.trained_classifier import TrainedClassifier, open_classifier
from regard.training.settings import settings_from


def evaluate_classifier(folder: Path, options: ClassifyOptions) -> dict[str, Any]:
    """Scores, the confusion matrix, and precision and recall of each class, as plain values."""
    opened = open_classifier(folder)
    encoded, notices = read_texts(opened, options)
    found = judge_examples(opened.model, encoded.examples, len(opened.classes))
    result = {"task": "classify", "texts": len(encoded.examples), "scores": found.scores}
    result |= describe_confusion(found.confusion, opened.classes)
    if options.explain:
        rows = encoded.examples.sequences["text"]
        result["explain"] = measure_agreement(opened, rows, texts=options.explain_texts).to_json()
    return result | {"notices": [*notices, *tell_cut(encoded.cut, opened.max_length)]}


def read_texts(opened: TrainedClassifier, options: ClassifyOptions) -> tuple[EncodedTexts, list[str]]:
    """The texts to judge by, those that are named or a part that was held out, and what is worth a sentence."""
    settings = settings_from(ClassifySettings, opened.facts.get("settings") or {})
    if options.data:
        names = ("text_field", "label_field")
        fields: dict[str, Any] = {name: getattr(options, name) or getattr(settings, name) for name in names}
        fields["label_names"] = split_names(settings.label_names)
        texts = LabelledTexts(labelled_paths(options.data), **fields)
        encoded = encode_labelled(texts, opened.tokens, opened.classes, max_length=opened.max_length)[0]
        if not len(encoded.examples):
            raise empty_error(texts)
        return encoded, texts.notices
    named = ",".join(filter(None, (settings.data, settings.validation)))
    missing = next((one for one in named.split(",") if not Path(one.strip()).exists()), None)
    if missing is not None:
        raise DataError(f"the texts that this model was trained on are not here ({missing}); name some with --data")
    if options.part == "test" and not settings.test_size:
        raise ConfigError("this run held out no test set (test_size is 0); leave part out, or name texts with --data")
    found = find_texts(settings)
    if options.part == "validation" and found.validation is not None:
        texts = found.validation
        return encode_labelled(texts, opened.tokens, opened.classes, max_length=opened.max_length)[0], texts.notices
    parts = encode_labelled(found.texts, opened.tokens, opened.classes, max_length=opened.max_length, parts=found.parts)
    return parts[VALIDATION if options.part == "validation" else TEST], found.notices


def report_classifier(result: dict[str, Any]) -> str:
    """The result of an evaluation as a terminal shows it."""
    scores = "  ".join(f"{name.replace('_', '-')} {value:.4g}" for name, value in result["scores"].items())
    lines = [*result["notices"], f"{result['texts']:,} texts  {scores}", ""]
    lines.append(confusion_table(result["confusion"], result["classes"]))
    if "explain" in result:
        lines += ["", agreement_sentence(result["explain"])]
    return "\n".join(lines)
