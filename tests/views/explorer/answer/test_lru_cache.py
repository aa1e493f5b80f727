"""A shelf of bounded room."""

from types import SimpleNamespace

import pytest

from regard.views.explorer.answer.lru_cache import LruCache


def thing(size: int) -> SimpleNamespace:
    return SimpleNamespace(nbytes=size)


def test_what_was_not_used_for_longest_goes_first():
    shelf = LruCache(room=100)
    for name in "abc":
        shelf.get(name, lambda: thing(30))
    shelf.get("a", lambda: pytest.fail("it is there"))
    shelf.get("d", lambda: thing(30))
    assert [shelf.has(name) for name in "abcd"] == [True, False, True, True]
    assert shelf.used == 90


def test_one_that_is_larger_than_the_room_is_kept_until_the_next():
    shelf = LruCache(room=100)
    shelf.get("large", lambda: thing(500))
    assert shelf.has("large")
    shelf.get("small", lambda: thing(1))
    assert not shelf.has("large")
    assert shelf.used == 1


def test_a_maker_that_fails_leaves_nothing_and_may_try_again():
    shelf = LruCache()
    with pytest.raises(ZeroDivisionError):
        shelf.get("x", lambda: 1 // 0)
    assert shelf.get("x", lambda: 3) == 3
    assert not shelf.gates


def test_bytes_count_as_many_as_they_are_and_may_be_looked_at_without_waiting():
    shelf = LruCache(10)
    shelf.get("a", lambda: b"123456")
    assert (shelf.peek("a"), shelf.peek("b"), shelf.used) == (b"123456", None, 6)
    shelf.get("b", lambda: b"12345")
    assert (shelf.peek("a"), shelf.peek("b"), shelf.used) == (None, b"12345", 5)
    inside = []
    shelf.get("c", lambda: inside.append(shelf.peek("c")) or b"1")
    assert inside == [None]
