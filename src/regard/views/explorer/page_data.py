"""What a page says beside its numbers, because the browser cannot find it out, and how to write it safely."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import torch

from regard.trace.file.write import text
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run
from regard.views.explorer.answer.info import TokenNumbers
from regard.views.explorer.answer.layer_answers import answer_measures, answer_proof
from regard.views.explorer.rounding import RoundingError

MEASURED = 1 << 23  # weights of a run up to which its measures are made here; of a larger one the browser makes them
UNSAFE = {ord(one): f"\\u{ord(one):04x}" for one in "<>&"}


@torch.no_grad()
def describe_run(run: Run, info: Mapping[str, Any], error: RoundingError) -> dict[str, Any]:
    """`KnownOfTrace` of trace/local/source.ts: proofs, measures of a small run, the error of rounding and its rows."""
    facts: dict[str, Any] = {
        "info": {**info, "error": error.largest},
        "sampled": 0 if error.all else error.rows,
        "proofs": [dict(answer_proof(layer).facts) for layer in run.layers],
    }
    if sum(math.prod(layer.weights.shape) for layer in run.layers) <= MEASURED:
        facts["measures"] = [measures_of(layer) for layer in run.layers]
    torn = find_torn_tokens(run)
    return facts | ({"tokens": torn} if torn else {})


def measures_of(layer: Layer) -> list[dict[str, Any]]:
    """The measures of each batch entry, as a server answers them: a list by heads for every name."""
    return [dict(answer_measures(layer, entry).facts) for entry in range(layer.batch)]


def find_torn_tokens(run: Run) -> dict[str, dict[str, Any]]:
    """Tokens with half of a surrogate pair, which a file cannot hold but a page can, by their number in the file."""
    return {
        str(number): {"shown": list(one.shown), "text": one.text}
        for one, number in TokenNumbers(run).numbers.items()
        if any(text(part) != part for part in (*one.shown, one.text or ""))
    }


def dump_safe_json(given: Any) -> str:
    r"""JSON that ends no element of a page and that no encoding can hurt: ASCII, without `<`, `>` and `&`.

    >>> dump_safe_json(["</script>", "\ud83d", float("nan")])
    '["\\u003c/script\\u003e","\\ud83d",null]'
    """
    return json.dumps(replace_nonfinite(given), separators=(",", ":"), allow_nan=False).translate(UNSAFE)


def replace_nonfinite(given: Any) -> Any:
    """The same with None for what is no number of JSON."""
    if isinstance(given, Mapping):
        return {key: replace_nonfinite(value) for key, value in given.items()}
    if isinstance(given, list | tuple):
        return [replace_nonfinite(value) for value in given]
    return None if isinstance(given, float) and not math.isfinite(given) else given


def escape_script(script: str) -> str:
    r"""A script that a page can hold: `</script` and `<!--`, which only strings of it can have, are written otherwise.

    >>> escape_script('a = "</SCRIPT>"; b = "<!--"')
    'a = "<\\/SCRIPT>"; b = "\\x3c!--"'
    """
    script = re.sub(r"</(?=script)", r"<\\/", script, flags=re.IGNORECASE)
    return script.replace("<!--", r"\x3c!--")
