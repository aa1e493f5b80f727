"""Every model runs by the same skeleton: an adapter reads and predicts, and never runs by itself."""

import pytest
import torch

from regard.app.protocol.messages import RunRequest
from regard.app.runners import library, pictures, readers, text, translators, writers
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.probabilities import Prediction, describe_output, divergence, top_of_both
from regard.app.runners.runner import Runner
from regard.models import embedded
from regard.trace.watch import watch

ADAPTERS = [
    writers.WriterRunner,
    translators.PairRunner,
    library.TransformersRunner,
    pictures.PictureRunner,
    readers.ReaderRunner,
    text.TextRunner,
]
SKELETON = ("run", "run_again", "layer_names", "edit")


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_leaves_the_skeleton_as_it_is(adapter):
    assert issubclass(adapter, Runner)
    assert all(getattr(adapter, name) is getattr(Runner, name) for name in SKELETON)


@pytest.mark.parametrize("name", ["induction", "en-zh-grammar", "en-zh-grammar-recurrent"])
def test_a_run_gives_the_weights_that_a_plain_watch_of_the_same_tokens_gives(name):
    opener = writers.open_writer if name == "induction" else translators.open_pair
    runner = opener(name, embedded.folder(name))
    words = "the cat sees A B C . the" if name == "induction" else "The cat sat on the mat."
    result = runner.run(RunRequest(model=name, text=words), RunMonitor())
    with torch.no_grad(), watch(runner.model) as trace:
        runner.forward(result.inputs)
    assert len(trace.layers) == len(result.trace.layers) > 0
    for ours, theirs in zip(result.trace.layers, trace.layers, strict=True):
        torch.testing.assert_close(ours.weights.dense(), theirs.weights.dense())
        assert ours.queries is not None  # its tokens have names


def test_the_divergence_is_the_one_of_torch():
    before, after = torch.randn(3, 7, dtype=torch.float64), torch.randn(3, 7, dtype=torch.float64)
    true = torch.nn.functional.kl_div(
        after.log_softmax(-1), before.log_softmax(-1), log_target=True, reduction="batchmean"
    )
    assert divergence(before, after) == pytest.approx(float(true))


def test_only_a_prediction_of_one_position_is_listed():
    row = torch.tensor([0.0, 3.0, 1.0])
    assert [one.name for one in describe_output(Prediction(row, "abc".__getitem__)).next] == ["b", "c", "a"]
    classes = describe_output(Prediction(row, "abc".__getitem__, "classes"), "text")
    assert (classes.text, classes.next, classes.classes[0].name) == ("text", None, "b")
    assert describe_output(Prediction(row[None], "abc".__getitem__)).next is None
    assert describe_output(None).to_json() == {"text": None, "next": None, "classes": None}


def test_what_is_strong_before_or_after_stands_in_both_lists():
    before, after = torch.tensor([5.0, 4.0, 0.0, 0.0]), torch.tensor([0.0, 0.0, 6.0, 1.0])
    first, second = top_of_both(before, after, "abcd".__getitem__, 1)
    assert [one.name for one in first] == ["a", "c"]
    assert [one.name for one in second] == ["c", "a"]
