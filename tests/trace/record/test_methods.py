"""What a method of a trace takes is what the function that it hands itself to takes."""

import inspect

import pytest

from regard.trace.file import save
from regard.trace.measure.gradient import side_by_side
from regard.trace.measure.rollout import flow, rollout, spread
from regard.trace.record.trace import Trace
from regard.views.explorer.page import page
from regard.views.explorer.widget import see
from regard.views.static.trace_figure import figure
from regard.views.static.trace_terminal import print_trace

PAIRS = {
    Trace.rollout: rollout,
    Trace.flow: flow,
    Trace.spread: spread,
    Trace.side_by_side: side_by_side,
    Trace.save: save,
    Trace.figure: figure,
    Trace.print: print_trace,
    Trace.see: see,
    Trace.page: page,
}


@pytest.mark.parametrize("method", PAIRS, ids=lambda method: method.__name__)
def test_a_method_takes_what_its_function_takes(method):
    ours, theirs = (list(inspect.signature(one).parameters.values())[1:] for one in (method, PAIRS[method]))
    assert [one.kind for one in ours] == [one.kind for one in theirs]
    assert [one.default for one in ours] == [one.default for one in theirs]
    assert [one.name for one in ours][1:] == [one.name for one in theirs][1:]
    assert not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in ours)
