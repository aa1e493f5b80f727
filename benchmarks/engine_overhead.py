"""What does the engine cost beside the arithmetic? A run against a bare loop over the same batches, and a checkpoint.

The model has 2.6 million weights (4 + 4 layers, width 128), the sentences come from the built-in grammar.

    python benchmarks/engine_overhead.py
"""

import tempfile
import time
from itertools import pairwise
from pathlib import Path

from tools.measure import Row, report

STEPS = 30
INTERVAL = 500  # updates between two checkpoints, as they come


def settings():
    from regard.tasks.translate import TranslateSettings

    return TranslateSettings(
        steps=STEPS, width=128, layers=4, hidden=256, examples=4000, batch_tokens=3000, vocab_size=1600, dropout=0.1,
        eval_every=10 * STEPS, save_every=10 * STEPS, log_every=10,
    )  # fmt: skip


def bare(work) -> list[float]:
    """Seconds of each update of a plain loop: collate, forward, backward, clip, step."""
    import torch

    optimizer = torch.optim.AdamW(work.model.parameters(), lr=1e-4, fused=True)
    batches = [*work.batches(0), *work.batches(1)][:STEPS]
    ends = []
    for indices in batches:
        work.model.train()
        optimizer.zero_grad(set_to_none=True)
        found = work.loss(work.model, work.collate(indices))
        (found.sum / work.weight(indices)).backward()
        torch.nn.utils.clip_grad_norm_(work.model.parameters(), 1.0)
        optimizer.step()
        ends.append(time.perf_counter())
    return [after - before for before, after in pairwise(ends)]


def engine(folder: Path) -> tuple[list[float], float]:
    """Seconds of each update of the engine, and of one checkpoint."""
    from regard.tasks.translate import Translate
    from regard.training.fit import Event, fit

    times: dict[str, float] = {}

    def tell(event: Event) -> None:
        times[f"{event.kind} {event.step}"] = time.perf_counter()

    fit(Translate(), settings(), folder, tell=tell)
    ends = [times[f"step {step}"] for step in range(1, STEPS + 1)]
    return [after - before for before, after in pairwise(ends)], times[f"checkpoint {STEPS}"] - times[
        f"validation {STEPS}"
    ]


def main() -> int:
    from regard.tasks.translate import Translate

    with tempfile.TemporaryDirectory() as made:
        work = Translate().prepare(settings(), Path(made))
        turns = [(bare(work), *engine(Path(made) / str(turn))) for turn in range(5)]
    # Every update at its best: a busy moment touches one of them, not the sum.
    plain, update = (sum(min(times) for times in zip(*(turn[which] for turn in turns))) for which in (0, 1))
    save = min(turn[2] for turn in turns)
    return report(
        "engine_overhead",
        [
            Row("an update of the engine / of a bare loop", update / plain, 1.05),
            Row("a checkpoint / the updates between two", save / (INTERVAL * update / (STEPS - 1)), 0.05),
        ],
    )


if __name__ == "__main__":
    raise SystemExit(main())
