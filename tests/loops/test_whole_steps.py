"""Ctrl-C waits for the end of a step, once."""

import signal
import threading

import pytest

from triax.loops.whole_steps import WholeSteps


def test_an_interrupt_within_a_step_comes_at_its_end():
    done = []
    with pytest.raises(KeyboardInterrupt), WholeSteps() as whole:
        whole.begin()
        signal.raise_signal(signal.SIGINT)
        done.append("step")
        whole.end()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_between_steps_and_a_second_one_within_come_at_once():
    with WholeSteps() as whole:
        whole.begin()
        whole.end()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with WholeSteps() as whole:
        whole.begin()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_an_error_of_a_step_passes_and_the_handler_is_put_back():
    with pytest.raises(ZeroDivisionError), WholeSteps() as whole:
        whole.begin()
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_program_that_handles_the_signal_goes_on_doing_so():
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with WholeSteps() as whole:
            whole.begin()
            signal.raise_signal(signal.SIGINT)
            whole.end()
        assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_works_in_another_thread_where_no_signal_comes():
    done = []

    def loop():
        with WholeSteps() as whole:
            whole.begin()
            whole.end()
        done.append(True)

    thread = threading.Thread(target=loop)
    thread.start()
    thread.join()
    assert done
