"""`regard summary` and `regard models`."""

import json

import pytest

from regard.models import embedded
from regard.trace.file import save
from regard.trace.measure.summary import summarise
from tests.cli.run import run
from tests.views.traces import decoder


@pytest.fixture
def trace(tmp_path):
    made = decoder(tokens=9, heads=4, layers=3)
    save(made, tmp_path / "a.trace")
    return made, str(tmp_path / "a.trace")


def heads(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines() if line.strip().startswith("blocks.")]


def test_every_head_has_a_line_with_its_measures(monkeypatch, capsys, trace):
    code, printed, _ = run(monkeypatch, capsys, "summary", trace[1])
    assert code == 0
    lines = heads(printed)
    assert [line[:3] for line in lines] == [[f"blocks.{i}", "self", str(h)] for i in range(3) for h in range(4)]
    wanted = summarise(trace[0]).records()
    assert [line[3] for line in lines] == [f"{row['entropy']:.3f}" for row in wanted]


@pytest.mark.parametrize("descending", [False, True])
def test_it_sorts_by_a_measure(monkeypatch, capsys, trace, descending):
    words = ["--descending"] if descending else []
    _, printed, _ = run(monkeypatch, capsys, "summary", trace[1], "--sort", "entropy", *words)
    shown = [float(line[3]) for line in heads(printed)]
    assert shown == sorted(shown, reverse=descending)
    assert len(set(shown)) > 1


def test_json_has_the_numbers_in_full(monkeypatch, capsys, trace):
    _, printed, _ = run(monkeypatch, capsys, "summary", trace[1], "--json")
    for ours, theirs in zip(json.loads(printed)["heads"], summarise(trace[0]).records(), strict=True):
        assert ours["entropy"] == pytest.approx(theirs["entropy"], rel=1e-6)


def test_more_heads_than_lines_are_counted(monkeypatch, capsys, trace):
    _, printed, _ = run(monkeypatch, capsys, "summary", trace[1], "--lines", "5")
    assert len(heads(printed)) == 5
    assert "… 7 more heads; show them with --lines 12" in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{trace}", "--sort", "size"], "there is no column 'size' to sort by; there are: layer, kind, head, entropy"),
        (["none.trace"], "none.trace"),
        (["{broken}"], "is no trace file"),
        (["{trace}", "--batch", "3"], "saw a batch of 1, but entry 3 was asked for"),
    ],
    ids=["column", "no file", "no trace", "batch"],
)
def test_bad_wishes_are_refused_in_one_sentence(monkeypatch, capsys, tmp_path, trace, words, said):
    (tmp_path / "broken.trace").write_bytes(b"<svg></svg>")
    words = [word.format(trace=trace[1], broken=tmp_path / "broken.trace") for word in words]
    code, printed, beside = run(monkeypatch, capsys, "summary", *words)
    assert (code, printed) == (2, "")
    assert beside.startswith("regard: ")
    assert said in beside


def test_models_are_listed_with_what_they_are_and_how_they_were_made(monkeypatch, capsys):
    code, printed, _ = run(monkeypatch, capsys, "models")
    assert code == 0
    for name in embedded.names():
        facts = embedded.describe(name)
        assert f"{name}: {facts['about']}" in printed
        assert facts["command"] in printed
        assert all(f"learned from: {one['name']} ({one['licence']})\n" in printed for one in facts.get("data", []))
        assert f"  made by: {facts.get('made_by') or facts['command']}\n" in printed  # not by what came later
    assert printed.splitlines()[-1].startswith("Look at one: regard see ")


def test_models_as_json(monkeypatch, capsys):
    _, printed, _ = run(monkeypatch, capsys, "models", "--json")
    found = json.loads(printed)
    assert set(found) == set(embedded.names())
    assert found["induction"]["bytes"] < 1_000_000
