"""What attention is for: a network that must put everything into one vector fails on what is long."""

from pathlib import Path

import torch

from regard.models import store
from regard.tasks.sequences import Reverse, SequenceSettings
from regard.tasks.writing import write
from regard.training.fit import fit

LONG = 10  # symbols


def share_right(attention: str, folder: Path) -> tuple[float, float]:
    """Sequences that come out reversed without a fault: short ones, and long ones."""
    torch.set_num_threads(1)
    settings = SequenceSettings(
        model="recurrent", attention=attention, steps=300, examples=6000, symbols=8, shortest=2, most=12,
        validation_size=200, batch_tokens=700, width=48, layers=1, warmup_steps=30, lr=8e-3, dropout=0.0,
        label_smoothing=0.0, eval_every=300, save_every=300,
    )  # fmt: skip
    fit(Reverse(), settings, folder)
    model, work = store.read(folder / "model"), Reverse().prepare(settings, folder)
    held = [work.validation[i] for i in range(len(work.validation))]
    right = [got.ids == one.target[:-1] for got, one in zip(write(model, [one.source for one in held]), held)]
    long = [len(one.source) - 1 >= LONG for one in held]
    shares = []
    for wanted in (False, True):
        chosen = [ok for ok, is_long in zip(right, long) if is_long == wanted]
        assert len(chosen) > 20
        shares.append(sum(chosen) / len(chosen))
    return shares[0], shares[1]


def test_attention_beats_the_fixed_context_on_long_sequences(tmp_path):
    fixed_short, fixed_long = share_right("none", tmp_path / "none")
    short, long = share_right("additive", tmp_path / "additive")
    assert long > 0.9
    assert fixed_long < 0.5 * long
    assert short - fixed_short < long - fixed_long  # what is short, one vector can hold
