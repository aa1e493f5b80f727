"""What all tests share. Nothing of regard is imported here: the type checks hook in when it first is."""

import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

calm = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # a busy machine is not a bug
settings.register_profile("default", **calm)
settings.register_profile("ci", **calm, derandomize=True)
settings.register_profile("slow", **calm, max_examples=1000)

MARKERS = {
    "slow": "exhaustive or long; run by `make check-slow`",
    "compiled": "uses torch.compile or torch.export, which trace plain functions: run without the type hook",
}


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the long tests too, with more examples each")


def pytest_configure(config):
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    slow = config.getoption("--slow")
    settings.load_profile("slow" if slow else "ci" if os.environ.get("CI") else "default")


def pytest_collection_modifyitems(config, items):
    """Leave out the long tests unless asked for, and the compiled ones while the type hook is on."""
    left_out = set() if config.getoption("--slow") or config.option.markexpr == "slow" else {"slow"}
    if config.getoption("--jaxtyping-packages"):
        left_out.add("compiled")
    kept, dropped = [], []
    for item in items:
        (dropped if left_out & {mark.name for mark in item.iter_markers()} else kept).append(item)
    config.hook.pytest_deselected(items=dropped)
    items[:] = kept


def pytest_terminal_summary(terminalreporter):
    """Hand on what was counted to whoever runs several parts (tests/tally.py)."""
    file = os.environ.get("REGARD_TALLY")
    if file and not hasattr(terminalreporter.config, "workerinput"):
        from tests.tally import outcome

        Path(file).write_text(json.dumps(outcome(terminalreporter.stats)))


@pytest.fixture(autouse=True)
def seeded():
    """Every test starts from the same random numbers, whatever ran before it."""
    import torch

    random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def fresh_compiler(request):
    """Every compiled test starts without graphs from the one before."""
    if request.node.get_closest_marker("compiled") is None:
        yield
        return
    import torch

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Counter:
    """A backend that runs the graph as it is and counts how often one was made."""

    graphs = 0

    def __call__(self, graph, inputs):
        self.graphs += 1
        return graph


@pytest.fixture
def count():
    """A compiler's backend that counts its graphs."""
    return Counter()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real weights and data that no package registry has, where there are any."""
    from tests.shared import MISSING_DATA, SHARED

    if not SHARED.is_dir():
        pytest.skip(MISSING_DATA)
    return SHARED
