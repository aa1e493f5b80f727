"""The tokens that mean something else than themselves, with the same ids in every vocabulary of ours."""

PAD, BEGIN, END, UNKNOWN = range(4)
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
