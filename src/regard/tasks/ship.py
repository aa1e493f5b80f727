"""A finished run as a model that comes with the package: small, scored, and with the command that made it."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from regard.data.grammar import sentences
from regard.models import store
from regard.models.kinds import kind_named
from regard.tasks.alignment import score_alignment
from regard.tasks.evaluate import evaluate, folder_of
from regard.tasks.text_translator import open_translator
from regard.training.run import RunFolder

PARTS = ("test", "unseen", "long")
MEASURED: dict[str, dict[str, Any]] = {"classify": {"explain": True}, "picture": {"part": "test"}}  # beyond the usual
COUNT = 300  # sentences of each part, greedy: what a test computes again in seconds


def score_parts(where: str) -> dict[str, dict[str, float]]:
    """BLEU, chrF and the share of sentences without a fault, on three parts of the grammar that were never seen."""
    found = {}
    for part in PARTS:
        one = evaluate(where, part=part, count=COUNT, beams=1, samples=0, alignment=False)
        found[part] = {key: round(float(one[key]), 4) for key in ("bleu", "chrf", "exact")}
    return found


def score_file(where: str, test: Path) -> dict[str, Any]:
    """BLEU and chrF on a file of sentences that were never seen, with five beams."""
    one = evaluate(where, data=str(test), samples=0, alignment=False)
    found = {key: round(float(one[key]), 4) for key in ("bleu", "chrf")}
    return {"test": found | {key: one[key] for key in ("sentences", "beams", "signatures")}}


def score_translator(folder: Path, test: Path | None = None) -> dict[str, Any]:
    """What a manifest says of a translator: its scores, and how well it aligns sentences of the grammar."""
    opened = open_translator(folder)
    aligned = score_alignment(opened, sentences(COUNT, seed=opened.facts["settings"]["seed"], part="test"))
    found = {"layer": aligned.layer, "error_rate": round(aligned.error_rate, 4)}
    return {
        "scores": score_parts(str(folder)) if test is None else score_file(str(folder), test),
        "alignment": found | {"straight_line": round(aligned.chance, 4)},
    }


def score_model(folder: Path, task: str, test: Path | None = None) -> dict[str, Any]:
    """What a manifest says of how good a model is, by the measures of its task; on a file where one is named."""
    if task == "translate":
        return score_translator(folder, test)
    options: dict[str, Any] = MEASURED.get(task, {})
    found = evaluate(str(folder), **options | ({} if test is None else {"data": str(test)}))
    more = {"explain": found["explain"]} if "explain" in found else {}  # how well its attention says what matters
    return {"scores": {name: round(float(value), 4) for name, value in found["scores"].items()}} | more


def name_commands(made: str, settings: dict[str, Any], steps: int) -> dict[str, str]:
    """The command that trains such a model, and what made this one where it was resumed to end after other `steps`.

    >>> name_commands("regard train write --steps 40 --seed 1", {"steps": 40, "patience": 0}, 30)["command"]
    'regard train write --seed 1 --steps 30'
    """
    if steps == settings["steps"] or settings["patience"]:  # as it began, or stopped where nothing improved any more
        return {"command": made}
    again = f"--steps {steps}"
    kept = re.sub(r" --steps[ =]\S+", "", made)
    return {"command": f"{kept} {again}", "made_by": f"{made}, stopped on the way and resumed with {again}"}


def ship(
    run: Path,
    out: Path,
    about: str,
    cards: Sequence[Path] = (),
    *,
    limits: str = "",
    test: Path | None = None,
    dtype: torch.dtype = torch.float16,
) -> dict[str, Any]:
    """The manifest, after the model of a run was written to `out` as `dtype`, with what `cards` say of its data.

    `cards` are JSON files: where the data come from, their licences, whom to name. `test` is a file to be scored on, in
    place of what the task itself keeps apart. `limits` says what the model cannot do.
    """
    folder, begun = folder_of(str(run)), RunFolder.open(run)
    told = store.describe(folder)
    environment = json.loads((begun.folder / "environment.json").read_text())
    made = environment.pop("command").replace(str(run), f"runs/{out.name}")  # where folders lie is nobody's business
    made = re.sub(r"^__main__\.py ", "regard ", made)  # python -m regard
    facts: dict[str, Any] = {
        key: told[key] for key in ("task", "settings", "weights_of", "steps", "classes", "pixels") if key in told
    }
    facts |= {"name": out.name, "about": about, **({"limits": limits} if limits else {}), "environment": environment}
    facts |= name_commands(made, told["settings"], told["steps"])
    for one in (json.loads(card.read_text(encoding="utf-8")) for card in cards):
        facts |= one | {"data": [*facts.get("data", []), *one["data"]]}
    files = {name: store.read_file(folder, name) for name in told.get("files", {})}
    model, config = store.read(folder), kind_named(told["kind"]).config_class(**told["config"])
    store.write(out, model, config, facts, files, dtype=dtype)
    facts |= score_model(out, told["task"], test)  # of what was stored, which is less precise
    return store.write(out, model, config, facts, files, dtype=dtype)


def command(
    run: Annotated[Path, typer.Argument(help="The folder of a run that came to its end.")],
    out: Annotated[Path, typer.Option(help="Where the model goes; its last part is its name.")],
    about: Annotated[str, typer.Option(help="What it is, in a sentence.")],
    card: Annotated[list[Path] | None, typer.Option(help="A JSON file that says where its data come from.")] = None,
    limits: Annotated[str, typer.Option(help="What it cannot do, in a sentence.")] = "",
    test: Annotated[Path | None, typer.Option(help="A file to score it on.")] = None,
    int8: Annotated[bool, typer.Option("--int8", help="Store matrices as int8: a quarter of float32.")] = False,
) -> None:
    """Write the model of a run with its scores, in half precision or as int8."""
    made = ship(run, out, about, card or [], limits=limits, test=test, dtype=torch.int8 if int8 else torch.float16)
    more = made.get("alignment") or made.get("explain") or ""
    typer.echo(f"{made['weights']['bytes'] / 1e6:.2f} MB; {made['scores']}; {more}".rstrip("; "))


if __name__ == "__main__":
    typer.run(command)
