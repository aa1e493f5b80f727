"""The model of two attention layers that learns to repeat: `python -m regard.training.induction --out folder`.

It takes two heads, one after the other: one that tells each token which came before it, and one that looks for a
token that came after the present one (Elhage et al. 2021; Olsson et al. 2022, arXiv 2209.11895).
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import torch.nn.functional as F
import typer
from torch import nn

from regard.data import repeats
from regard.models import GPT, GPTConfig, store
from regard.training.scores import accuracy, head_scores

# Attention alone, and a head of its own: where the embeddings are the head, a token that looks at itself says itself,
# and that has to be unlearned first.
SIZES = GPTConfig(
    vocabulary=len(repeats.VOCABULARY),
    width=64,
    heads=4,
    layers=2,
    context=256,
    positions="rotary",
    hidden=0,
    tied=False,
)
ABOUT = (
    "Two layers of attention, nothing else, that continue what repeats: a previous-token head, then induction heads."
)
Tell = Callable[[int, float], None]


@dataclass(frozen=True)
class Plan:
    """How a model is trained."""

    steps: int = 1200  # optimizer steps
    tokens: int = 2048  # of a step
    rate: float = 3e-3  # learning rate after warming up
    warm: int = 100  # steps until it is reached; in the last third it falls to 0
    seed: int = 0  # of the first weights and of the sequences

    def rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        return self.rate * min(1.0, (step + 1) / self.warm, 3 * (self.steps - step) / self.steps)

    def length_at(self, step: int, context: int) -> int:
        """How long the sequences of a step are: a quarter of the context, then half, then all of it.

        In long ones a repeat is so far away that two heads which have found nothing yet do not find it.
        """
        return max(4, context >> (2 - 3 * step // self.steps))


PLAN = Plan()


def train(plan: Plan = PLAN, sizes: GPTConfig = SIZES, *, tell: Tell | None = None) -> GPT:
    """A model trained on sequences that repeat, in eval mode: on one machine a function of its arguments alone.

    The loss is that of the tokens that can be known: the others are noise, and hide at first the little that there
    is to find. `tell(step, loss)` hears of every step.

    >>> sizes = GPTConfig(140, width=8, heads=2, layers=2, context=16)
    >>> train(Plan(steps=2, tokens=64), sizes).blocks[1].attention.heads
    2
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        model = sizes.build()
        optimizer = torch.optim.AdamW(model.parameters(), lr=plan.rate, betas=(0.9, 0.98), weight_decay=0.01)
        read = 0  # sequences
        for step in range(plan.steps):
            optimizer.param_groups[0]["lr"] = plan.rate_at(step)
            length = plan.length_at(step, sizes.context)
            rows = range(read, read + max(1, plan.tokens // length))
            read = rows.stop
            ids, known = repeats.batch(rows, length=length, vocabulary=sizes.vocabulary, seed=plan.seed)  # b t each
            logits = model(ids[:, :-1])  # b t n
            lost = F.cross_entropy(logits[known[:, 1:]], ids[:, 1:][known[:, 1:]], reduction="sum")
            loss = lost / known.sum().clamp(min=1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if tell is not None:
                tell(step, loss.item())
    return model.eval()


def evaluate(model: nn.Module, sizes: GPTConfig = SIZES) -> dict[str, Any]:
    """The scores of a model on sequences that training never shows; see `accuracy` and `head_scores`."""
    length, vocabulary = sizes.context, sizes.vocabulary
    return {
        "accuracy": accuracy(model, length=length, vocabulary=vocabulary),
        "accuracy_clean": accuracy(model, length=length, vocabulary=vocabulary, clean=True),
        **head_scores(model, period=min(50, length // 2), vocabulary=vocabulary),
    }


def make(out: Path, plan: Plan = PLAN, sizes: GPTConfig = SIZES, *, tell: Tell | None = None) -> dict[str, Any]:
    """Train, score and write a model; its manifest comes back."""
    model = train(plan, sizes, tell=tell)
    where = out.name if out.is_absolute() else out.as_posix()  # where somebody's folders lie is nobody's business
    facts = {
        "name": "induction",
        "about": ABOUT,
        "command": f"python -m regard.training.induction --out {where} --steps {plan.steps} --seed {plan.seed}",
        "training": asdict(plan),
        "scores": evaluate(model, sizes),
        "vocabulary": list(repeats.VOCABULARY),
    }
    return store.write(out, model, sizes, facts)


def command(
    out: Annotated[Path, typer.Option(help="Folder for the weights and their manifest.")],
    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps.")] = PLAN.steps,
    seed: Annotated[int, typer.Option(min=0, help="Of the first weights and of the sequences.")] = PLAN.seed,
) -> None:
    """Train a small GPT to continue what repeats, and write it with its scores."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    torch.set_num_threads(1)  # sums in one order, whatever the machine has; such small products gain nothing from two
    columns = TextColumn("loss {task.fields[loss]:.3f}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, TextColumn("{task.fields[rate]:.0f} steps/s")) as bar:
        task = bar.add_task("", total=steps, loss=0.0, rate=0.0)

        def tell(step: int, loss: float) -> None:
            bar.update(task, completed=step + 1, loss=loss, rate=bar.tasks[0].speed or 0.0)

        made = make(out, Plan(steps=steps, seed=seed), tell=tell)
    scores = made["scores"]
    typer.echo(
        f"knows {scores['accuracy']:.2%} of what can be known; layer 0 looks back by up to "
        f"{max(scores['previous'][0]):.2f}, layer 1 finds the repeat by up to {max(scores['induction'][1]):.2f}. "
        f"Open it: regard.models.folder.open_model({str(out)!r})"
    )


if __name__ == "__main__":
    typer.run(command)
