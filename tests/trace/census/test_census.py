"""A census finds the heads that were built into a model by hand."""

import json
import multiprocessing
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from io import StringIO

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from regard.attention.map import AttentionMap
from regard.errors import TraceError
from regard.trace.census.census import Census, census
from regard.trace.census.corpus import batches, encode, find_rarest, special_names
from regard.trace.census.labels import THRESHOLDS, label
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace

KINDS = ["previous-token", "self", "sink", "induction", "duplicate", "positional", "rare-word", None]
VOCABULARY, RARE = 40, 30  # ids from 30 on are seldom drawn


def scores(ids, kind):
    """The scores of one built-in head, (b, n, n)."""
    b, n = ids.shape
    i = torch.arange(n)
    offset = (i[:, None] - i).expand(b, n, n)
    same = ids[:, :, None] == ids[:, None, :]
    after = torch.zeros(b, n, n, dtype=torch.bool)
    after[:, :, 1:] = same[:, :, :-1] & (offset[:, :, :-1] > 0)
    cold = torch.stack([torch.randn(n, n, generator=torch.Generator().manual_seed(int(one.sum()))) for one in ids])
    return {
        "previous-token": 9.0 * (offset == 1),
        "next-token": 9.0 * (offset == -1),
        "self": 9.0 * (offset == 0),
        "sink": 9.0 * (i == 0).expand(b, n, n),
        "induction": 9.0 * after,
        "duplicate": 9.0 * (same & (offset != 0)),
        "positional": -2.0 * (offset - 3).abs().clamp_max(5),
        "rare-word": 3.0 * (ids >= RARE)[:, None, :].expand(b, n, n),
        None: 1.5 * cold,
    }[kind].float()


class Built(nn.Module):
    """One attention whose heads do what their names say; q is the identity and k the wished scores."""

    def __init__(self, kinds=KINDS, *, is_causal=True):
        super().__init__()
        self.kinds, self.is_causal, self.inner = kinds, is_causal, nn.Dropout(0.5)
        self.last = None

    def forward(self, ids):
        assert not self.training
        b, n = ids.shape
        q = torch.eye(n).expand(b, len(self.kinds), n, n)
        k = torch.stack([scores(ids, kind).mT for kind in self.kinds], 1)  # b h k q
        self.last = (q, k)
        return scaled_dot_product_attention(q, k, k, is_causal=self.is_causal, scale=1.0)


@contextmanager
def by_hand(model, **_):
    """A watch that knows the one model there is."""
    trace = Trace()
    yield trace
    import regard

    q, k = model.last
    mask = regard.causal() if model.is_causal else None
    weights = regard.attend(q, k, k, mask=mask, scale=1.0).weights
    trace.runs.append(Run([Layer("attention", "self", weights)]))


def corpus(texts=12, seed=0):
    """Ids of which the upper ones are rare, in texts of two lengths, with repeated stretches."""
    random = torch.Generator().manual_seed(seed)
    found = []
    for number in range(texts):
        n = 30 if number % 2 else 41
        common = torch.randint(3, RARE, (n,), generator=random)
        rare = torch.randint(RARE, VOCABULARY, (n,), generator=random)
        found.append(torch.where(torch.rand(n, generator=random) < 0.15, rare, common).tolist())
    return found


