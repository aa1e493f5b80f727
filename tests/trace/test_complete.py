"""Nothing is missed in silence: attention written in any way is heard exactly, or the trace says that it is incomplete."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close

import regard
from tests.trace.by_hand import WAYS, build
from tests.trace.watched import MODES, watched

HEARD = [
    "exp over sum",
    "exp of log_softmax",
    "softmax into a buffer",
    "Transformer-XL",
    "sigmoid",
    "non-local",
    "Bahdanau",
    "vmap",
]


@MODES
@pytest.mark.parametrize("way", HEARD)
def test_attention_by_another_normaliser_or_axis_is_heard_exactly(way: str, mode: Any) -> None:
    model, x, source = build(way)
    with mode():
        trace = watched(model, x, source)
    assert [layer.name for layer in trace.layers] == ["first", "second"], trace.verify()
    assert model.second.met is not None
    assert_close(trace["second"].weights.dense(), model.second.met, atol=1e-6, rtol=0)
    assert trace.verify(), trace.verify()


@MODES
@pytest.mark.parametrize("way", [way for way in WAYS if way not in HEARD])
def test_attention_that_is_not_heard_makes_the_trace_incomplete(way: str, mode: Any) -> None:
    model, x, source = build(way)
    with mode():
        trace = watched(model, x, source)
    proofs = trace.verify()
    assert not proofs, proofs
    assert "second" in repr(proofs)
