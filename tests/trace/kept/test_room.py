"""The memory of one watch serves the next: a process takes new pages once, not with every step."""

import os
import platform
import subprocess
import sys

import pytest

ONE = {"OMP_NUM_THREADS": "1"}
STEPS = """
import resource, sys
import torch
import regard
import regard.trace.watch as module

if sys.argv[1] == "without":
    module.make_room = lambda: None
torch.manual_seed(0)
model = regard.GPT(vocabulary=31, width=288, heads=3, layers=7, context=512).eval()
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


def pages_of_a_step(how: str, **settings: str) -> int:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", STEPS, how], capture_output=True, text=True, check=True, env=inherited | settings | ONE
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="how much freed memory is kept is a matter of glibc")
def test_a_later_watch_takes_no_new_pages() -> None:
    without, with_room = pages_of_a_step("without"), pages_of_a_step("with")
    assert without > 500
    assert with_room < without / 10


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the variable is one of glibc")
def test_who_set_a_threshold_has_decided() -> None:
    assert pages_of_a_step("with", MALLOC_MMAP_THRESHOLD_="65536") > 500