def test_every_built_in_head_gets_its_name_with_the_evidence():
    found = census(Built(), corpus(), watch=by_hand, progress=False)
    assert [row["label"] for row in found.rows] == KINDS
    assert isinstance(found, Census)
    assert (found.texts, found.tokens) == (12, 12 // 2 * (30 + 41))
    for head, kind in enumerate(KINDS):
        evidence = found.evidence("attention", head)
        assert evidence.label == kind
        if kind is None:
            assert evidence.runner_up_score < evidence.runner_up_threshold
            assert found.why("attention", head).startswith("nothing reached its threshold; nearest: ")
        else:
            assert evidence.score >= evidence.threshold == THRESHOLDS[kind]
            assert found.find(kind) == [("attention", head)]
            assert found.why("attention", head).startswith(f"{kind} {evidence.score:.2f}, threshold")
        assert evidence.runner_up not in (None, kind)
    assert found.rows[0]["rows"] == found.tokens


def test_a_model_that_looks_both_ways_has_next_token_heads():
    kinds = ["next-token", "sink", "previous-token"]
    found = census(Built(kinds, is_causal=False), corpus(), watch=by_hand, progress=False)
    assert [row["label"] for row in found.rows] == kinds


def test_the_numbers_are_means_over_all_rows_of_the_corpus_whatever_the_batches():
    texts = corpus(7)
    one, all_at_once = (census(Built(), texts, batch=b, watch=by_hand, progress=False) for b in (1, 5))
    for mine, yours in zip(one.records(), all_at_once.records(), strict=True):
        assert mine.keys() == yours.keys()
        for name, value in mine.items():
            assert value == (pytest.approx(yours[name], abs=1e-6) if isinstance(value, float) else yours[name]), name
    model, total, rows = Built(), 0.0, 0
    for text in texts:
        model.eval()(torch.tensor([text]))
        q, k = model.last
        w = torch.softmax((q @ k.mT)[0, 0].masked_fill(torch.ones(q.shape[2], q.shape[2]).triu(1) > 0, -1e9), -1)
        total, rows = total + float(w.diagonal(-1).sum()), rows + len(text) - 1
    assert one.rows[0]["previous"] == pytest.approx(total / rows, abs=1e-6)


def said_twice(ids, length, sequences):
    """Random tokens, each sequence twice; lengths differ, so that a head that looks a fixed way back is told apart."""
    random = torch.Generator().manual_seed(0)
    for number in range(sequences):
        drawn = torch.tensor(ids)[torch.randperm(len(ids), generator=random)[: length - number % 4]].tolist()
        yield [*drawn, *drawn]


def test_random_tokens_said_twice_find_the_induction_head():
    found = census(Built(), list(said_twice(range(VOCABULARY), 24, 6)), watch=by_hand, progress=False)
    assert found.find("induction") == [("attention", KINDS.index("induction"))]
    assert found.find("previous-token") == [("attention", 0)]
    induction = found.rows[KINDS.index("induction")]
    assert induction["score"] > 0.9
    assert induction["positional"] < 0.5  # the way back differs from sequence to sequence


def test_the_real_watch_sees_the_same_heads():
    watch = pytest.importorskip("regard.trace.watch").watch
    ours = census(Built(), corpus(4), watch=watch, progress=False)
    theirs = census(Built(), corpus(4), watch=by_hand, progress=False)
    for mine, yours in zip(ours.rows, theirs.rows, strict=True):
        assert mine["label"] == yours["label"]
        assert mine["score"] == pytest.approx(yours["score"], abs=1e-5)


def test_the_model_is_left_as_it_was():
    model = Built().train()
    model.inner.eval()
    census(model, corpus(2), watch=by_hand, progress=False)
    assert (model.training, model.inner.training) == (True, False)

    def fails(model, ids):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        census(model, corpus(2), feed=fails, watch=by_hand, progress=False)
    assert (model.training, model.inner.training) == (True, False)


def test_strings_are_read_by_either_kind_of_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    plain = Tokenizer(models.WordLevel({"[CLS]": 0, "a": 1, "cat": 2, "sat": 3}, unk_token="a"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    plain.add_special_tokens(["[CLS]"])
    plain.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 0)])
    texts = ["a cat sat", "cat sat a cat"]
    found = census(Built(["sink", "self"]), texts, plain, watch=by_hand, progress=False)
    assert found.tokens == 4 + 5
    assert found.rows[0]["to [CLS]"] > 0.9
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, cls_token="[CLS]")
    again = census(Built(["sink", "self"]), texts, fast, watch=by_hand, progress=False)
    assert again.records() == found.records()
    assert special_names(fast) == special_names(plain) == {0: "[CLS]"}


