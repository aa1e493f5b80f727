"""The fast engine is an extra: without numba nothing breaks, and whoever asks for it is told what to install."""

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import torch
from regard.errors import RegardError
from regard.models import Llama, LlamaConfig
from regard.models.fast.engine import ENGINE
from regard.models.fast.quantized import QuantizedModel
model = Llama(LlamaConfig(vocab_size=10, width=8, heads=2, layers=1, context=16, hidden=12)).eval()
ids = torch.tensor([[1, 2]])
with torch.no_grad():
    state = model.begin(ids)
    print(tuple(state(state.take_prompt(1, 2)).shape))
print(ENGINE.find_obstacle(model))
for ask in (lambda: model.begin(ids, engine="fast"), lambda: QuantizedModel.read("no.gguf")):
    try:
        ask()
    except RegardError as error:
        print(error)
"""


def test_without_numba_other_engines_write_and_the_extra_is_named():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    shape, obstacle, engine, codes = result.stdout.splitlines()
    assert shape == "(1, 10)"
    assert obstacle == "numba is not installed: pip install 'regard[fast]'"
    assert engine.startswith("the engine 'fast' cannot be used: numba is not installed: pip install 'regard[fast]'")
    assert codes == (
        "to compute with the codes of a GGUF file as they are, install regard[fast]: pip install 'regard[fast]'"
    )
