"""Settings from flags and files, and what is said where they are wrong."""

from pathlib import Path

import pytest

from regard.errors import ConfigError
from regard.training.settings import Settings, describe_settings, read_flags, read_toml, settings_from


def test_flags_and_a_file_say_the_same(tmp_path: Path):
    path = tmp_path / "a.toml"
    path.write_text('steps = 30\n[optimiser]\nlr = 0.002\nlr_schedule = "cosine"\nbetas = [0.8, 0.95]\n')
    from_file = settings_from(Settings, read_toml(path))
    flags = ["--steps", "30", "--lr=0.002", "--lr-schedule", "cosine"]
    from_flags = settings_from(Settings, read_flags(flags) | {"betas": (0.8, 0.95)})
    assert from_file == from_flags
    assert (from_file.steps, from_file.lr, from_file.betas) == (30, 0.002, (0.8, 0.95))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"setps": 3}, "there is no setting 'setps'; did you mean 'steps'"),
        ({"zzz": 3}, "there is no setting 'zzz'; there are average_checkpoints, betas"),
        ({"steps": 0}, "steps is 0, but input should be greater than or equal to 1 .steps: training steps."),
        ({"steps": "many"}, "steps is 'many', but input should be a valid integer"),
        ({"lr_schedule": "linaer"}, "lr_schedule is 'linaer', but input should be 'linear', 'cosine'"),
    ],
)
def test_what_is_wrong_is_named(given, said):
    with pytest.raises(ConfigError, match=said):
        settings_from(Settings, given)


def test_a_word_that_belongs_to_no_flag_is_refused():
    with pytest.raises(ConfigError, match="'fast' belongs to no setting"):
        read_flags(["--steps", "3", "fast"])
    assert read_flags(["--no-tied", "--lowercase"]) == {"tied": False, "lowercase": True}


def test_files_that_are_no_toml_are_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_toml(tmp_path / "none.toml")
    (tmp_path / "b.toml").write_text("steps 30")
    with pytest.raises(ConfigError, match="is no TOML"):
        read_toml(tmp_path / "b.toml")


def test_every_setting_is_described():
    assert all(row.flag and row.about and row.default for row in describe_settings(Settings))
