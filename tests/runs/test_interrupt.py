import os
import signal
import threading

import pytest

from triax.runs import CleanInterrupt

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def handlers():
    before = [signal.getsignal(number) for number in SIGNALS]
    yield before
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_lets_the_step_finish(capfd, number):
    finished = []
    with CleanInterrupt() as interrupt:
        for step in range(10):
            if interrupt.requested:
                break
            if step == 3:
                os.kill(os.getpid(), number)
            finished.append(step)
    assert finished == [0, 1, 2, 3]
    assert f"{number.name}: finishing this step" in capfd.readouterr().err


@pytest.mark.parametrize("second", SIGNALS)
def test_the_second_signal_interrupts(second):
    reached = []
    with pytest.raises(KeyboardInterrupt), CleanInterrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        reached.append(interrupt.requested)
        os.kill(os.getpid(), second)
        reached.append("never")
    assert reached == [True]


def test_handlers_come_back_after_an_error_too(handlers):
    with pytest.raises(ZeroDivisionError), CleanInterrupt():
        assert [signal.getsignal(number) for number in SIGNALS] != handlers
        raise ZeroDivisionError


def test_contexts_nest():
    with CleanInterrupt() as outer:
        with CleanInterrupt() as inner:
            os.kill(os.getpid(), signal.SIGINT)
        assert (inner.requested, outer.requested) == (True, False)
        os.kill(os.getpid(), signal.SIGTERM)
        assert outer.requested


def test_elsewhere_than_in_the_main_thread_it_does_nothing(handlers):
    seen = []

    def run():
        with CleanInterrupt() as interrupt:
            seen.extend([signal.getsignal(number) for number in SIGNALS])
            seen.append(interrupt.requested)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [*handlers, False]


def test_without_a_signal_nothing_is_requested():
    with CleanInterrupt() as interrupt:
        pass
    assert not interrupt.requested
