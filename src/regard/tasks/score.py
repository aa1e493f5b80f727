"""How good a translation is, by the field's own measures."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from regard.errors import ConfigError
from regard.extras import importing


class Scores(NamedTuple):
    """BLEU and chrF with the signatures that make them comparable."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


def score_texts(
    written: Sequence[str], references: Sequence[Sequence[str]], *, tokenizer: str = "13a", lower: bool = False
) -> Scores:
    """Corpus scores of what was written; `references[i]` are all right answers to the i-th source.

    >>> score_texts(["猫坐在垫子上。"], [["猫坐在垫子上。"]], tokenizer="zh").bleu
    100.0
    """
    sacrebleu = load_sacrebleu()
    most = max(len(right) for right in references)
    columns = [[right[i] if i < len(right) else None for right in references] for i in range(most)]
    bleu = sacrebleu.metrics.BLEU(tokenize=tokenizer, lowercase=lower)
    chrf = sacrebleu.metrics.CHRF(lowercase=lower)
    found, letters = bleu.corpus_score(list(written), columns), chrf.corpus_score(list(written), columns)
    return Scores(
        round(float(found.score), 4),
        round(float(letters.score), 4),
        str(bleu.get_signature()),
        str(chrf.get_signature()),
    )


def load_sacrebleu() -> Any:
    """sacrebleu, or a `ConfigError` that says how to get it."""
    missing = ConfigError("to score translations, install regard[train]: pip install 'regard[train]'")
    with importing("sacrebleu", missing=missing):
        import sacrebleu
        import sacrebleu.metrics
    return sacrebleu


def tokenizer_for(texts: Sequence[str]) -> str:
    """sacrebleu's tokeniser for a language, seen from its letters: "zh" for Chinese, "13a" else.

    >>> tokenizer_for(["猫坐在垫子上"]), tokenizer_for(["die Katze"])
    ('zh', '13a')
    """
    letters = "".join(texts[:200])
    chinese = sum("\u4e00" <= letter <= "\u9fff" for letter in letters)
    return "zh" if chinese * 3 > len(letters) else "13a"
