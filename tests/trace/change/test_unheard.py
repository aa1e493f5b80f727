"""What an edit, a ranking of heads or a swap cannot reach is named, beside what it did."""

import pytest
import torch
from torch import nn

import regard
from regard.errors import WatchError
from tests.trace.change.helpers import under

B, N, M, HEADS = 2, 7, 12, 3


class Squared(nn.Module):
    """Attention whose weights are squares: what it multiplies is no softmax."""

    def forward(self, x):
        return (x @ x.mT).relu().square() @ x / N


class Both(nn.Module):
    """A layer that is heard, and one that is not."""

    def __init__(self):
        super().__init__()
        self.heard, self.unheard = nn.MultiheadAttention(M, HEADS, batch_first=True), Squared()

    def forward(self, x):
        return self.unheard(self.heard(x, x, x)[0])


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Both().eval()


def is_named(sentences):
    return len(sentences) == 1 and sentences[0].startswith("unheard was not edited: its attention was not heard: ")


def test_an_edit_of_all_layers_names_the_one_that_it_did_not_reach(model):
    x = torch.randn(B, N, M)
    with torch.no_grad(), regard.edit(model) as e:
        e.mute(heads=0)
        effect = e.run(x)
    assert effect.largest > 0
    assert is_named(e.notes)


def test_an_edit_of_a_layer_that_is_not_heard_says_why_it_changed_nothing(model):
    with pytest.raises(WatchError, match=r"mute\('unheard', heads 0\) changed nothing, because unheard: its attention"):
        under(model, lambda e: e.mute("unheard", heads=0), torch.randn(B, N, M))


def test_a_ranking_of_heads_names_the_layer_that_has_no_line(model):
    found = regard.importance(model, torch.randn(B, N, M), lambda y: float(y.square().sum()), progress=False)
    assert {row["layer"] for row in found.rows} == {"heard"}
    assert is_named(found.notes)
    assert "unheard was not edited" in str(found)
