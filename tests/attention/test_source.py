"""Sources of maps: each answers the whole protocol, and a new one is a class that gives rows of weights."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention.axes.select import places, take
from regard.attention.map import AttentionMap, Computed, Source
from regard.attention.map.edited import EditedSource
from regard.attention.map.grouped import group
from regard.attention.map.source import MapPiece, WeightsSource
from regard.attention.map.stitched import StitchedSource
from regard.attention.map.stored import Stored
from regard.attention.mask import Sizes
from regard.attention.mask.lead import whole

B, H, Q, K, D = 2, 3, 5, 7, 4


def computed(q: int = Q, k: int = K) -> Computed:
    return Computed(torch.randn(B, H, q, D), torch.randn(B, H, k, D), Sizes((B, H), q, k), mask=regard.causal())


class Halves:
    """A change that halves row 1 and hid its first key."""

    def touches(self, rows):
        return rows == 1

    def weights(self, source, rows):
        return source.weights(rows) / 2

    def hidden(self, source, rows):
        return torch.arange(K) == 0


class Uniform(WeightsSource):
    """Every key alike: a source in a few lines."""

    kind = "uniform"
    device, dtype = torch.device("cpu"), torch.float32

    def __init__(self, sizes: Sizes) -> None:
        self.sizes, self.lead = sizes, whole(sizes, "cpu")

    def pick(self, chosen):
        twin = Uniform(self.sizes)
        twin.lead = self.lead.pick(chosen)
        return twin

    def weights(self, rows=slice(None), columns=slice(None)):
        height = len(places(rows, self.sizes.q, "cpu"))
        return take(torch.full((*self.shape[:-2], height, self.sizes.k), 1 / self.sizes.k), -1, columns)


def sources() -> dict[str, Source]:
    x = torch.randn(B, H, Q, D)
    performer = regard.attend(x, torch.randn(B, H, K, D), torch.randn(B, H, K, 6), by=regard.Performer(D, 32))
    rows = [[0, 1], [2, 3, 4]]
    return {
        "computed": computed(),
        "stored": Stored(torch.rand(B, H, Q, K), regard.causal()),
        "implied": performer.weights.source,
        "stitched": StitchedSource([MapPiece(computed(3, 6)), MapPiece(computed(2, 5), 2)]),
        "edited": EditedSource(computed(), [Halves()]),
        "grouped": group(AttentionMap(computed()), rows, [[0, 3], [1, 2], [6]], "merged from").source,
        "uniform": Uniform(Sizes((B, H), Q, K)),
    }


@pytest.mark.parametrize("name", sources())
def test_every_source_answers_the_protocol(name):
    source = sources()[name]
    assert isinstance(source, Source)
    assert source.dense().expand(source.shape).shape == source.shape == (B, H, *source.shape[-2:])
    assert source.leading_index().shape == (B, H)
    assert source.describe().startswith(source.kind)
    for twin in (source.copy(), source.detach()):
        assert_close(twin.weights(), source.weights())
    rows = torch.tensor([1, 0])
    assert_close(source.pick((1, torch.tensor([2, 0]))).weights(rows), source.weights()[1, [2, 0]][:, [1, 0]])
    assert [piece.rows.stop for piece in source.pieces()] == {"computed": [Q], "stitched": [3, 5]}.get(name, [])
    assert (source.computed is source, source.stored is source) == (name == "computed", name == "stored")
    assert (source.exact is not None) == (name in ("computed", "implied"))


def test_pieces_say_where_their_rows_and_keys_stand():
    source = sources()["stitched"]
    dense = source.weights()
    for piece in source.pieces():
        assert_close(dense[..., piece.rows, piece.columns], piece.source.weights())


def test_a_change_holds_for_the_rows_that_it_touches_and_for_what_they_see():
    before = computed()
    after = AttentionMap(EditedSource(before, [Halves()]))
    assert_close(after.dense()[..., 1, :], before.weights()[..., 1, :] / 2)
    assert_close(after.dense()[..., 2:, :], before.weights()[..., 2:, :])
    seen = before.allowed().expand(B, H, Q, K)
    assert after.allowed[...].equal(seen)  # what keeps weight is seen, hidden or not


def test_a_source_of_a_few_lines_has_every_statistic():
    map = AttentionMap(Uniform(Sizes((B, H), Q, K)))
    stored = AttentionMap.stored(torch.full((B, H, Q, K), 1 / K))
    for name in ("entropy", "distance", "received", "sink"):
        assert_close(getattr(map, name)(), getattr(stored, name)())
    assert_close(map[1, 2, 3], stored[1, 2, 3])
    with pytest.raises(regard.errors.MapError, match="this map is uniform, so its scores are not known"):
        map.scores[0]