def test_texts_of_one_length_run_together_and_nothing_is_padded():
    found = batches([[1, 2], [3, 4, 5], torch.tensor([6, 7]), torch.tensor([[8, 9], [1, 1]]), []], batch=3, length=None)
    assert [ids.tolist() for ids in found] == [[[1, 2], [6, 7], [8, 9]], [[1, 1]], [[3, 4, 5]]]
    cut = batches([[1, 2], [3, 4, 5]], batch=3, length=2)
    assert [ids.tolist() for ids in cut] == [[[1, 2], [3, 4]]]


@pytest.mark.parametrize(
    ("texts", "options", "said"),
    [
        ("a text", {}, "texts is one string; give several"),
        (["a text"], {}, "a tokenizer is needed"),
        ([], {}, "no text holds any token"),
        ([[]], {}, "no text holds any token"),
        ([{}], {}, "a text is dict; give strings"),
        ([torch.ones(2)], {}, r"ids came as torch.float32 \(2,\)"),
        ([[1]], {"batch": 0}, "batch is 0 and length None"),
    ],
    ids=["one string", "no tokenizer", "no texts", "empty", "dict", "floats", "batch"],
)
def test_what_is_no_corpus_is_refused_in_a_sentence(texts, options, said):
    with pytest.raises(TraceError, match=said):
        census(Built(), texts, watch=by_hand, progress=False, **options)


def test_a_model_without_attention_gives_no_census():
    @contextmanager
    def nothing(model, **_):
        yield Trace([Run([])])

    with pytest.raises(TraceError, match="no attention was seen"):
        census(nn.Embedding(9, 2), [[1, 2]], watch=nothing, progress=False)


def test_the_rarest_quarter_holds_whole_groups_of_equally_rare_tokens():
    some = [torch.tensor([[0, 0, 0, 0, 1, 1, 2, 2, 3, 4]])]
    assert find_rarest(some).tolist() == [1, 2, 3, 4]  # 3 and 4 alone fill only a fifth
    assert find_rarest([torch.tensor([[0, 0, 0, 0, 0, 0, 1, 2]])]).tolist() == [1, 2]
    assert encode([1, 2], None) == [[1, 2]]


def test_labels_prefer_the_special_over_the_general_and_name_the_runner_up():
    evidence = label({"previous": 0.45, "positional": 0.99, "rare": 5.0})
    assert evidence == ("previous-token", 0.45, 0.4, "rare-word", 5.0, 2.0)
    assert label({"positional": 0.8, "rare": 1.5}).label == "positional"
    assert label({"positional": 0.2, "rare": 1.3}).runner_up == "positional"  # 1 is what a head gives without caring
    assert label({"sink": 0.49, "previous": None}) == (None, None, None, "sink", 0.49, 0.5)
    assert label({}) == (None,) * 6
    assert str(label({})) == "nothing reached its threshold; nearest: nothing was measured"
    found = Census([{"layer": "a", "head": 0, "label": None}])
    with pytest.raises(TraceError, match="no head is ever called 'clever'"):
        found.find("clever")
    with pytest.raises(TraceError, match="no head 7 in 'a'"):
        found.evidence("a", 7)


def test_a_census_is_a_table():
    from rich.console import Console

    found = census(Built(), corpus(2), watch=by_hand, progress=False)
    best = found.sort("score", descending=True)
    assert isinstance(best, Census)
    assert best.texts == 2
    assert best.rows[-1]["label"] is None
    console = Console(width=100, file=StringIO())
    console.print(found)
    assert "previous-token" in console.file.getvalue()
    assert "2 texts" in repr(found)


