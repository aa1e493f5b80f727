"""Exact attention over some of the keys, in time and memory that grow with their number only."""

from regard.attention.sparse.banded import attend_banded

__all__ = ["attend_banded"]
