"""Kernels compiled by numba (`regard[fast]`): a decoder's step as one call, in float32 or with the codes of a file.

`engine.py` and `quantized.py` import without numba, and say what to install; the others need it.
"""
