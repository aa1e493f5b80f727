"""docs/survey.md: what came out for each model of each library, made from the rows."""

import re
from collections import Counter
from typing import NamedTuple

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


class Entries(NamedTuple):
    """What the section of a library says of its models, by their names."""

    lines: dict[str, str]  # of those that attend
    none: set[str]  # those in which no attention ran
    unbuilt: dict[str, str]  # why there was nothing to look at

    def __or__(self, others: "Entries") -> "Entries":  # type: ignore[override]
        return Entries(self.lines | others.lines, self.none | others.none, self.unbuilt | others.unbuilt)


def page(rows: dict[str, dict[str, Row]]) -> str:
    """The whole page in Markdown, from the rows of each library."""
    parts = [HEAD, summary({key: numbers(rows.get(key, {})) for key in LIBRARIES})]
    for key, library in LIBRARIES.items():
        parts.append(write_section(library.title, library.names(), entries_of(rows.get(key, {}))))
    return "\n".join(parts).rstrip() + "\n"


def add_rows(text: str, rows: dict[str, dict[str, Row]]) -> str:
    """The page with rows of models that it has not looked at yet; what it says of the others stays as it is.

    Of a model that was looked at the page holds no row, but its line: to look at it again takes the whole page.
    """
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL))
    parts, counts = [], {}
    for key, library in LIBRARIES.items():
        known = read_section(sections[library.title])
        seen = {*known.lines, *known.none, *known.unbuilt}
        new = {name: row for name, row in rows.get(key, {}).items() if name not in seen}
        parts.append(write_section(library.title, library.names(), known | entries_of(new)))
        counts[key] = read_numbers(text, library.title) + numbers(new)
    return "\n".join([HEAD, summary(counts), *parts]).rstrip() + "\n"


COUNTED = ("looked at", RIGHT, "whole", SAID, WRONG, SILENT, NONE, UNBUILT)


def numbers(rows: dict[str, Row]) -> Counter[str]:
    """How many of a library's models came to what."""
    return tally(rows.values()) + Counter({"looked at": len(rows)})


def read_numbers(text: str, title: str) -> Counter[str]:
    """The same, from the line of the summary."""
    found = re.search(rf"^\| {title} \| (.*) \|$", text, flags=re.MULTILINE)
    assert found is not None, title
    looked, _, *rest = [int(cell.partition(" ")[0]) for cell in found[1].split(" | ")]
    return Counter(dict(zip(COUNTED, [looked, *rest], strict=True)))


def summary(counts: dict[str, Counter[str]]) -> str:
    lines = [
        "| library | looked at | attend | right | of these complete | partly shown, and said | verified and wrong | "
        "missed in silence | no attention ran | not built |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key, library in LIBRARIES.items():
        found = counts[key]
        attend = found[RIGHT] + found[SAID] + found[WRONG] + found[SILENT]
        share = f"{found[RIGHT]} ({found[RIGHT] / max(1, attend):.1%})"
        cells = [found["looked at"], attend, share, *(found[word] for word in COUNTED[2:])]
        lines.append(f"| {library.title} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def entries_of(rows: dict[str, Row]) -> Entries:
    words = {name: verdict(row) for name, row in rows.items()}
    return Entries(
        {name: line(name, row) for name, row in rows.items() if words[name] not in (NONE, UNBUILT)},
        {name for name in rows if words[name] == NONE},
        {name: reason(row) for name, row in rows.items() if words[name] == UNBUILT},
    )


def read_section(text: str) -> Entries:
    """What a section that was written says."""
    found = Entries({}, set(), {})
    for one in text.splitlines():
        if one.startswith("| `"):
            found.lines[names_in(one)[0]] = one
        elif one.startswith(NOTHING_RAN):
            found.none.update(names_in(one))
        elif one.startswith("- `"):
            some = re.match(r"- ((?:`[^`]+`, )*`[^`]+`): (.*)", one)
            assert some is not None, one
            found.unbuilt.update(dict.fromkeys(names_in(some[1]), some[2]))
    return found


NOTHING_RAN = "No attention with a map ran in "


def names_in(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def write_section(title: str, names: list[str], entries: Entries) -> str:
    """A library: those that attend, those that do not, those that were not built by reason, and those that are left."""
    lines = [entries.lines[name] for name in names if name in entries.lines]
    parts = [f"## {title}\n", "\n".join([COLUMNS, *lines]) + "\n", others(names, entries)]
    seen = {*entries.lines, *entries.none, *entries.unbuilt}
    if later := [f"`{name}`" for name in names if name not in seen]:
        parts.append(f"Not looked at yet: {', '.join(later)}.\n")
    return "\n".join(parts)


def others(names: list[str], entries: Entries) -> str:
    """Those without attention, and those that could not be built, by reason."""
    lines = []
    none = [f"`{name}`" for name in names if name in entries.none]
    if none:
        lines.append(f"{NOTHING_RAN}{', '.join(none)}, and none is shown.\n")
    reasons: dict[str, list[str]] = {}
    for name in (name for name in names if name in entries.unbuilt):
        reasons.setdefault(entries.unbuilt[name], []).append(f"`{name}`")
    if reasons:
        lines.append("Not built or not fed, with the last word of the library:\n")
        lines += [f"- {', '.join(some)}: {why}" for why, some in reasons.items()]
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
