"""docs/survey.md: what came out for each model of each library, made from the rows."""

import re
from collections import Counter

from tests.trace.survey.libraries import LIBRARIES
from tests.trace.survey.library import Row
from tests.trace.survey.verdict import NONE, RIGHT, SAID, SILENT, UNBUILT, WRONG, tally, verdict

HEAD = """\
# A survey of models that attend

Each model below is built with small settings of its library and sharp random weights, fed a batch of 3 in which all
sizes differ, and watched. The judge is a recorder that shares nothing with the watch: a dispatch mode that follows
every softmax, and other rows that add up to one, until it meets values (`tests/trace/survey/recorder.py`).

- **exact**: how many maps have the numbers of an attention that the recorder saw (to 2e-4) and are confirmed by
  `verify()`, of all that are shown or were seen.
- **axes**: *right* where another entry of the batch changes only the maps that are said to be that entry's; *mixed*
  where it changes these, and others that look at it; *unknown* where the watch says that batch and heads cannot be told
  apart; – where the model does not tell entries apart.
- **names**: *text* where the tokens named are the ids that were given, *patches* where rows are places of a picture,
  *numbered* where they are neither, – where the watch says that it does not know.
- **complete**: *yes* where the trace says that nothing ran unheard; else what it names.
- **refused**: what has no map, or is unverified, and why, in the words of the watch.

A row is *right* if all of the attention that the recorder saw is exact and verified, on the right axes, under the right
names; what it cannot see and the trace names as missed, as linear attention, has no such map.
[The tested architectures](architectures.md) are held to more, by hand. `tests/trace/test_survey.py` computes forty rows
of this page in `make test`, and all of them in `make check-slow`, where it can write the page anew.
"""
COLUMNS = "| model | class | exact | axes | names | complete | refused and why |\n|---|---|---|---|---|---|---|"


def page(rows: dict[str, dict[str, Row]]) -> str:
    """The whole page in Markdown, from the rows of each library."""
    parts = [HEAD, summary(rows)]
    for key, library in LIBRARIES.items():
        found = rows.get(key, {})
        names = library.names()
        parts.append(f"## {library.title}\n")
        parts.append(table({name: found[name] for name in names if name in found}))
        parts.append(others({name: found[name] for name in names if name in found}))
        if later := [f"`{name}`" for name in names if name not in found]:
            parts.append(f"Not looked at yet: {', '.join(later)}.\n")
    return "\n".join(parts).rstrip() + "\n"


def summary(rows: dict[str, dict[str, Row]]) -> str:
    lines = [
        "| library | looked at | attend | right | of these complete | partly shown, and said | verified and wrong | "
        "missed in silence | no attention ran | not built |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key, library in LIBRARIES.items():
        found = tally(rows.get(key, {}).values())
        attend = found[RIGHT] + found[SAID] + found[WRONG] + found[SILENT]
        share = f"{found[RIGHT]} ({found[RIGHT] / max(1, attend):.1%})"
        numbers = [len(rows.get(key, {})), attend, share, found["whole"], found[SAID], found[WRONG], found[SILENT]]
        lines.append(f"| {library.title} | {' | '.join(map(str, [*numbers, found[NONE], found[UNBUILT]]))} |")
    return "\n".join(lines) + "\n"


def table(rows: dict[str, Row]) -> str:
    """Those that attend, a line each."""
    lines = [line(name, row) for name, row in rows.items() if verdict(row) not in (NONE, UNBUILT)]
    return "\n".join([COLUMNS, *lines]) + "\n"


def others(rows: dict[str, Row]) -> str:
    """Those without attention, and those that could not be built, by reason."""
    lines = []
    none = [name for name, row in rows.items() if verdict(row) == NONE]
    if none:
        lines.append(f"No attention with a map ran in {', '.join(f'`{name}`' for name in none)}, and none is shown.\n")
    reasons: dict[str, list[str]] = {}
    for name, row in rows.items():
        if verdict(row) == UNBUILT:
            reasons.setdefault(reason(row), []).append(f"`{name}`")
    if reasons:
        lines.append("Not built or not fed, with the last word of the library:\n")
        lines += [f"- {', '.join(names)}: {why}" for why, names in reasons.items()]
        lines.append("")
    return "\n".join(lines)


def reason(row: Row) -> str:
    """Why there is no model to look at, in one line."""
    why = row.get("crash") or row.get("why") or "it says nothing of what it is fed"
    why = re.sub(r"^\d: ", "", why.strip().split("\n")[0])
    why = "still more than 60 million parameters" if "parameters" in why and "still" in why else why
    return safe(why[:120])


def line(name: str, row: Row) -> str:
    """One model."""
    layers = row["layers"]
    good = sum(layer["exact"] and layer["status"] == "verified" for layer in layers)
    exact = f"{good} of {max(len(layers), row['attention'])}"
    exact += "" if row["same"] else ", OUTPUTS DIFFER"
    doubtful = sorted({layer["why"] for layer in layers if layer["status"] not in ("verified", "refused")})
    refused = [*dict.fromkeys([*row["refused"].values(), *doubtful])]
    said = safe(refused[0]) + (f" (and {len(refused) - 1} more)" if len(refused) > 1 else "") if refused else "–"
    if not layers and row["raised"] and said == "–":
        said = safe(row["raised"][:160])
    missed = [one.partition(" was ")[0] for one in row["missed"]]
    complete = "yes" if not missed else f"no: {missed[0]}" + (f" and {len(missed) - 1} more" if len(missed) > 1 else "")
    complete = f"{complete}, SILENT: {row['silent'][0]}" if row["silent"] else complete
    cells = [f"`{name}`", f"`{row['class']}`", exact, axes_of(layers), names_of(layers), safe(complete), said]
    return f"| {' | '.join(cells)} |"


def axes_of(layers: list[Row]) -> str:
    """The axes of all layers in a word or two."""
    words = Counter(word(layer.get("axes", "")) for layer in layers)
    words.pop("", None)
    return ", ".join(words) if words else "–"


def word(axes: str) -> str:
    return "WRONG" if axes.startswith("wrong") else axes if axes in ("right", "unknown", "mixed") else ""


def names_of(layers: list[Row]) -> str:
    """What the rows and columns are called."""
    sides = dict.fromkeys(side for layer in layers for side in layer.get("names", "unknown").split(" / "))
    words = dict.fromkeys(name_word(side) for side in sides)
    return ", ".join(one for one in words if one) or "–"


def name_word(side: str) -> str:
    if side.startswith("other"):
        return "WRONG"
    return {"unknown": "", "patches": "patches"}.get(side, "numbered" if side.startswith("labels") else "text")


def safe(text: str) -> str:
    """Text that breaks no table."""
    return text.replace("\n", " ").replace("|", "/").strip()
