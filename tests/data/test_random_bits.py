"""Random numbers by their place: those of SplitMix64, and each a function of its place alone."""

import numpy as np

from regard.data.random_bits import GOLDEN, draw_bits, mix


def test_the_mixer_is_splitmix64():
    state = np.uint64(1234567) + np.arange(5, dtype=np.uint64) * GOLDEN
    published = [  # by the reference in C (Vigna 2015), as many test suites have them
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip
    assert mix(state).tolist() == published


def test_a_part_of_many_draws_is_what_it_is_among_all_of_them():
    rows, columns = np.arange(7)[:, None], np.arange(11)
    whole = draw_bits(3, rows, 5, columns)
    assert whole.shape == (7, 11)
    assert draw_bits(3, np.array([4]), 5, columns).tolist() == whole[4].tolist()
    assert len(set(whole.flatten().tolist())) == 77


def test_each_bit_is_one_half_of_the_time():
    bits = draw_bits(1, np.arange(20_000))
    shares = [(bits >> np.uint64(at) & np.uint64(1)).mean() for at in range(64)]
    assert max(abs(share - 0.5) for share in shares) < 5 * 0.5 / 20_000**0.5


def test_places_in_another_order_are_other_numbers():
    assert draw_bits(1, 2, np.arange(3)).tolist() != draw_bits(2, 1, np.arange(3)).tolist()
