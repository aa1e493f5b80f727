"""A command run inside this process, and small models in folders for it."""

import sys

from regard.cli import main as cli


def run(monkeypatch, capsys, *words: str) -> tuple[int, str, str]:
    """Exit code, what was printed, and what was said beside it."""
    monkeypatch.setattr(sys, "argv", ["regard", *words])
    code = 0
    try:
        cli.main()
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def saved(folder, model_class, config, **sizes):
    """A random model of `transformers` and a word-piece tokenizer, in a folder as that library writes it."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "the", "cat", "##s", "sat", "un", "##seen", "猫"]
    tokenizer = Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    special = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    model_class(config(vocab_size=len(names), **sizes)).save_pretrained(folder)
    return folder
