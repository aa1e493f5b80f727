"""The pointer-generator: against plain loops in float64, step by step, watched, edited, and without its pointer."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

import regard
from regard.errors import ConfigError
from regard.models import PointerGenerator, PointerGeneratorConfig, Translator, TranslatorConfig
from regard.models.decoder_state import DecoderState, HasHead
from regard.models.pointer_mixture import group_tokens, mix_log_probs

N, M, H, ENCODERS, DECODERS, HIDDEN, B, S, T = 23, 12, 3, 2, 1, 20, 5, 7, 6
EXACT = {"rtol": 1e-10, "atol": 1e-10}


def draw_batch():
    """Sources of several lengths, in which tokens repeat, padded with 0 and ended by 2; targets that begin with 1."""
    source, target = torch.randint(3, 8, (B, S)), torch.randint(3, N, (B, T))
    for row, length in enumerate([S, 4, 6, 2, 5]):
        source[row, length - 1], source[row, length:] = 2, 0
    target[:, 0] = 1
    return source, target


def make(**options):
    """A model whose weights are far from where they start, so that nothing hides behind a zero."""
    sizes = {"decoder_layers": DECODERS, "hidden": HIDDEN} | options
    model = PointerGeneratorConfig(N, N, M, H, ENCODERS, **sizes).build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    if model.pointer is not None and model.pointer.coverage_weight is not None:
        nn.init.constant_(model.pointer.coverage_weight, -1.7)
    return model.double().eval()


def loop(model, source, target):
    """p, g, copy weights and coverage by equations 8 to 11, a number at a time from the states of both stacks."""
    pointer, count = model.pointer, (source != 0).sum(1)
    memory = model._read(source)[0]
    hidden = model.hidden(source, target)
    p = torch.zeros(B, T, N, dtype=torch.float64)
    g, copy, coverage = torch.zeros(B, T), torch.zeros(B, T, S), torch.zeros(B, T, S)
    g, copy, coverage = g.double(), copy.double(), coverage.double()
    for b in range(B):
        covered = [0.0] * S
        for t in range(T):
            scores = []
            for i in range(count[b]):
                q = pointer.to_q.weight @ hidden[b, t] + pointer.to_q.bias
                k = pointer.to_k.weight @ memory[b, i] + pointer.to_k.bias
                extra = 0.0 if pointer.coverage_weight is None else float(pointer.coverage_weight) * covered[i]
                scores.append(float(q @ k) / math.sqrt(M) + extra)
            powers = [math.exp(score) for score in scores]
            weights = [power / sum(powers) for power in powers]
            context = sum(weight * memory[b, i] for i, weight in enumerate(weights))
            logit = float(pointer.to_gate.weight[0] @ torch.cat([hidden[b, t], context]) + pointer.to_gate.bias)
            gate = 1 / (1 + math.exp(-logit))
            words = [math.exp(float(row @ hidden[b, t])) for row in model.head_weight]
            for j in range(N):
                p[b, t, j] = gate * words[j] / sum(words)
            g[b, t] = gate
            for i, weight in enumerate(weights):
                p[b, t, source[b, i]] += (1 - gate) * weight
                copy[b, t, i], coverage[b, t, i] = weight, covered[i]
                covered[i] += weight
    return p, g, copy, coverage


@pytest.mark.parametrize("coverage", [True, False])
def test_the_mixture_and_coverage_equal_the_equations_in_plain_loops(coverage):
    model = make(coverage=coverage)
    source, target = draw_batch()
    with torch.no_grad():
        p, g, copy, covered = loop(model, source, target)
        found = model.mix(source, target)
        assert_close(model(source, target).exp(), p, **EXACT)
        assert_close(found.gate.sigmoid(), g, **EXACT)
        assert_close(found.copy, copy, **EXACT)
        if coverage:
            assert_close(found.coverage, covered, **EXACT)
        else:
            assert found.coverage is None
    assert_close(p.sum(-1), torch.ones(B, T, dtype=torch.float64), **EXACT)


@pytest.mark.parametrize("coverage", [True, False])
@pytest.mark.parametrize("positions", ["sinusoid", "rotary"])
def test_step_by_step_equals_the_whole_target_at_once(coverage, positions):
    model = make(coverage=coverage, positions=positions, decoder_layers=2)
    source, target = draw_batch()
    with torch.no_grad():
        wanted, steps = model(source, target), model.begin(source)
        assert isinstance(steps, DecoderState)
        assert not isinstance(steps, HasHead), "its head alone makes no probabilities"
        found = [steps(part) for part in target.split([1, 1, 2, 1, 1], 1)]
    assert_close(torch.stack(found, 1), wanted[:, [0, 1, 3, 4, 5]], **EXACT)


def test_coverage_counts_in_the_scores():
    model = make()
    source, target = draw_batch()
    with torch.no_grad():
        before = model.mix(source, target).copy
        model.pointer.coverage_weight.zero_()
        after = model.mix(source, target).copy
    assert_close(before[:, 0], after[:, 0], **EXACT)
    assert (before - after)[:, 1:].abs().max() > 0.01


def test_gradients_flow_through_every_earlier_row_as_finite_differences_say():
    model = make()
    source, target = draw_batch()

    def probability(weight, query):
        parts = {"pointer.coverage_weight": weight, "pointer.to_q.weight": query}
        return torch.func.functional_call(model, parts, (source, target))[:, 3:].exp()

    given = [model.pointer.coverage_weight, model.pointer.to_q.weight]
    assert torch.autograd.gradcheck(probability, [one.detach().requires_grad_() for one in given])


def test_rows_may_change_places_be_dropped_and_be_repeated_between_steps():
    model = make()
    source, target = draw_batch()
    with torch.no_grad():
        steps = model.begin(source)
        order = torch.tensor([3, 0, 0, 4, 1, 1, 2])
        steps.reorder(order)
        source, target = source[order], target[order]
        steps(target[:, :1])
        for step, index in enumerate([[1, 0, 2, 3, 5, 4, 6], [6, 5, 0, 3], [2, 2, 1, 1], [0, 2]], start=1):
            looked = steps.attention()
            steps.reorder(torch.tensor(index))
            assert_close(steps.attention(), looked[index])
            source, target = source[index], target[index]
            assert_close(steps(target[:, step : step + 1]), model(source, target)[:, step], **EXACT)


@pytest.mark.parametrize("beams", [1, 3])
def test_what_is_decoded_has_the_score_of_one_pass_over_it(beams):
    model = make()
    source, _ = draw_batch()
    limits = regard.Limits(longest=4)
    with torch.no_grad():
        found = (
            regard.greedy(model.begin(source), B, limits=limits)
            if beams == 1
            else [best[0] for best in regard.beam(model.begin(source), B, beams=beams, length_penalty=0, limits=limits)]
        )
        for row, text in enumerate(found):
            fed, said = torch.tensor([[1, *text.ids]]), torch.tensor([[*text.ids, 2]])
            log_probs = model(source[row : row + 1, : int((source[row] != 0).sum())], fed)
            assert text.score == pytest.approx(float(log_probs.gather(2, said[..., None]).sum()), rel=1e-9)


def test_a_watch_hears_one_pointer_layer_whose_map_is_what_was_copied_by():
    model = make()
    source, target = draw_batch()
    with torch.no_grad(), regard.watch(model) as trace:
        found = model.mix(source, target)
    pointer = trace.layers[-1]
    assert [layer.name for layer in trace.layers if "pointer" in layer.name] == ["pointer"]
    assert (pointer.name, pointer.kind, pointer.heads, pointer.weights.kind) == ("pointer", "cross", 1, "computed")
    assert torch.equal(pointer.weights.dense()[:, 0], found.copy)
    assert not pointer.sentences()
    assert not trace.notes
    assert trace.verify(), "the map gives the context that the gate was made from"


def test_a_watch_of_decoding_sees_what_was_written_in_one_pass():
    model = make()
    source, _ = draw_batch()
    with torch.no_grad(), regard.watch(model) as trace:
        found = regard.greedy(model.begin(source), B, limits=regard.Limits(longest=4))
    fed = nn.utils.rnn.pad_sequence([torch.tensor([1, *text.ids]) for text in found], batch_first=True)
    with torch.no_grad():
        wanted = model.mix(source, fed).copy
    last = [layer for layer in trace.layers if layer.name == "pointer"][-1]
    assert_close(last.weights.dense()[:, 0], wanted, **EXACT)


def test_an_edit_of_the_pointer_changes_what_is_copied():
    model = make(coverage=False)
    source, target = draw_batch()
    with torch.no_grad():
        gate = model.mix(source, target).gate.sigmoid()
        with regard.edit(model) as edits:
            edits.force(query=2, key=1, path="pointer")
            forced = model.mix(source, target)
    wanted = torch.zeros(S, dtype=torch.float64)
    wanted[1] = 1
    assert_close(forced.copy[:, 2], wanted.expand(B, S))
    assert gate.shape == forced.gate.shape


def test_without_copying_it_is_a_translator_to_the_last_bit():
    model = make(copy=False)
    twin = TranslatorConfig(N, N, M, H, ENCODERS, decoder_layers=DECODERS, hidden=HIDDEN, shared=True).build()
    twin.double().eval().load_state_dict(model.state_dict())
    source, target = draw_batch()
    with torch.no_grad():
        assert torch.equal(model(source, target), twin(source, target))
        assert torch.equal(model.begin(source)(target[:, :2]), twin.begin(source)(target[:, :2]))
    assert isinstance(model, Translator)
    assert isinstance(model.begin(source), HasHead)
    with pytest.raises(ConfigError, match="copies nothing"):
        model.mix(source, target)


def test_log_probabilities_keep_their_digits_where_all_or_nothing_is_copied():
    logits, source = torch.randn(1, 1, N, dtype=torch.float64), torch.tensor([[5, 4, 5]])
    copy = torch.tensor([[[0.25, 0.5, 0.25]]], dtype=torch.float64)
    for gate in (-800.0, 800.0):
        found = mix_log_probs(logits, torch.full((1, 1), gate).double(), copy, source)[0, 0]
        assert found.isfinite().all()
        share = gate if gate < 0 else 0.0  # log g
        others = [j for j in range(N) if j not in (4, 5)]
        assert_close(found[others], logits[0, 0].log_softmax(-1)[others] + share)
    assert_close(mix_log_probs(logits, torch.full((1, 1), -800.0).double(), copy, source)[0, 0, 5].exp().item(), 0.5)


def test_gradients_are_numbers_where_a_copy_weight_has_underflowed():
    logits, gate = torch.randn(1, 1, N, requires_grad=True), torch.zeros(1, 1, requires_grad=True)
    scores = torch.tensor([[[0.0, -500.0, 2.0]]], requires_grad=True)
    mix_log_probs(logits, gate, scores.softmax(-1), torch.tensor([[5, 4, 6]])).sum().backward()
    assert all(one.grad.isfinite().all() for one in (logits, gate, scores))


def test_tokens_are_grouped_by_the_first_place_that_holds_them():
    source = torch.randint(0, 9, (4, 11))
    wanted = [[row.index(token) for token in row] for row in source.tolist()]
    assert group_tokens(source).tolist() == wanted


def test_rows_of_a_padded_batch_equal_single_texts():
    model = make()
    source, target = draw_batch()
    with torch.no_grad():
        together = model(source, target)
        for row in range(B):
            length = int((source[row] != 0).sum())
            alone = model(source[row : row + 1, :length], target[row : row + 1])
            assert_close(together[row : row + 1], alone, **EXACT)


def test_weights_drawn_anew_leave_coverage_at_nothing():
    model = make().float()
    torch.manual_seed(3)
    model.reset_parameters()
    torch.manual_seed(3)
    twin = PointerGeneratorConfig(N, N, M, H, ENCODERS, decoder_layers=DECODERS, hidden=HIDDEN).build()
    assert model.pointer.coverage_weight == 0 == twin.pointer.coverage_weight
    assert model.pointer.to_gate.bias == 0
    assert_close(model.source_embed.weight.std(), twin.source_embed.weight.std(), rtol=0.2, atol=0)


def test_two_vocabularies_are_refused():
    with pytest.raises(ConfigError, match="one vocabulary"):
        PointerGenerator(PointerGeneratorConfig(N, N, M, H, 1, shared=False))
    with pytest.raises(ValueError, match="vocabularies of 23 and 24"):
        PointerGenerator(PointerGeneratorConfig(N, N + 1, M, H, 1))


@pytest.mark.compiled
@pytest.mark.parametrize("coverage", [True, False])
def test_a_compiled_model_says_the_same(coverage):
    model = make(coverage=coverage)
    source, target = draw_batch()
    with torch.no_grad():
        wanted = model(source, target)
        assert_close(torch.compile(model, backend="eager")(source, target), wanted, **EXACT)


def test_the_cross_entropy_of_its_log_probabilities_is_their_own():
    model = make()
    source, target = draw_batch()
    log_probs = model(source, target)
    wanted = -log_probs.gather(2, target[..., None]).squeeze(-1)
    assert_close(F.cross_entropy(log_probs.flatten(0, 1), target.flatten(), reduction="none").view(B, T), wanted)
