"""A watch that writes to a file takes no more memory for many layers than for few."""

import subprocess
import sys

CHILD = """
import resource, sys, torch, regard
torch.set_num_threads(1)
layers, path = int(sys.argv[1]), sys.argv[2]
model = regard.models.GPTConfig(vocab_size=50, width=256, heads=4, layers=layers, context=512).build().eval()
ids = torch.randint(50, (12, 512))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
with torch.no_grad():
    with regard.watch(model, to=path):
        model(ids[:1, :8])
    before = peak()
    with regard.watch(model, to=path) as trace:
        model(ids)
    assert len(trace.layers) == layers and trace[-1].weights.kind == "computed"
print(peak() - before)
"""


def grow(tmp_path, layers):
    """MB that the peak of a process grows by."""
    words = [sys.executable, "-c", CHILD, str(layers), str(tmp_path / "a.trace")]
    return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def test_memory_does_not_grow_with_the_number_of_layers(tmp_path):
    few, many = grow(tmp_path, 3), grow(tmp_path, 13)
    written = (13 - 3) * 3 * 6  # MB more: q, k and v of each layer are 6 MB
    print(f"3 layers {few} MB, 13 layers {many} MB")
    assert many - few < written / 2
