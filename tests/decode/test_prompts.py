"""A GPT goes on with a prompt by every way of decoding; loops that read everything anew, in float64, say the same."""

import itertools

import pytest
import torch

import regard
from regard.decode import Limits, beam, greedy, sample, stream
from regard.models import GPTConfig
from regard.models.decoder_state import DecoderState, HasHead, HasPrompt, Replayable

V, B, T = 7, 3, 5
PROMPT = torch.tensor([[3, 1, 4, 1, 5], [6, 2, 5, 3, 0], [2, 2, 6, 0, 1]])
EVERY = ["learned", "sinusoid", "rotary", "alibi", "none"]


@pytest.fixture(params=EVERY)
def model(request):
    torch.manual_seed(2)
    made = GPTConfig(V, width=12, heads=3, layers=2, context=13, hidden=8, positions=request.param).build()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made.double().eval()


@torch.no_grad()
def log_ps(model, row, texts):
    """log p of texts of one length after this row of the prompt, everything read in one pass, no cache."""
    written = torch.tensor(texts, dtype=torch.int64).view(len(texts), -1)
    ids = torch.cat([PROMPT[row].expand(len(texts), T), written], 1)
    chances = model(ids).log_softmax(-1)[:, T - 1 : -1]
    return chances.gather(-1, written[..., None]).sum((1, 2)).tolist()


def log_p(model, row, text):
    return log_ps(model, row, [text])[0]


@torch.no_grad()
def likeliest(model, row, longest, end=None, never=()):
    """The likeliest token each time; every step reads all that came before it."""
    text = []
    while len(text) < longest:
        logits = model(torch.cat([PROMPT[row], torch.tensor(text, dtype=torch.int64)])[None])[0, -1]
        logits[list(never)] = -torch.inf
        token = int(logits.argmax())
        if token == end:
            break
        text.append(token)
    return text


def test_a_state_is_what_every_way_of_decoding_asks_for(model):
    state = model.begin(PROMPT)
    for wanted in (DecoderState, HasHead, HasPrompt, Replayable):
        assert isinstance(state, wanted)
    assert state.attention() is None


def test_greedy_says_what_a_loop_without_a_cache_says(model):
    found = greedy(model.begin(PROMPT), B, limits=Limits(longest=[6, 0, 4], end=None, never=(2,)))
    assert [text.ids for text in found] == [likeliest(model, i, n, never=(2,)) for i, n in enumerate([6, 0, 4])]
    assert [text.score for text in found] == pytest.approx([log_p(model, i, one.ids) for i, one in enumerate(found)])
    assert found[1].score == 0


def test_a_text_may_end_by_itself_too(model):
    for end in range(V):
        found = greedy(model.begin(PROMPT), B, limits=Limits(longest=6, end=end, never=()))
        assert [text.ids for text in found] == [likeliest(model, i, 6, end=end) for i in range(B)]
        scores = [log_p(model, i, [*one.ids, end]) for i, one in enumerate(found)]
        assert [text.score for text in found] == pytest.approx(scores)


def test_drawn_texts_score_what_the_model_says_of_them_and_depend_on_their_own_numbers(model):
    limits = Limits(longest=6, end=None, never=())
    deal = lambda: [torch.Generator().manual_seed(seed) for seed in (4, 9, 1)]  # noqa: E731
    found = sample(model.begin(PROMPT), B, temperature=1.3, generator=deal(), limits=limits)
    assert [text.score for text in found] == pytest.approx([log_p(model, i, one.ids) for i, one in enumerate(found)])
    for row, generator in enumerate(deal()):
        [alone] = sample(model.begin(PROMPT[row : row + 1]), 1, temperature=1.3, generator=generator, limits=limits)
        assert alone.ids == found[row].ids


