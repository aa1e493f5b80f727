"""A small GPT and a small BERT of `transformers` with random weights, far from even, and their tokenizers."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import nn
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

TEXT = "the unseen cats sat on the mat"
PIECES = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", "the", "cat", "##s", "sat", "un", "##seen", "on", "mat", "猫"]
WORDS = ["[PAD]", "[UNK]", "the", "cats", "sat", "unseen", "on", "mat", "dog"]
GPT = {"n_embd": 20, "n_layer": 3, "n_head": 2, "n_positions": 40, "bos_token_id": None, "eos_token_id": None}
BERT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 7}


def pieces_tokenizer() -> PreTrainedTokenizerFast:
    """Word pieces between [CLS] and [SEP], with [MASK]."""
    tokenizer = Tokenizer(models.WordPiece({name: i for i, name in enumerate(PIECES)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    named = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", **named)


def words_tokenizer() -> PreTrainedTokenizerFast:
    """Whole words and nothing around them."""
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")


def shake(model: nn.Module, seed: int) -> nn.Module:
    """The same model with weights that make no even maps."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        if parameter.ndim > 1:  # norms stay: a small one would hide what happens below it
            nn.init.normal_(parameter, std=0.4, generator=generator)
    return model.eval()


def make_gpt(tokenizer: Any = None, seed: int = 1) -> tuple[Any, Any]:
    tokenizer = tokenizer or words_tokenizer()
    return shake(GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **GPT)), seed), tokenizer


def make_bert(seed: int = 2) -> tuple[Any, Any]:
    tokenizer = pieces_tokenizer()
    return shake(BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **BERT)), seed), tokenizer


def save_pair(folder: Path) -> tuple[Path, Path]:
    """Both in folders, as that library writes them."""
    folders = folder / "small-gpt", folder / "small-bert"
    for place, (model, tokenizer) in zip(folders, (make_gpt(pieces_tokenizer()), make_bert())):
        model.save_pretrained(place)
        tokenizer.save_pretrained(place)
    return folders
