"""Layers put together until logits come out: models of our own, and those that others made.

A model is built from its config, or opened with its weights by `regard.open_model`.

>>> import regard
>>> config = regard.models.GPTConfig(vocab_size=10, width=8, heads=2, layers=1, context=16)
>>> sum(parameter.numel() for parameter in config.build().parameters())
1096
"""

from regard.models.bert import Bert
from regard.models.bert_config import BertConfig
from regard.models.captioner import Captioner
from regard.models.captioner_config import CaptionerConfig
from regard.models.glimpse import Glimpse
from regard.models.glimpse_config import GlimpseConfig
from regard.models.gpt import GPT, GPTConfig
from regard.models.gpt2 import Gpt2, Gpt2Config
from regard.models.llama import Llama, LlamaConfig
from regard.models.pointer_generator import PointerGenerator, PointerGeneratorConfig
from regard.models.recurrent_classifier import RecurrentClassifier, RecurrentClassifierConfig
from regard.models.sentence_encoder import SentenceEncoder, SentenceEncoderConfig
from regard.models.seq2seq import Seq2Seq, Seq2SeqConfig
from regard.models.swin import Swin
from regard.models.swin_config import SwinConfig
from regard.models.t5 import T5, T5Config
from regard.models.text_classifier import TextClassifier, TextClassifierConfig
from regard.models.translator import Translator, TranslatorConfig
from regard.models.vit import Vit
from regard.models.vit_config import VitConfig

__all__ = [
    "GPT",
    "T5",
    "Bert",
    "BertConfig",
    "Captioner",
    "CaptionerConfig",
    "GPTConfig",
    "Glimpse",
    "GlimpseConfig",
    "Gpt2",
    "Gpt2Config",
    "Llama",
    "LlamaConfig",
    "PointerGenerator",
    "PointerGeneratorConfig",
    "RecurrentClassifier",
    "RecurrentClassifierConfig",
    "SentenceEncoder",
    "SentenceEncoderConfig",
    "Seq2Seq",
    "Seq2SeqConfig",
    "Swin",
    "SwinConfig",
    "T5Config",
    "TextClassifier",
    "TextClassifierConfig",
    "Translator",
    "TranslatorConfig",
    "Vit",
    "VitConfig",
]
