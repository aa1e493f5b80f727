"""A search that is watched is told once: what it kept, in one pass, whatever it tried on the way."""

import pytest
import torch
from torch import nn

import regard
from regard.decode import Limits, beam, greedy, sample
from regard.models import Seq2SeqConfig, TranslatorConfig

SOURCE = torch.tensor([[5, 9, 4, 7, 2], [8, 2, 0, 0, 0], [6, 3, 11, 2, 0]])
LIMITS = Limits(longest=[7, 4, 9], shortest=2)


def models() -> dict[str, nn.Module]:
    torch.manual_seed(3)
    found = {
        "transformer": TranslatorConfig(13, 17, width=12, heads=3, layers=2).build(),
        "recurrent": Seq2SeqConfig(13, 17, width=10).build(),
    }
    for model in found.values():
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.5)
    return {name: model.eval() for name, model in found.items()}


SEARCHES = {
    "beam": lambda steps: [texts[0].ids for texts in beam(steps, 3, beams=4, best=2, limits=LIMITS)],
    "greedy": lambda steps: [text.ids for text in greedy(steps, 3, limits=LIMITS)],
    "sample": lambda steps: [
        text.ids for text in sample(steps, 3, limits=LIMITS, generator=torch.Generator().manual_seed(5))
    ],
}


def fed(texts: list[list[int]]) -> torch.Tensor:
    rows = [torch.tensor([1, *ids]) for ids in texts]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
@pytest.mark.parametrize("how", SEARCHES)
def test_the_last_run_is_one_pass_over_what_was_kept(kind, how):
    model, search = models()[kind], SEARCHES[how]
    with torch.no_grad():
        wanted = search(model.begin(SOURCE))
        with regard.watch(model) as plain:
            model(SOURCE, fed(wanted))
        state = torch.get_rng_state()
        with regard.watch(model) as trace:
            found = search(model.begin(SOURCE))
    assert found == wanted
    assert torch.equal(torch.get_rng_state(), state)
    assert len(trace.runs) == (2 if kind == "transformer" else 1)  # what `begin` reads is a call of its own
    assert [layer.name for layer in trace.layers] == [layer.name for layer in plain.layers]
    for layer, other in zip(trace.layers, plain.layers):
        assert torch.equal(layer.weights.dense(), other.weights.dense())
        assert layer.queries == other.queries
        assert layer.keys == other.keys
    assert str(trace.verify()) == str(plain.verify())


def test_a_translation_is_one_run_with_all_its_layers():
    translator = regard.open_translator("en-zh-grammar")
    with regard.watch(translator.model) as trace:
        (found,) = translator.translate(["The cat sat on the mat."])
    own = found.trace()
    assert len(trace.runs) == 1
    for layer, other in zip(trace.layers, own.layers, strict=True):
        assert torch.equal(layer.weights.dense(), other.weights.dense())


def test_edits_reach_the_search_itself():
    model = models()["transformer"]

    def run() -> list[float]:
        return [texts[0].score for texts in beam(model.begin(SOURCE), 3, beams=4, limits=LIMITS)]

    with torch.no_grad():
        plain = run()
        with regard.edit(model) as edit:
            edit.mute("decoder.blocks.0.cross_attention")
            changed = run()
            with regard.watch(model):
                watched = run()
    assert all(abs(a - b) > 1e-3 for a, b in zip(changed, plain))
    assert watched == changed


def test_a_model_that_drops_is_told_as_it_runs():
    """A second pass would drop others, and use random numbers that the unwatched model does not."""
    model = TranslatorConfig(13, 17, width=12, heads=3, layers=1, dropout=0.4).build().train()

    def run() -> tuple[list[list[int]], torch.Tensor]:
        torch.manual_seed(1)
        return SEARCHES["greedy"](model.begin(SOURCE[:1].repeat(3, 1))), torch.get_rng_state()

    with torch.no_grad():
        wanted, state = run()
        with regard.watch(model):
            found, after = run()
    assert found == wanted
    assert torch.equal(state, after)


def test_an_error_in_the_search_is_told_as_it_is():
    model = models()["transformer"]
    nn.init.constant_(model.target_table, torch.nan)
    with torch.no_grad(), pytest.raises(regard.errors.ModelError, match="not numbers"), regard.watch(model):
        SEARCHES["beam"](model.begin(SOURCE))
    assert not regard.attention.observe.MUTED.get()
