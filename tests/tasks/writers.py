"""Small random models that write, with tokenizers for any text."""

from types import SimpleNamespace

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from regard.models import GPTConfig
from regard.tasks.text_writer import TextWriter

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
END = len(ALPHABET)  # the id of <eos>


def bytewise():
    """A token for each byte, and one that ends a text."""
    tokenizer = Tokenizer(models.BPE({**{sign: i for i, sign in enumerate(ALPHABET)}, "<eos>": END}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens(["<eos>"])
    return tokenizer


def random_model(seed=0, context=64, positions="rotary", **sizes):
    """A GPT that prefers no token by chance of its first weights; float64."""
    torch.manual_seed(seed)
    sizes = {"width": 12, "heads": 3, "layers": 2, "hidden": 8, **sizes}
    model = GPTConfig(END + 1, context=context, positions=positions, tied=False, **sizes).build()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.double().eval()


class Parrot:
    """A model that says a fixed text, whatever it reads; `config` is all that a writer asks for besides."""

    config = SimpleNamespace(vocab_size=END + 1, context=400)

    def __init__(self, text, tokenizer=None):
        self.ids = [*(tokenizer or bytewise()).encode(text).ids, END]

    def begin(self, rows, *, window=None, sinks=0):
        return ParrotState(self.ids, len(rows), torch.tensor([row[-1:] for row in rows]))


class ParrotState:
    def __init__(self, ids, rows, prompt):
        self.ids, self.said, self.rows, self.prompt = ids, 0, rows, prompt

    def __call__(self, ids):
        logits = torch.full((len(ids), END + 1), -20.0)
        logits[:, self.ids[min(self.said, len(self.ids) - 1)]] = 0.0
        self.said += 1
        return logits

    def take_prompt(self, rows, steps):
        return self.prompt

    def reorder(self, index):
        pass

    def attention(self):
        return None


def parrot(text, **more):
    return TextWriter(Parrot(text), bytewise(), **more)
