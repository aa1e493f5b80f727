"""What does the engine cost beside the arithmetic? A run against a bare loop over the same batches, and a checkpoint.

The model has 2.6 million weights (4 + 4 layers, width 128), the sentences come from the built-in grammar.

    python benchmarks/engine_overhead.py
"""

import tempfile
import time
from pathlib import Path

from tools.measure import Row, report

STEPS = 30
INTERVAL = 500  # updates between two checkpoints, as they come


def settings():
    from regard.tasks.translate import TranslateSettings

    return TranslateSettings(
        steps=STEPS, width=128, layers=4, hidden=256, examples=4000, tokens=3000, vocabulary=1600, dropout=0.1,
        validate_every=10 * STEPS, save_every=10 * STEPS, log_every=10,
    )  # fmt: skip


def bare(work) -> float:
    """Seconds of an update of a plain loop: collate, forward, backward, clip, step."""
    import torch

    optimizer = torch.optim.AdamW(work.model.parameters(), lr=1e-4, fused=True)
    batches = [*work.batches(0), *work.batches(1)][:STEPS]
    start = time.perf_counter()
    for indices in batches:
        work.model.train()
        optimizer.zero_grad(set_to_none=True)
        found = work.loss(work.model, work.collate(indices))
        (found.sum / work.weight(indices)).backward()
        torch.nn.utils.clip_grad_norm_(work.model.parameters(), 1.0)
        optimizer.step()
    return (time.perf_counter() - start) / len(batches)


def engine(folder: Path) -> tuple[float, float]:
    """Seconds of an update of the engine, and of one checkpoint."""
    from regard.tasks.translate import Translate
    from regard.training.fit import Event, fit

    times: dict[str, float] = {}

    def tell(event: Event) -> None:
        times[f"{event.kind} {event.step}"] = time.perf_counter()

    fit(Translate(), settings(), folder, tell=tell)
    update = (times[f"step {STEPS - 1}"] - times["step 1"]) / (STEPS - 2)
    return update, times[f"checkpoint {STEPS}"] - times[f"validation {STEPS}"]


def main() -> int:
    from regard.tasks.translate import Translate

    best = [1e9, 1e9, 1e9]
    with tempfile.TemporaryDirectory() as made:
        work = Translate().prepare(settings(), Path(made))
        for turn in range(4):
            plain, (update, save) = bare(work), engine(Path(made) / str(turn))
            best = [min(best[0], plain), min(best[1], update), min(best[2], save)]
    plain, update, save = best
    return report(
        "engine_overhead",
        [
            Row("an update of the engine / of a bare loop", update / plain, 1.05),
            Row("a checkpoint / the updates between two", save / (INTERVAL * update), 0.05),
        ],
    )


if __name__ == "__main__":
    raise SystemExit(main())
