"""A cache of bounded size."""

from types import SimpleNamespace

import pytest

from regard.views.explorer.answer.lru_cache import LruCache


def thing(size: int) -> SimpleNamespace:
    return SimpleNamespace(nbytes=size)


def test_what_was_not_used_for_longest_goes_first():
    cache = LruCache(room=100)
    for name in "abc":
        cache.get(name, lambda: thing(30))
    cache.get("a", lambda: pytest.fail("it is there"))
    cache.get("d", lambda: thing(30))
    assert [cache.has(name) for name in "abcd"] == [True, False, True, True]
    assert cache.used == 90


def test_one_that_is_larger_than_the_room_is_kept_until_the_next():
    cache = LruCache(room=100)
    cache.get("large", lambda: thing(500))
    assert cache.has("large")
    cache.get("small", lambda: thing(1))
    assert not cache.has("large")
    assert cache.used == 1


def test_a_maker_that_fails_leaves_nothing_and_may_try_again():
    cache = LruCache()
    with pytest.raises(ZeroDivisionError):
        cache.get("x", lambda: 1 // 0)
    assert cache.get("x", lambda: 3) == 3
    assert not cache.gates


def test_bytes_count_as_many_as_they_are_and_may_be_looked_at_without_waiting():
    cache = LruCache(10)
    cache.get("a", lambda: b"123456")
    assert (cache.peek("a"), cache.peek("b"), cache.used) == (b"123456", None, 6)
    cache.get("b", lambda: b"12345")
    assert (cache.peek("a"), cache.peek("b"), cache.used) == (None, b"12345", 5)
    inside = []
    cache.get("c", lambda: inside.append(cache.peek("c")) or b"1")
    assert inside == [None]
