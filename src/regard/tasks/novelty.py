"""How much of a summary is not in its source: whether a model copies or writes."""

import re
from collections.abc import Sequence

LONGEST = 4  # words of an n-gram
WORD = re.compile(r"\w+")


def novel_ngrams(texts: Sequence[str], summaries: Sequence[str]) -> list[float]:
    """The shares of the n-grams of all summaries that their sources lack, for n = 1 … 4 (See et al. 2017, figure 6).

    Words are runs of letters and digits in lower case. An n-gram that stands twice in a summary counts twice. Where no
    summary has n words, the share is 0.

    >>> novel_ngrams(["the cat sat on the mat"], ["The cat sat on a mat"])
    [0.16666666666666666, 0.4, 0.5, 0.6666666666666666]
    """
    novel, whole = [0] * LONGEST, [0] * LONGEST
    for text, summary in zip(texts, summaries, strict=True):
        read, written = (WORD.findall(one.lower()) for one in (text, summary))
        for n in range(1, LONGEST + 1):
            known = {tuple(read[i : i + n]) for i in range(len(read) - n + 1)}
            for i in range(len(written) - n + 1):
                novel[n - 1] += tuple(written[i : i + n]) not in known
                whole[n - 1] += 1
    return [part / total if total else 0.0 for part, total in zip(novel, whole)]
