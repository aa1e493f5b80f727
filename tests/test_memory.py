"""The memory of one watch serves the next: a process takes new pages once, not with every step."""

import os
import platform
import subprocess
import sys

import pytest

ONE = {"OMP_NUM_THREADS": "1"}
STEPS = """
import resource
import torch
import regard

torch.manual_seed(0)
model = regard.models.GPTConfig(vocab_size=31, width=288, heads=3, layers=7, context=512).build().eval()
ids = torch.randint(31, (1, 509))

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

with torch.no_grad():
    for step in range(5):
        before = faults()
        with regard.watch(model):
            model(ids)
        taken = faults() - before
print(taken)
"""


def pages_of_a_step(**settings: str) -> int:
    """New pages that the fifth watched step takes, in a process of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", STEPS], capture_output=True, text=True, check=True, env=inherited | settings | ONE
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="how much freed memory is kept is a matter of glibc")
def test_a_later_watch_takes_few_new_pages_unless_somebody_set_a_threshold() -> None:
    """Without room it would be some 2,500 in five processes of six, by how the heap happens to be cut up."""
    assert pages_of_a_step() < 1000
    assert pages_of_a_step(MALLOC_MMAP_THRESHOLD_="65536") > 5000
