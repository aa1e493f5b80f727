"""A finished run as a model that comes with the package: small, scored, and with the command that made it."""

import json
import re
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
COUNT = 300  # sentences of each part, greedy: what a test computes again in seconds


def score_parts(where: str) -> dict[str, dict[str, float]]:
    """BLEU, chrF and the share of sentences without a fault, on three parts of the grammar that were never seen."""
    found = {}
    for part in PARTS:
        one = evaluate(where, part=part, count=COUNT, beams=1, samples=0, alignment=False)
        found[part] = {key: round(float(one[key]), 4) for key in ("bleu", "chrf", "exact")}
    return found


def score_translator(folder: Path) -> dict[str, Any]:
    """What a manifest says of a translator: its scores, and how well it aligns."""
    opened = open_translator(folder)
    aligned = score_alignment(opened, sentences(COUNT, seed=opened.facts["settings"]["seed"], part="test"))
    found = {"layer": aligned.layer, "error_rate": round(aligned.error_rate, 4)}
    return {
        "scores": score_parts(str(folder)),
        "alignment": found | {"straight_line": round(aligned.chance, 4)},
    }


def score_model(folder: Path, task: str) -> dict[str, Any]:
    """What a manifest says of how good a model is, by the measures of its task."""
    if task == "translate":
        return score_translator(folder)
    return {"scores": {name: round(float(value), 4) for name, value in evaluate(str(folder))["scores"].items()}}


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


def ship(run: Path, out: Path, about: str, card: Path | None = None) -> dict[str, Any]:
    """The manifest, after the model of a run was written to `out` in half precision, with what `card` says of it.

    `card` is a JSON file: where the data come from, their licences, whom to name.
    """
    folder, begun = folder_of(str(run)), RunFolder.open(run)
    told = store.describe(folder)
    environment = json.loads((begun.folder / "environment.json").read_text())
    made = environment.pop("command").replace(str(run), f"runs/{out.name}")  # where folders lie is nobody's business
    facts = {key: told[key] for key in ("task", "settings", "weights_of", "steps")}
    facts |= {"name": out.name, "about": about, "environment": environment}
    facts |= name_commands(made, told["settings"], told["steps"])
    facts |= json.loads(card.read_text(encoding="utf-8")) if card else {}
    files = {name: store.read_file(folder, name) for name in told.get("files", {})}
    model, config = store.read(folder), kind_named(told["kind"]).config_class(**told["config"])
    store.write(out, model, config, facts, files, dtype=torch.float16)
    facts |= score_model(out, told["task"])  # of what was stored, which is less precise
    return store.write(out, model, config, facts, files, dtype=torch.float16)


def command(
    run: Annotated[Path, typer.Argument(help="The folder of a run that came to its end.")],
    out: Annotated[Path, typer.Option(help="Where the model goes; its last part is its name.")],
    about: Annotated[str, typer.Option(help="What it is, in a sentence.")],
    card: Annotated[Path | None, typer.Option(help="A JSON file that says where its data come from.")] = None,
) -> None:
    """Write the model of a run with its scores, in half precision."""
    made = ship(run, out, about, card)
    typer.echo(f"{made['weights']['bytes'] / 1e6:.2f} MB; {made['scores']}; {made.get('alignment', '')}".rstrip("; "))


if __name__ == "__main__":
    typer.run(command)
