"""Filling gaps: the same words with the same probabilities as the pipeline of `transformers`, and plain refusals."""

import json

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch.testing import assert_close

from regard.data.byte_level import MASK, train_byte_level
from regard.errors import DataError, ModelError
from regard.models import store
from regard.models.bert_config import BertConfig
from regard.models.gpt import GPTConfig
from regard.models.read_tokenizer import TOKENIZER
from regard.tasks.text_filler import open_filler

transformers = pytest.importorskip("transformers", reason="needs transformers to compare with; pip install it")

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "over", "it", "un", "##seen", "##s", ".", ",", "!", "two"]
SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
SIZES = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20,
    "max_position_embeddings": 35, "initializer_range": 0.5,
}  # fmt: skip


def save_word_pieces(folder):
    names = [*SPECIAL.values(), *WORDS]
    tokenizer = Tokenizer(models.WordPiece({name: at for at, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL).save_pretrained(folder)
    return len(names)


def save_byte_pairs(folder):
    """As RoBERTa has them: the mask takes the space before it along."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained = train_byte_level(["the cat sat on a mat", "two dogs ran over it, unseen!"] * 5, 300)
    state = json.loads(trained.to_str())
    merges, vocabulary = state["model"]["merges"], state["model"]["vocab"]
    pieces = [name for name, at in sorted(vocabulary.items(), key=lambda item: item[1]) if at >= 5]
    ids = {name: at for at, name in enumerate([*special, *pieces])}
    tokenizer = Tokenizer(models.BPE(ids, [tuple(merge) for merge in merges]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    named = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "cls_token": "<s>"}
    mask = transformers.AddedToken("<mask>", lstrip=True, special=True)
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named, sep_token="</s>", mask_token=mask)
    made.save_pretrained(folder)
    return len(ids)


def save_model(kind, folder):
    torch.manual_seed(5)
    if kind == "roberta":
        size = save_byte_pairs(folder)
        config = transformers.RobertaConfig(vocab_size=size, pad_token_id=1, bos_token_id=0, eos_token_id=2, **SIZES)
        made = transformers.RobertaForMaskedLM(config)
    elif kind == "bert":
        made = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=save_word_pieces(folder), **SIZES))
    else:
        config = transformers.ElectraConfig(vocab_size=save_word_pieces(folder), embedding_size=16, **SIZES)
        made = transformers.ElectraForMaskedLM(config)
    made.eval().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["bert", "roberta", "electra"])
def folder(request, tmp_path_factory):
    return save_model(request.param, tmp_path_factory.mktemp(request.param))


@pytest.mark.parametrize(
    "text", ["The {} sat on the mat.", "{} cat", "two dogs ran over {}", "The {} sat on a {}, unseen {}!"]
)
def test_words_and_probabilities_are_those_of_the_pipeline(folder, text):
    pipeline = transformers.pipeline("fill-mask", model=str(folder), top_k=7)
    theirs = pipeline(text.replace("{}", pipeline.tokenizer.mask_token))
    theirs = theirs if isinstance(theirs[0], list) else [theirs]
    filler = open_filler(folder)
    for spelled in ("[MASK]", "<mask>"):
        filled = filler.fill(text.replace("{}", spelled), top=7)
        assert len(filled.gaps) == text.count("{}")
        for gap, wanted in zip(filled.gaps, theirs, strict=True):
            assert [word.id for word in gap.words] == [one["token"] for one in wanted]
            assert_close([word.probability for word in gap.words], [one["score"] for one in wanted], rtol=0, atol=1e-5)
        if len(theirs) == 1:
            assert filled.text == theirs[0][0]["sequence"].strip()
    kind = type(filler.model).__module__
    assert kind.startswith("regard."), kind


def test_a_model_of_the_library_itself_fills_alike(folder):
    ours, library = (open_filler(folder, ours=ours).fill("The [MASK] sat.") for ours in (True, False))
    assert [word.id for word in ours.gaps[0].words] == [word.id for word in library.gaps[0].words]
    assert_close(ours.gaps[0].words[0].probability, library.gaps[0].words[0].probability, rtol=0, atol=1e-5)


def test_what_a_gap_attended_to_is_watched_on_what_was_read(folder):
    filler = open_filler(folder)
    filled = filler.fill("The [MASK] sat.")
    trace = filler.trace(filled)
    assert len(trace.layers) == 2
    assert trace.layers[0].weights.shape[-2:] == (len(filled.ids), len(filled.ids))
    assert trace.layers[0].keys[0].shown[filled.gaps[0].position] == filler.mask_token


def write_own(folder, config, texts=("the cat sat", "a dog ran") * 3):
    torch.manual_seed(0)
    tokenizer = train_byte_level(texts, 270)
    config = config(tokenizer.get_vocab_size())
    store.write(folder, config.build(), config, {"name": "x"}, files={TOKENIZER: tokenizer.to_str().encode()})
    return folder


@pytest.mark.parametrize("head", ["masked_words", "pretrain"])
def test_a_model_of_ours_fills_with_either_head(tmp_path, head):
    made = write_own(tmp_path, lambda n: BertConfig(n, width=24, heads=3, layers=1, context=19, head=head))
    filler = open_filler(tmp_path)
    filled = filler.fill("the [MASK] sat", top=3)
    answer = filler.model(torch.tensor([list(filled.ids)]))
    logits = (answer if head == "masked_words" else answer.words)[0, filled.ids.index(MASK)]
    shares = logits.double().softmax(-1)
    assert [word.id for word in filled.gaps[0].words] == shares.topk(3).indices.tolist()
    assert filled.ids.count(MASK) == 1
    assert made == tmp_path


def test_what_cannot_be_filled_is_refused_in_a_sentence(tmp_path):
    bert = write_own(tmp_path / "bert", lambda n: BertConfig(n, width=24, heads=3, layers=1, context=19, head="span"))
    gpt = write_own(tmp_path / "gpt", lambda n: GPTConfig(n, width=24, heads=3, layers=1, context=19))
    with pytest.raises(ModelError, match="is a BERT with the head 'span', which guesses no words; name one that fills"):
        open_filler(bert)
    with pytest.raises(ModelError, match="is a GPT, which guesses no hidden words; name one that fills gaps"):
        open_filler(gpt)
    short = write_own(tmp_path / "x", lambda n: BertConfig(n, width=24, heads=3, layers=1, context=9, head="pretrain"))
    with pytest.raises(DataError, match=r"has 1\d tokens, but .* takes at most 9; give less"):
        open_filler(short).fill("[MASK]" + " cat" * 12)
    with pytest.raises(DataError, match=r"'a mask' has no gap; write \[MASK\] where a word is hidden"):
        open_filler(short).fill("a mask")


def test_a_tokenizer_without_a_mask_is_refused(tmp_path):
    folder = save_model("bert", tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        path = folder / name
        path.write_text(path.read_text().replace("[MASK]", "[HOLE]"))
    with pytest.raises(ModelError, match=r"has no token for a hidden word, such as \[MASK\]"):
        open_filler(folder)