@pytest.mark.parametrize("longest", [1, 3])
def test_a_beam_as_wide_as_everything_finds_the_best_texts_of_all(model, longest):
    beams = V**longest
    found = beam(model.begin(PROMPT), B, beams=beams, best=6, limits=Limits(longest=longest, end=None, never=()))
    for row, texts in enumerate(found):
        texts_of_all = [list(text) for text in itertools.product(range(V), repeat=longest)]
        every = sorted(zip(log_ps(model, row, texts_of_all), texts_of_all), key=lambda one: -one[0])
        assert [text.ids for text in texts] == [text for _, text in every[:6]]
        assert [text.score for text in texts] == pytest.approx([score / longest for score, _ in every[:6]])


def test_a_narrow_beam_keeps_the_likeliest_beginnings(model):
    longest, beams = [6, 2, 4], 3
    found = beam(model.begin(PROMPT), B, beams=beams, best=beams, limits=Limits(longest=longest, end=None, never=(0,)))
    for row, texts in enumerate(found):
        opened = [(0.0, [])]
        for _ in range(longest[row]):
            ways = [[*text, token] for _, text in opened for token in range(1, V)]
            opened = sorted(zip(log_ps(model, row, ways), ways), key=lambda one: -one[0])[:beams]
        assert [text.ids for text in texts] == [text for _, text in opened]
        assert [text.score for text in texts] == pytest.approx([score / longest[row] for score, _ in opened])


def test_beams_that_end_by_themselves_are_those_of_all_texts(model):
    longest, end = 2, 4
    found = beam(model.begin(PROMPT), B, beams=130, stop="sure", limits=Limits(longest=longest, end=end, never=()))
    words = [i for i in range(V) if i != end]
    for row, [best] in enumerate(found):
        scores = {}
        for n in range(longest + 1):
            texts = [(*text, end) for text in itertools.product(words, repeat=n)]
            scores |= {text[:-1]: total / (n + 1) for text, total in zip(texts, log_ps(model, row, texts))}
        assert best.ids == list(max(scores, key=scores.get))
        assert best.score == pytest.approx(max(scores.values()))


def test_what_is_streamed_is_what_greedy_says_and_the_last_token_is_left_to_read(model):
    limits = Limits(longest=4, end=None, never=())
    state = model.begin(PROMPT)
    tokens = torch.stack([step.tokens for step in stream(state, B, limits=limits)], 1)
    assert tokens.tolist() == [text.ids for text in greedy(model.begin(PROMPT), B, limits=limits)]
    with torch.no_grad():
        after = model(torch.cat([PROMPT, tokens], 1))[:, -1]
        torch.testing.assert_close(state(tokens[:, -1:]), after)


def test_a_row_of_a_stream_stops_when_it_has_said_end(model):
    texts = [likeliest(model, row, 6) for row in range(B)]
    end = texts[0][2]
    said = [[], [], []]
    for step in stream(model.begin(PROMPT), B, limits=Limits(longest=6, end=end, never=())):
        for row, token in zip(step.rows.tolist(), step.tokens.tolist(), strict=True):
            said[row].append(token)
    assert said == [text[: text.index(end) + 1 if end in text else 6] for text in texts]


@pytest.mark.parametrize("way", [greedy, beam])
def test_who_watches_sees_the_prompt_and_the_text_in_one_pass(model, way):
    with regard.watch(model) as trace:
        found = way(model.begin(PROMPT), B, limits=Limits(longest=4, end=None, never=()))
    texts = [one[0].ids if isinstance(one, list) else one.ids for one in found]
    with regard.watch(model) as wanted, torch.no_grad():
        model(torch.cat([PROMPT, torch.tensor(texts)], 1))
    assert len(trace.runs) == 1
    for mine, right in zip(trace.layers, wanted.layers, strict=True):
        torch.testing.assert_close(mine.weights.dense(), right.weights.dense(), rtol=0, atol=0)


def test_bad_wishes_of_a_stream_are_refused(model):
    with pytest.raises(regard.errors.ConfigError, match="temperature is -1"):
        next(stream(model.begin(PROMPT), B, temperature=-1, limits=Limits(longest=2, end=None)))
    with pytest.raises(regard.errors.ConfigError, match="end holds the id 99"):
        next(stream(model.begin(PROMPT), B, limits=Limits(longest=2, end=99)))
    assert not [*stream(model.begin(PROMPT), B, limits=Limits(longest=0, end=None))]
