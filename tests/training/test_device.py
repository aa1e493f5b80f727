import subprocess
import sys

import pytest
import torch

from regard.errors import ConfigError
from regard.training.device import choose_device, own_randomness, to_device
from regard.training.fit import fit
from regard.training.restore import put_optimizer
from tests.training.toy import Toy, ToySettings

META = torch.device("meta")


def test_auto_is_what_torch_says_the_machine_has():
    found = torch.accelerator.current_accelerator(check_available=True)
    assert choose_device("auto").type == ("cpu" if found is None else found.type)
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("named", ["abacus", "cuda:77", "xpu:3"])
def test_a_device_that_is_not_there_is_refused_in_one_sentence(named):
    with pytest.raises(
        ConfigError, match=rf"^device is '{named}', but this machine cannot compute there \(.*auto"
    ) as e:
        choose_device(named)
    assert "\n" not in str(e.value)


def test_every_tensor_of_a_batch_moves_and_the_rest_stays():
    from regard.data.examples import PairBatch

    batch = PairBatch(torch.ones(2, 3), torch.ones(2, 4), torch.ones(2, 5))
    found = to_device(batch, META)
    assert isinstance(found, PairBatch)
    assert {part.device for part in found} == {META}
    assert [tuple(part.shape) for part in found] == [(2, 3), (2, 4), (2, 5)]
    nested = to_device({"a": [torch.zeros(3), "text"], "b": (7, torch.zeros(1))}, META)
    assert (nested["a"][0].device, nested["a"][1], nested["b"][0], nested["b"][1].device) == (META, "text", 7, META)


def test_validation_draws_numbers_of_its_own():
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    with own_randomness(torch.device("cpu")):
        torch.rand(9)
    assert torch.equal(torch.rand(2), wanted)


def test_the_engine_moves_the_model_and_every_batch(monkeypatch, tmp_path):
    from regard.training import fit as engine

    seen = []
    monkeypatch.setattr(engine, "to_device", lambda batch, device: seen.append(device) or batch)
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, device: seen.append(("model", device)) or self)
    fit(Toy(), ToySettings(steps=3, device="cpu"), tmp_path / "run")
    cpu = torch.device("cpu")
    assert seen[0] == ("model", cpu)
    assert seen[1:].count(cpu) >= 3


def test_what_the_optimiser_counts_stands_where_a_fused_one_wants_it():
    """On the device of the weight; an optimiser that is not fused counts on the CPU."""
    with META:
        model = torch.nn.Linear(3, 2)
    saved = {f"optimizer.{key}.weight": torch.ones(()) for key in ("step",)}
    for fused, wanted in ((True, "meta"), (False, "cpu")):
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
        optimizer.defaults["fused"] = fused
        put_optimizer(model, optimizer, saved)
        assert optimizer.state[model.weight]["step"].device.type == wanted


def test_a_process_under_torchrun_takes_the_accelerator_of_its_number():
    code = (
        "import os, torch; torch.cuda.device_count = lambda: 4; torch.cuda.set_device = print\n"
        "import regard.training.device as d; torch.empty = lambda *a, **k: None; os.environ['LOCAL_RANK'] = '2'\n"
        "print(d.choose_device('cuda'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["cuda:2", "cuda:2"]
