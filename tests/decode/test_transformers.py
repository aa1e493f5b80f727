"""The same texts and scores as `generate` of `transformers`, from its own models through their own caches."""

import pytest
import torch

from regard.decode import Limits, beam, greedy

transformers = pytest.importorskip("transformers")
LONGEST, VOCABULARY = 12, 41


class Library:
    """An encoder–decoder of `transformers` in the middle of writing, with the cache that it makes itself."""

    def __init__(self, model, source):
        self.model, self.mask = model, (source != 0).long()
        self.read = model.get_encoder()(source, attention_mask=self.mask).last_hidden_state
        self.past = None

    def __call__(self, ids):
        out = self.model(
            encoder_outputs=(self.read,), attention_mask=self.mask, decoder_input_ids=ids, past_key_values=self.past,
            use_cache=True,
        )  # fmt: skip
        self.past = out.past_key_values
        return out.logits[:, -1]

    def reorder(self, index):
        self.past.reorder_cache(index)
        self.read, self.mask = self.read[index], self.mask[index]

    def attention(self):
        return None


class EndAtLast(transformers.LogitsProcessor):
    """Where the longest is reached only END is left, at what the model gives it."""

    def __call__(self, ids, scores):
        if ids.shape[1] == LONGEST + 1:
            scores = torch.full_like(scores, -torch.inf).index_copy(1, torch.tensor([2]), scores[:, 2:3])
        return scores


@pytest.fixture(scope="module", params=["marian", "bart"])
def model(request):
    torch.manual_seed(3)
    kinds = {
        "marian": (transformers.MarianConfig, transformers.MarianMTModel),
        "bart": (transformers.BartConfig, transformers.BartForConditionalGeneration),
    }
    config, kind = kinds[request.param]
    made = kind(
        config(
            vocab_size=VOCABULARY, d_model=12, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
            decoder_attention_heads=3, encoder_ffn_dim=17, decoder_ffn_dim=19, max_position_embeddings=64,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=None,
            init_std=0.9, dropout=0.0,
        )
    )  # fmt: skip
    made.lm_head.weight = torch.nn.Parameter(torch.randn(VOCABULARY, 12))  # tied, it would say the same for ever
    made.final_logits_bias[0, 2] = 4.0
    return made.double().eval()


def sources():
    generator = torch.Generator().manual_seed(1)
    rows = [torch.randint(3, VOCABULARY, (length,), generator=generator) for length in (7, 3, 9, 1, 5, 6)]
    return torch.nn.utils.rnn.pad_sequence([torch.cat([row, torch.tensor([2])]) for row in rows], batch_first=True)


def generated(model, best=1, **settings):
    out = model.generate(
        sources(), attention_mask=(sources() != 0).long(), max_new_tokens=LONGEST + 1, do_sample=False,
        suppress_tokens=[0, 1], num_return_sequences=best, logits_processor=[EndAtLast()],
        return_dict_in_generate=True, output_scores=True, **settings,
    )  # fmt: skip
    rows = [row[1:] for row in out.sequences.tolist()]
    texts = [row[: row.index(2)] for row in rows]
    return [texts[i : i + best] for i in range(0, len(texts), best)], out.get("sequences_scores")


@torch.no_grad()
def test_greedy_says_what_generate_says(model):
    wanted, _ = generated(model, num_beams=1)
    found = greedy(Library(model, sources()), 6, limits=Limits(longest=LONGEST))
    assert [[text.ids] for text in found] == wanted
    assert len({len(text.ids) for text in found}) > 2
    assert max(len(text.ids) for text in found) == LONGEST


STOPS = {"full": True, "likely": False, "sure": "never"}


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize(
    ("penalty", "beams", "best", "shortest"), [(1.0, 5, 1, 0), (0.0, 5, 2, 0), (2.0, 4, 4, 0), (-1.0, 2, 2, 3)]
)
@torch.no_grad()
def test_beam_search_finds_what_generate_finds(model, stop, penalty, beams, best, shortest):
    wanted, scores = generated(
        model, best, num_beams=beams, early_stopping=STOPS[stop], length_penalty=penalty, min_new_tokens=shortest
    )
    found = beam(
        Library(model, sources()), 6, beams=beams, best=best, length_penalty=penalty, stop=stop,
        limits=Limits(longest=LONGEST, shortest=shortest),
    )  # fmt: skip
    assert [[text.ids for text in texts] for texts in found] == wanted
    assert [text.score for texts in found for text in texts] == pytest.approx(scores.tolist(), abs=1e-5, rel=1e-6)
    assert len({len(text.ids) for texts in found for text in texts}) > 1
