"""Translation as a task of the engine."""

import pytest

from regard.tasks import translate
from regard.tasks.translate import PreparedTranslation, TranslateSettings


@pytest.mark.parametrize("lower", [True, False])
def test_a_run_in_small_letters_is_scored_in_small_letters(tmp_path, monkeypatch, lower):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"a cat {i} sits on the mat\tEine Katze {i} sitzt auf der Matte\n" for i in range(20)))
    settings = TranslateSettings(
        data=str(pairs),
        validation_size=4,
        test_size=3,
        lowercase=lower,
        vocab_size=500,
        width=8,
        heads=2,
        layers=1,
        hidden=8,
    )
    work = PreparedTranslation(settings, tmp_path)
    right = [answers[0] for _, answers in work.asked]
    monkeypatch.setattr(translate, "translate", lambda *_: [text.lower() for text in right])
    assert (work.validate(work.model)["bleu"] == pytest.approx(100)) == lower
