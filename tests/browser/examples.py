"""Small traces for the browser tests. They are watched, so that q, k, v and a proof are all there."""

import torch

import regard
from regard.tokens import Tokens, patches
from regard.trace.trace import Trace

SENTENCE = (
    "[CLS]",
    "The",
    "cat",
    "sat",
    "on",
    "the",
    "mat",
    "猫",
    "坐",
    "مرحبا",
    "👩‍👩‍👧",
    "internationalisation",
    "[SEP]",
)
LAYERS, HEADS, WIDTH = 3, 4, 20

LONG = "x" * 4_990 + "<b>middle</b>" + "y" * 4_997
HOSTILE = (
    "</script><script>window.__pwned=1</script>",
    "<img src=x onerror=\"window.__pwned=2;alert('pwned')\">",
    "<!--<script>window.__pwned=3",
    "<svg onload=alert(4)>",
    "\"'`${alert(5)}\\",
    "javascript:alert(6)",
    "a\u2028b\u2029c",
    "\u202eRTL\u2066\u2069",
    "NUL\x00here",
    "\ud83d",
    "\udc00tail",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "&lt;&amp;{{x}}<%= y %>",
    "]]>&#x3C;",
    LONG,
)
assert len(LONG) == 10_000


class Stack(torch.nn.Module):
    """Layers of self-attention with a residual stream, nothing else."""

    def __init__(self, layers: int, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(regard.MultiHead(width, heads=heads) for _ in range(layers))
        self.mask = regard.causal() if causal else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x, mask=self.mask)
        return x


def watched(tokens: Tokens, *, seed: int = 0, causal: bool = True, layers: int = LAYERS, heads: int = HEADS) -> Trace:
    """What a stack attends to; its weights are large enough that the maps are no grey areas."""
    torch.manual_seed(seed)
    model = Stack(layers, WIDTH, heads, causal).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(2)
        with regard.watch(model, tokens) as trace:
            model(torch.randn(1, len(tokens.shown), WIDTH))
    return trace


def special(shown: tuple[str, ...]) -> Tokens:
    return Tokens(shown, special=tuple(one in ("[CLS]", "[SEP]") for one in shown))


def stack() -> Trace:
    """The one that all views are tried on: 3 layers, 4 heads, 13 tokens, causal."""
    return watched(special(SENTENCE))


def other() -> Trace:
    """The same tokens, another model: to compare with."""
    return watched(special(SENTENCE), seed=1)


def hostile() -> Trace:
    """Tokens that would like to be more than text."""
    return watched(special(HOSTILE), seed=2, causal=False)


def picture() -> Trace:
    """3 × 5 patches after a token that sums them up."""
    return watched(patches(3, 5, prefix=1), seed=3, causal=False)


def long() -> Trace:
    """More tokens than a screen has room for, and more than one tile."""
    return watched(Tokens(tuple(f"t{i}" for i in range(700))), seed=4, layers=2, heads=2)


ALL = {"stack": stack, "other": other, "hostile": hostile, "picture": picture, "long": long}
