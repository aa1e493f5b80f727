"""Which models say the class of a whole text."""

from torch import nn

from regard.models.bert import Bert
from regard.models.recurrent_classifier import RecurrentClassifier
from regard.models.text_classifier import TextClassifier


def gives_classes(model: nn.Module) -> bool:
    """Whether the logits of a model are those of classes of the whole text, one row for each text.

    >>> from regard.models.bert_config import BertConfig
    >>> sizes = {"vocab_size": 11, "width": 8, "heads": 2, "layers": 1}
    >>> [gives_classes(BertConfig(**sizes, head=head).build()) for head in ("classify", "tags")]
    [True, False]
    """
    if isinstance(model, TextClassifier | RecurrentClassifier):
        return True
    return isinstance(model, Bert) and model.config.head == "classify"
