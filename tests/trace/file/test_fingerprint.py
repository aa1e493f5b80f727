"""Which weights made a trace."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from regard.errors import TraceError
from regard.trace.file.fingerprint import check, fingerprint
from regard.trace.record.trace import Trace


def model(seed=0):
    torch.manual_seed(seed)
    return nn.TransformerEncoderLayer(12, 3, 20, batch_first=True)


def test_the_same_weights_have_the_same_fingerprint_also_in_another_process():
    code = "import torch; from torch import nn; from regard.trace.file.fingerprint import fingerprint"
    code += "; torch.manual_seed(0)"
    code += "; print(fingerprint(nn.TransformerEncoderLayer(12, 3, 20, batch_first=True)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert fingerprint(model()) == fingerprint(model()) == done.stdout.strip()


def renamed():
    found = model()
    found.other = found.linear1
    del found.linear1
    return found


OTHERS = {
    "another seed": lambda: model(1),
    "half": lambda: model().half(),
    "one step of training": lambda: trained(),
    "another name": renamed,
    "another shape": lambda: nn.TransformerEncoderLayer(12, 3, 21, batch_first=True),
}


def trained():
    found = model()
    found(torch.randn(1, 2, 12)).square().sum().backward()
    torch.optim.SGD(found.parameters(), lr=1e-3).step()
    return found


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_other_weights_have_another_fingerprint(other):
    assert fingerprint(other()) != fingerprint(model())


def test_wrappers_devices_and_tables_do_not_change_it():
    plain = model()
    expected = fingerprint(plain)
    assert fingerprint(torch.compile(plain)) == expected
    assert fingerprint(nn.DataParallel(plain)) == expected
    plain.register_buffer("table", torch.randn(5), persistent=False)
    assert fingerprint(plain) == expected
    plain.register_buffer("mean", torch.randn(5))
    assert fingerprint(plain) != expected


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.complex64, torch.int8, torch.bool])
def test_every_kind_of_number_counts(dtype):
    holder = nn.Module()
    holder.register_buffer("x", torch.zeros(3, 5, dtype=dtype).mT)
    before = fingerprint(holder)
    holder.x.fill_(1)
    assert fingerprint(holder) != before


def test_what_holds_no_numbers_has_a_fingerprint_too():
    with torch.device("meta"):
        assert fingerprint(nn.Linear(3, 5))
    assert fingerprint(nn.Identity())
    empty = nn.Module()
    empty.register_buffer("none", torch.zeros(0, 5))
    assert fingerprint(empty)


def test_a_trace_of_other_weights_is_refused_in_words():
    trace = Trace(model="TransformerEncoderLayer", fingerprint=fingerprint(model()))
    check(trace, model())
    check(Trace(), model(1))
    with pytest.raises(TraceError, match=r"made by other weights \(TransformerEncoderLayer, [0-9a-f]{8}\) than this"):
        check(trace, model(1))
