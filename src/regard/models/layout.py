"""The files by which the folder of a model is recognised."""

RUN, RUN_MODEL = "run.json", "model"  # of a run of training: its manifest, and, in the end, the folder of its model
CONFIG = "config.json"  # of a model of `transformers`
GGUF = ".gguf"  # how the name of a GGUF file ends
