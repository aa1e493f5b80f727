"""A published model with a SentencePiece vocabulary, written as a GGUF file and opened again."""

import torch
from torch.testing import assert_close

from regard.models.open.load_model import load_model
from tests.models.gguf.converted import to_gguf
from tests.models.gguf.files import write_gguf
from tests.trace.checkpoints import folder, stories260k
from tests.trace.formats import pieces_of_llama2c

TEXTS = ("Once upon a time", "Lily said:\n“你好 🙂”  and smiled.", "aaaaaaaa  the thethe", "", " ", "\x00\t12345")


@torch.no_grad()
def test_the_storyteller_reads_and_answers_as_before(tmp_path):
    theirs, words = stories260k()
    pieces = pieces_of_llama2c((folder("stories260K") / "tok512.bin").read_bytes())
    tokens = ["<unk>", "<s>", "</s>", *(piece.replace(" ", "▁") for piece, _ in pieces[3:])]
    keys = {"model": "llama", "tokens": tokens, "scores": [score for _, score in pieces]}
    keys |= {"token_type": [2, 3, 3, *[6] * 256, *[1] * (len(tokens) - 259)]}
    keys |= {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    kind, sizes, tensors = to_gguf(theirs)
    names = {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
    loaded = load_model(write_gguf(tmp_path / "stories.gguf", {**sizes, **names}, tensors, architecture=kind))
    for text in TEXTS:
        ids = loaded.tokenizer.encode(text).ids
        assert ids == words.encode(text).ids
        assert loaded.tokenizer.decode(ids) == text
        assert_close(loaded.model(torch.tensor([ids])), theirs(torch.tensor([ids])).logits, rtol=0, atol=1e-4)
    assert loaded.tokenizer.encode("Once upon a time").ids == [1, 403, 407, 261, 378]
    assert loaded.chat_template is None
    assert loaded.end_ids == (2,)