def test_the_bar_shows_only_on_a_terminal(monkeypatch, capsys):
    census(Built(), corpus(2), watch=by_hand)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    monkeypatch.delenv("NO_COLOR", raising=False)
    census(Built(), corpus(2), watch=by_hand)
    assert "census" in capsys.readouterr().err
    census(Built(), corpus(2), watch=by_hand, progress=False)
    assert capsys.readouterr().err == ""


def same(whole, alone):
    """Records that agree but for the order in which sums were taken."""
    for mine, yours in zip(whole, alone, strict=True):
        for name, value in mine.items():
            assert value == (pytest.approx(yours[name], abs=1e-9) if isinstance(value, float) else yours[name]), name


def one_of_two(rank, port, out):
    """What each of two processes does: a census, one with too few texts, and one in which the second fails."""
    import torch.distributed as dist

    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    said = [census(Built(), corpus(6), watch=by_hand, progress=False).records()]
    assert not dist.is_initialized()
    dist.init_process_group("gloo")
    said.append(census(Built(), corpus(1), watch=by_hand, progress=False).records())

    def feed(model, ids):
        if rank == 1:
            raise OSError("the disk is full")
        return model(ids)

    try:
        census(Built(), corpus(4), watch=by_hand, progress=False, feed=feed)
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}")
    dist.destroy_process_group()
    out.write_text(json.dumps(said))


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs processes that start at once")
def test_two_processes_share_the_texts_and_return_the_same_census(tmp_path):
    fork, port = multiprocessing.get_context("fork"), free_port()
    files = [tmp_path / f"{rank}.json" for rank in range(2)]
    started = [fork.Process(target=one_of_two, args=(rank, port, file)) for rank, file in enumerate(files)]
    for one in started:
        one.start()
    for one in started:
        one.join(60)
    assert [one.exitcode for one in started] == [0, 0]
    first, second = (json.loads(file.read_text()) for file in files)
    assert first[:2] == second[:2]
    same(first[0], census(Built(), corpus(6), watch=by_hand, progress=False).records())
    same(first[1], census(Built(), corpus(1), watch=by_hand, progress=False).records())
    assert first[2] == "TraceError: process 1 stopped: OSError: the disk is full"
    assert second[2] == "OSError: the disk is full"


SHARED = """
import json, os, pathlib, sys
sys.path.insert(0, {root!r})
from tests.trace.measure.test_census import Built, by_hand, corpus
from regard.trace.census.census import census
found = census(Built(), corpus(6), watch=by_hand, progress=False)
pathlib.Path({folder!r}, os.environ["RANK"] + ".json").write_text(json.dumps(found.records()))
"""


@pytest.mark.slow
def test_torchrun_gives_every_process_the_census_of_all(repository, tmp_path):
    script = tmp_path / "count.py"
    script.write_text(SHARED.format(root=str(repository), folder=str(tmp_path)))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}"]
    subprocess.run([*command, str(script)], check=True, timeout=200)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    same(first, census(Built(), corpus(6), watch=by_hand, progress=False).records())


@pytest.mark.slow
def test_smollm2_has_sinks_and_induction_heads():
    from tests.trace.checkpoints import smollm2

    model, _ = smollm2(layers=20)
    found = census(model, list(said_twice(range(1000, 40000), 30, 3)), batch=1, progress=False)
    assert found.evidence("model.layers.18.self_attn", 6).label == "induction"
    assert ("model.layers.17.self_attn", 3) in found.find("induction")
    assert len(found.find("sink")) > 20 * 9 / 4
    assert len(found) == 20 * 9


def test_cross_attention_is_counted_without_neighbours():
    @contextmanager
    def crossing(model, **_):
        weights = torch.zeros(1, 2, 3, 5)
        weights[:, 0, :, 0] = 1.0
        weights[:, 1] = 0.2
        yield Trace([Run([Layer("cross", "cross", AttentionMap.stored(weights))])])

    found = census(nn.Embedding(9, 2), [[1, 2, 3]], watch=crossing, progress=False)
    assert [row["label"] for row in found.rows] == ["sink", None]
    assert "previous" not in found.columns
