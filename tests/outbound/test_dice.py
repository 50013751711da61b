"""Random numbers: enough entropy, and never the same twice."""

import os
import threading

from penstock.outbound.dice import SystemDice


def test_shares_are_at_least_zero_and_below_one():
    dice = SystemDice()

    assert all(0 <= dice.share() < 1 for _ in range(1_000))


def test_digits_have_the_requested_length_and_all_of_them_vary():
    dice = SystemDice()

    drawn = [dice.digits(19) for _ in range(2_000)]

    assert {len(digits) for digits in drawn} == {19}
    for place in range(19):
        assert {digits[place] for digits in drawn} == set("0123456789abcdef")
    assert len(set(drawn)) == 2_000


def test_threads_never_draw_the_same():
    dice = SystemDice()
    drawn: list[str] = []

    def draw() -> None:
        drawn.extend([dice.digits(19) for _ in range(5_000)])

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(drawn)) == 20_000


def test_a_forked_child_draws_other_numbers_than_its_parent():
    dice = SystemDice()
    dice.digits(19)
    read_end, write_end = os.pipe()

    if os.fork() == 0:
        os.write(write_end, dice.digits(19).encode())
        os._exit(0)
    ours = dice.digits(19)
    os.wait()

    assert os.read(read_end, 100).decode() != ours
    os.close(read_end)
    os.close(write_end)
