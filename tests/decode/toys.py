"""Small models in the middle of writing, and what every text would score under them, in plain loops."""

import itertools
import math

import torch

END = 2


class Recurrent:
    """A recurrent model with random weights that looks at a source of its own in every row; float64.

    Rows may have sources of different lengths: those that are shorter are padded, and nobody looks there.
    """

    def __init__(self, sources, vocabulary=9, width=5, seed=0, end=0.0, lean=2.5):
        generator = torch.Generator().manual_seed(seed)
        draw = lambda *size: torch.randn(*size, dtype=torch.float64, generator=generator)  # noqa: E731
        self.embed, self.onward, self.out = draw(40, width), draw(width, width), draw(width, vocabulary) * lean
        self.out[:, 0] = 0  # PAD has its share, although nobody says it
        self.lift = torch.zeros(vocabulary, dtype=torch.float64)
        self.lift[END] = end
        longest = max(map(len, sources))
        self.source = torch.zeros(len(sources), longest, width, dtype=torch.float64)
        self.seen = torch.zeros(len(sources), longest, dtype=torch.bool)
        for row, ids in enumerate(sources):
            self.source[row, : len(ids)] = self.embed[torch.tensor(ids)]
            self.seen[row, : len(ids)] = True
        self.state = self.source.sum(1)
        self.weights = None
        self.asked, self.sizes = 0, []

    def __call__(self, ids):
        assert ids.shape == (len(self.state), 1)
        self.sizes.append(len(ids))
        scores = (self.source @ self.state[:, :, None])[:, :, 0].masked_fill(~self.seen, -torch.inf)
        self.weights = scores.softmax(-1)
        mix = (self.weights[:, None] @ self.source)[:, 0]
        self.state = torch.tanh(self.state @ self.onward + self.embed[ids[:, 0]] + mix)
        return self.state @ self.out + self.lift

    def reorder(self, index):
        self.state, self.source, self.seen = self.state[index], self.source[index], self.seen[index]
        self.weights = None if self.weights is None else self.weights[index]

    def attention(self):
        self.asked += 1
        return self.weights


class Table:
    """Says by its last token alone: row i of the table holds the logits after token i."""

    def __init__(self, table):
        self.table = table

    def __call__(self, ids):
        return self.table[ids[:, -1]]

    def reorder(self, index):
        pass

    def attention(self):
        return None


def read(make, ids):
    """(log p(ids), the log-probabilities of what comes next, how much each source position was looked at)."""
    steps, total, looked = make(), 0.0, 0.0
    for previous, token in zip([1, *ids], [*ids, None]):
        chances = steps(torch.tensor([[previous]])).log_softmax(-1)[0]
        now = steps.attention()
        looked = 0.0 if now is None else looked + now[0]
        if token is not None:
            total += float(chances[token])
    return total, chances, looked


def all_texts(make, vocabulary, longest, shortest=0, never=(0, 1)):
    """Every text there is, with log p(ids END) and the coverage of its source."""
    words = [i for i in range(vocabulary) if i not in (*never, END)]
    for length in range(shortest, longest + 1):
        for ids in itertools.product(words, repeat=length):
            total, chances, looked = read(make, list(ids))
            yield list(ids), total + float(chances[END]), looked


def covered(looked, beta):
    return beta * sum(math.log(min(float(x), 1.0)) for x in looked) if beta else 0.0


def by_hand(make, vocabulary, *, beams, divisor, stop, longest, shortest=0, beta=0.0, never=(0, 1)):
    """Beam search in plain loops, each text read anew from its beginning: all that is finished, best first."""
    opened, finished = [([], 0.0)], []
    for said in range(longest + 1):
        ways = []
        for ids, total in opened:
            _, chances, looked = read(make, ids)
            for token in range(vocabulary):
                allowed = token not in never and (token == END or said < longest) and (token != END or said >= shortest)
                if allowed:
                    ways.append((total + float(chances[token]), ids, token, looked))
        ways.sort(key=lambda way: -way[0])
        for score, ids, token, looked in ways[:beams]:
            if token == END:
                finished.append((ids, score / divisor(said + 1) + covered(looked, beta)))
        finished = sorted(finished, key=lambda text: -text[1])[:beams]
        opened = [([*ids, token], score) for score, ids, token, _ in ways if token != END][:beams]
        if not opened:
            break
        full = len(finished) == beams
        if stop == "full" and full:
            break
        if stop == "likely" and full and opened[0][1] / divisor(said + 1) <= finished[-1][1]:
            break
    return finished
