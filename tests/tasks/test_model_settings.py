"""Hyper-parameters stand once: settings take names and types from the config of the model, and fill it."""

from dataclasses import fields

import pytest
from pydantic import BaseModel

from regard.errors import ConfigError
from regard.models import GPTConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.translator import TranslatorConfig
from regard.tasks import names, task_named
from regard.tasks.induction import InductionSettings
from regard.tasks.model_settings import Hyperparameter, fill_config, with_hyperparameters
from regard.tasks.sequences import SequenceSettings
from regard.tasks.translate import TranslateSettings
from regard.training.settings import Settings, settings_from


def test_every_setting_of_a_size_reaches_the_model():
    given = {"width": 6, "layers": 3, "dropout": 0.25, "tied": False, "shared": True}
    transformer = settings_from(TranslateSettings, given | {"heads": 2, "hidden": 5, "order": "post"}).config(7, 11)
    assert transformer == TranslatorConfig(7, 11, **given, heads=2, hidden=5, order="post")
    recurrent = TranslateSettings(**given, model="recurrent", cell="lstm", attention="dot").config(7, 11)
    assert recurrent == Seq2SeqConfig(7, 11, **given, cell="lstm", attention="dot", input_feeding=False)
    sizes = {"vocab_size": 9, "width": 6, "heads": 3, "layers": 1, "context": 8, "hidden": 4}
    assert InductionSettings(**sizes).config() == GPTConfig(**sizes, positions="rotary", tied=False)


def test_names_and_types_are_those_of_the_config():
    kinds = {field.name: field.type for config in (Seq2SeqConfig, TranslatorConfig) for field in fields(config)}
    mirrored = set(kinds) & set(TranslateSettings.model_fields)
    assert {"width", "heads", "cell", "positions", "tied"} <= mirrored
    for name in mirrored:
        value = getattr(TranslateSettings(), name)
        assert isinstance(value, kinds[name]), name


def test_a_field_that_no_config_has_is_refused():
    with pytest.raises(ConfigError, match="no field 'widht' is in GPTConfig; name one that is"):

        @with_hyperparameters(GPTConfig, widht="hidden size")
        class Sizes(BaseModel):
            pass


def test_limits_and_choices_hold():
    @with_hyperparameters(
        GPTConfig,
        heads=Hyperparameter("heads", 2, most=4),
        norm=Hyperparameter("norm", choices=("layer", "rms")),
        dropout="dropout",
    )
    class Sizes(BaseModel):
        pass

    for wrong in ({"heads": 0}, {"heads": 5}, {"norm": "none"}, {"dropout": 1.0}):
        with pytest.raises(ConfigError):
            settings_from(Sizes, wrong)
    assert fill_config(GPTConfig, Sizes(heads=4, norm="rms"), vocab_size=5, width=8, layers=1, context=3).norm == "rms"


def test_the_engine_has_only_settings_that_every_task_has():
    own = set(Settings.model_fields)
    assert not own & {"batch_tokens", "label_smoothing", "max_length", "width"}
    for name in names():
        assert own <= set(task_named(name).settings.model_fields)


def test_other_defaults_change_nothing_else():
    assert (SequenceSettings().steps, TranslateSettings().steps, Settings().steps) == (2400, 2000, 2000)
    changed, own = SequenceSettings.model_fields["width"], TranslateSettings.model_fields["width"]
    assert (changed.default, own.default) == (64, 128)
    assert (changed.description, changed.metadata) == (own.description, own.metadata)
    with pytest.raises(ConfigError, match="width is 0"):
        settings_from(SequenceSettings, {"width": 0})
