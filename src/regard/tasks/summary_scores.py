"""Scores of a summariser: ROUGE against the summaries and against what others wrote, and how much of it is new."""

from pathlib import Path
from typing import Any

from regard.data.lines import name_lines
from regard.tasks.novelty import novel_ngrams
from regard.tasks.rouge import load_rouge, score_rouge, sign_rouge
from regard.tasks.summarise import SummariseOptions, read_named, read_parts, spread_out
from regard.tasks.text_summariser import open_summariser


def evaluate_summariser(folder: Path, options: SummariseOptions) -> dict[str, Any]:
    """Scores on a file, or on the validation data of the training.

    `annotations` is there where the file has further summaries: the best of them for each text, and the mean over
    them, each alone; only texts that have some are counted. `novel` are the shares of n-grams, n = 1 … 4, that the
    source lacks: of what was written, and of the summaries that were wanted.
    """
    load_rouge()  # before anything is written
    summariser = open_summariser(folder)
    settings = summariser.settings
    examples = read_named(options.data, settings) if options.data else read_parts(settings).validation
    asked = spread_out(examples, options.count or len(examples))
    texts = [one.text for one in asked]
    made = summariser.summarise(texts, beams=options.beams)
    written = [one.text for one in made]
    limit = settings.max_source
    result: dict[str, Any] = {
        "task": "summarise",
        "texts": len(asked),
        "skipped": list(examples.skipped) if options.data else [],
        "cut": sum(one.tokens > limit for one in made),
        "max_source": limit,
        "beams": options.beams,
        "scores": score_rouge(written, [[one.summary] for one in asked])._asdict(),
        "signature": sign_rouge(),
        "novel": {
            "written": novel_ngrams(texts, written),
            "wanted": novel_ngrams(texts, [one.summary for one in asked]),
        },
        "samples": [
            {"text": one.text[:200], "written": text, "wanted": one.summary}
            for one, text in zip(asked[: options.samples], written)
        ],
    }
    several = [(text, one.references) for text, one in zip(written, asked) if one.references]
    if several:
        each = [(text, [other]) for text, others in several for other in others]
        result["annotations"] = {
            "texts": len(several),
            "best": score_rouge(*zip(*several))._asdict(),
            "mean": score_rouge(*zip(*each))._asdict(),
        }
    return result


def report_scores(result: dict[str, Any]) -> str:
    """Samples, scores and how much is new, as a terminal shows them."""
    lines = [
        f"{' '.join(one['text'].split())[:100]}…\n  → {one['written']}\n  = {one['wanted']}"
        for one in result["samples"]
    ]
    beams = "greedy" if result["beams"] == 1 else f"{result['beams']} beams"
    cut = f", {result['cut']:,} of them cut to {result['max_source']} tokens" if result["cut"] else ""
    lines.append(f"\n{format_rouge(result['scores'])}  ({result['texts']:,} texts{cut}, {beams})")
    if result.get("skipped"):
        lines.append(f"  left out: {name_lines(result['skipped'])} without a text or a summary")
    others = result.get("annotations")
    if others:
        lines.append(f"{format_rouge(others['best'])}  (best of the annotations)")
        lines.append(f"{format_rouge(others['mean'])}  (mean over the annotations)")
    lines.append(f"  {result['signature']}")
    for name, shares in result["novel"].items():
        listed = "  ".join(f"{n}: {share:.1%}" for n, share in enumerate(shares, 1))
        lines.append(f"new n-grams, not in the text, {name}:  {listed}")
    return "\n".join(lines)


def format_rouge(scores: dict[str, float]) -> str:
    """Three F-measures.

    >>> format_rouge({"rouge1": 18.037, "rouge2": 7.5, "rougeL": 17.2})
    'ROUGE-1 18.04  ROUGE-2 7.50  ROUGE-L 17.20'
    """
    return "  ".join(f"ROUGE-{name.removeprefix('rouge')} {value:.2f}" for name, value in scores.items())
