"""Attention as people write it without a softmax over rows and a product: one small module for each way.

Where one matrix of weights meets values, `met` is the module's own record of it, (b, h, q, k): a test compares with
that.
"""

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from torch import Tensor, nn

B, H, Q, K, D, E, WIDTH = 3, 2, 7, 5, 4, 6, 8


class Written(nn.Module):
    """Queries of `x`, keys and values of `source`; what is done with them is written by whoever extends it."""

    num_heads = H

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(WIDTH, H * D), nn.Linear(WIDTH, H * D), nn.Linear(WIDTH, H * E)
        self.out = nn.Linear(H * E, WIDTH)
        self.met: Tensor | None = None

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        q = self.q(x).unflatten(-1, (H, D)).transpose(1, 2)  # b h q d
        k = self.k(source).unflatten(-1, (H, D)).transpose(1, 2)
        v = self.v(source).unflatten(-1, (H, E)).transpose(1, 2)
        mixed: Tensor = self.out(self.attend(q / math.sqrt(D), k, v).transpose(1, 2).flatten(2))
        return mixed

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        raise NotImplementedError

    def record(self, weights: Tensor) -> Tensor:
        self.met = weights.detach().clone()
        return weights


class ExpOverSum(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.mT
        e = torch.exp(scores - scores.amax(-1, keepdim=True))
        return self.record(e / e.sum(-1, keepdim=True)) @ v


class ExpOfLogSoftmax(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.record(F.log_softmax(q @ k.mT, -1).exp()) @ v


class SoftmaxIntoABuffer(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = (q @ k.mT).detach()
        weights = torch.empty_like(scores)
        torch.softmax(scores, -1, out=weights)
        return self.record(weights) @ v


class TransformerXL(Written):
    """Heads last and batch third, as Dai et al. wrote it: 'ibnd,jbnd->ijbn', softmax over j, 'ijbn,jbnd->ibnd'."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.permute(2, 0, 1, 3) for x in (q, k, v))  # n b h d
        weights = F.softmax(torch.einsum("ibnd,jbnd->ijbn", q, k), dim=1)
        self.record(weights.permute(2, 3, 0, 1))
        return torch.einsum("ijbn,jbnd->ibnd", weights, v).permute(1, 2, 0, 3)


class HeadsFirst(Written):
    """Heads before the batch, in both operands and in the outcome."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))  # h b n d
        e = (q @ k.mT).exp()
        weights = e / e.sum(-1, keepdim=True)
        self.record(weights.transpose(0, 1))
        return (weights @ v).transpose(0, 1)


class Sigmoid(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.record(torch.sigmoid(q @ k.mT - math.log(K))) @ v


class SquaredRelu(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.record(F.relu(q @ k.mT).square()) @ v


class NonLocal(Written):
    """Channels before positions: the weights are the right operand, transposed."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        theta, phi, g = (x.flatten(0, 1).mT.contiguous() for x in (q, k, v))  # bh d n
        a = torch.softmax(theta.mT @ phi, -1)  # bh q k
        self.record(a.unflatten(0, (B, H)))
        return (g @ a.mT).mT.unflatten(0, (B, H))


class WeightedSum(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        w = self.record(torch.softmax(q @ k.mT, -1))
        return (w[..., None] * v[:, :, None]).sum(-2)


class WeightedSumByExp(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        e = (q @ k.mT).exp()
        w = self.record(e / e.sum(-1, keepdim=True))
        return (w[..., None] * v[:, :, None]).sum(-2)


class Online(Written):
    """Softmax in two blocks of keys, with a running maximum and a running sum."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        top = torch.full((*q.shape[:-1], 1), -torch.inf)
        total, mix = torch.zeros_like(top), torch.zeros(*q.shape[:-1], E)
        for k_block, v_block in zip(k.split(3, -2), v.split(3, -2)):
            scores = q @ k_block.mT
            higher = torch.maximum(top, scores.amax(-1, keepdim=True))
            e, fade = (scores - higher).exp(), (top - higher).exp()
            total = total * fade + e.sum(-1, keepdim=True)
            mix = mix * fade + e @ v_block
            top = higher
        return mix / total


class Linear(Written):
    """No q × k matrix at all (Katharopoulos et al. 2020)."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = F.elu(q) + 1, F.elu(k) + 1
        return (q @ (k.mT @ v)) / (q @ k.sum(-2)[..., None])


class Features(Written):
    """Keys are normalised over positions and meet values first: a matrix of features × positions is no map."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q @ (k.softmax(-2).mT @ v)


class Decayed(Written):
    """Products without a normaliser, with decay in between: MiniMax, retention."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        decay = 0.9 ** (torch.arange(Q)[:, None] - torch.arange(K)).abs()
        return self.record((q @ k.mT) * decay) @ v


class InAThread(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        found = []

        def work() -> None:
            found.append(F.scaled_dot_product_attention(q, k, v, scale=1.0))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return found[0]


class HandedToAThread(Written):
    """torch's own function, as it is: nothing in that thread's stack is of the model."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(F.scaled_dot_product_attention, q, k, v, scale=1.0).result()


class DirectKernel(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with torch.no_grad():
            mixed, _ = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v[..., :D], scale=1.0)
        return F.pad(mixed, (0, E - D))


class Mapped(Written):
    """vmap over the heads: what runs inside has its axes in another order."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        attend = torch.vmap(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=1.0), in_dims=1, out_dims=1)
        return attend(q, k, v)


class Jagged(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        def jagged(x: Tensor) -> Tensor:
            rows = [entry.transpose(0, 1)[: x.shape[-2] - i] for i, entry in enumerate(x)]
            return torch.nested.nested_tensor(rows, layout=torch.jagged).transpose(1, 2)

        mixed = F.scaled_dot_product_attention(jagged(q), jagged(k), jagged(v[..., :D]), scale=1.0)
        rows = [F.pad(entry, (0, E - D, 0, 0, 0, Q - len(entry))) for entry in mixed.transpose(1, 2).unbind()]
        return torch.stack(rows).transpose(1, 2)


class Bahdanau(nn.Module):
    """One query per entry; its softmax has two axes (Bahdanau et al. 2015)."""

    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w2, self.score = nn.Linear(WIDTH, D), nn.Linear(WIDTH, D), nn.Linear(D, 1)
        self.met: Tensor | None = None

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        scores = self.score(torch.tanh(self.w1(x[:, :1]) + self.w2(source))).squeeze(-1)  # b k
        weights = F.softmax(4 * scores, dim=-1)
        self.met = weights.detach().clone()[:, None, None]
        return torch.bmm(weights.unsqueeze(1), source)


class BahdanauAttentionBySum(Bahdanau):
    """The same in Keras' manner: softmax over the second of three axes, then a sum."""

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        scores = self.score(torch.tanh(self.w1(x[:, :1]) + self.w2(source)))  # b k 1
        weights = F.softmax(4 * scores, dim=1)
        self.met = weights.detach().clone().squeeze(-1)[:, None, None]
        return (weights * source).sum(dim=1, keepdim=True)


class AfterSdpa(nn.Module):
    """A layer that any watch hears, and then the one in question."""

    def __init__(self, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = Sdpa(), second

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        x = x + self.first(x, source)
        mixed: Tensor = x + self.second(x, source)
        return mixed


class Sdpa(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, scale=1.0)


WAYS: dict[str, Callable[[], nn.Module]] = {
    "exp over sum": ExpOverSum,
    "exp of log_softmax": ExpOfLogSoftmax,
    "softmax into a buffer": SoftmaxIntoABuffer,
    "Transformer-XL": TransformerXL,
    "heads first": HeadsFirst,
    "sigmoid": Sigmoid,
    "squared ReLU": SquaredRelu,
    "non-local": NonLocal,
    "weighted sum": WeightedSum,
    "weighted sum by exp": WeightedSumByExp,
    "online softmax": Online,
    "linear": Linear,
    "features": Features,
    "decayed": Decayed,
    "in a thread": InAThread,
    "handed to a thread": HandedToAThread,
    "direct kernel": DirectKernel,
    "vmap": Mapped,
    "jagged": Jagged,
    "Bahdanau": Bahdanau,
    "Bahdanau by sum": BahdanauAttentionBySum,
}


def build(way: str) -> tuple[AfterSdpa, Tensor, Tensor]:
    """The model with lively weights, and what goes in."""
    torch.manual_seed(len(way))
    model = AfterSdpa(WAYS[way]()).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * (1.5 / weight.shape[-1] ** 0.5 if weight.ndim > 1 else 0.2))
    return model, torch.randn(B, Q, WIDTH), torch.randn(B, K, WIDTH)
