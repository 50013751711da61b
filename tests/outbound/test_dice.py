"""Chance: enough of it, and never the same for two."""

import os
import threading

from penstock.outbound.dice import SystemDice


def test_shares_lie_from_nought_to_below_one():
    dice = SystemDice()

    assert all(0 <= dice.share() < 1 for _ in range(1_000))


def test_as_many_bits_as_asked_for_come_and_all_of_them_vary():
    dice = SystemDice()

    drawn = [dice.bits(74) for _ in range(2_000)]

    assert max(drawn) < 2**74
    seen_set = seen_clear = 0
    for number in drawn:
        seen_set |= number
        seen_clear |= ~number & (2**74 - 1)
    assert seen_set == seen_clear == 2**74 - 1
    assert len(set(drawn)) == 2_000


def test_threads_never_draw_the_same():
    dice = SystemDice()
    drawn: list[int] = []

    def draw() -> None:
        drawn.extend([dice.bits(74) for _ in range(5_000)])

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(drawn)) == 20_000


def test_a_forked_child_draws_other_numbers_than_its_parent():
    dice = SystemDice()
    dice.bits(74)
    read_end, write_end = os.pipe()

    if os.fork() == 0:
        os.write(write_end, str(dice.bits(74)).encode())
        os._exit(0)
    ours = dice.bits(74)
    os.wait()

    assert int(os.read(read_end, 100)) != ours
    os.close(read_end)
    os.close(write_end)
