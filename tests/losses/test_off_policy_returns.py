import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import BATCH, TIME, log_ratios, windows

from oracles import n_step_oracle, steps_to_boundary, td_error_oracle
from triax.losses import lambda_returns, retrace, vtrace

check = functools.partial(np.testing.assert_allclose, rtol=5e-5, atol=5e-5)
many = settings(max_examples=40, deadline=None)
FACTORS = st.sampled_from([0.0, 0.7, 1.0])
jit_vtrace, jit_retrace, jit_lambda = map(jax.jit, (vtrace, retrace, lambda_returns))


def vtrace_oracle(steps, ratios, discount, lambda_, clip_rho, clip_c):
    """Equation 1 of the paper, with its sums and products; advantages by equation 4."""
    targets = []
    for s in range(len(steps)):
        target = steps[s].value
        for t in range(s, s + steps_to_boundary(steps, s)):
            product = np.prod([lambda_ * min(clip_c, ratios[i]) for i in range(s, t)])
            delta = min(clip_rho, ratios[t]) * td_error_oracle(steps[t], discount)
            target += discount ** (t - s) * product * delta
        targets.append(target)
    advantages = []
    for s, step in enumerate(steps):
        last = steps_to_boundary(steps, s) == 1
        after = 0.0 if step.terminated else step.next_value if last else targets[s + 1]
        advantages.append(min(clip_rho, ratios[s]) * (step.reward + discount * after - step.value))
    return np.array(targets), np.array(advantages)


def retrace_oracle(steps, ratios, discount, lambda_):
    """Equation 3 of the paper: traces are those of the actions after the first."""
    targets = []
    for s in range(len(steps)):
        target = steps[s].value
        for t in range(s, s + steps_to_boundary(steps, s)):
            product = np.prod([lambda_ * min(1.0, ratios[i]) for i in range(s + 1, t + 1)])
            target += discount ** (t - s) * product * td_error_oracle(steps[t], discount)
        targets.append(target)
    return np.array(targets)


@given(
    window=windows(),
    discount=FACTORS,
    lambda_=FACTORS,
    clip_rho=st.sampled_from([1.0, 1.5]),
    clip_c=st.sampled_from([0.8, 1.0]),
)
@many
def test_vtrace_is_the_papers_sum(window, discount, lambda_, clip_rho, clip_c):
    logs = log_ratios(window)
    options = {"discount": discount, "lambda_": lambda_, "clip_rho": clip_rho, "clip_c": clip_c}
    found = jit_vtrace(logs, *window, **options)
    for b, steps in enumerate(window.columns()):
        targets, advantages = vtrace_oracle(steps, np.exp(logs[:, b]), *options.values())
        check(found.targets[:, b], targets)
        check(found.advantages[:, b], advantages)


@given(window=windows(), discount=FACTORS, lambda_=FACTORS)
@many
def test_retrace_is_the_papers_sum(window, discount, lambda_):
    logs = log_ratios(window)
    found = jit_retrace(logs, *window, discount=discount, lambda_=lambda_)
    for b, steps in enumerate(window.columns()):
        check(found[:, b], retrace_oracle(steps, np.exp(logs[:, b]), discount, lambda_))


@given(window=windows(), lambda_=FACTORS)
@settings(max_examples=15, deadline=None)
def test_on_policy_both_are_lambda_returns(window, lambda_):
    r, _, v_next, ended, cut = window
    zeros = np.zeros_like(r)
    expected = jit_lambda(r, v_next, ended, cut, discount=0.9, lambda_=lambda_)
    trace = jit_vtrace(zeros, *window, discount=0.9, lambda_=lambda_, clip_rho=1.0, clip_c=1.0)
    np.testing.assert_allclose(trace.targets, expected, rtol=1e-4, atol=1e-4)
    found = jit_retrace(zeros, *window, discount=0.9, lambda_=lambda_)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@given(window=windows())
@settings(max_examples=15, deadline=None)
def test_an_action_that_the_policy_never_takes_cuts_the_trace(window):
    never = np.full((TIME, BATCH), -np.inf, np.float32)
    found = jit_vtrace(never, *window, discount=0.9, lambda_=1.0, clip_rho=1.0, clip_c=1.0)
    np.testing.assert_array_equal(found.targets, window.values)
    np.testing.assert_array_equal(found.advantages, np.zeros((TIME, BATCH)))
    check(jit_retrace(never, *window, discount=0.9, lambda_=1.0), window.oracle(n_step_oracle, 1, 0.9))


@pytest.mark.parametrize("function", [vtrace, retrace])
def test_arrays_of_other_shapes_are_refused(function):
    with pytest.raises(ValueError, match=rf"{function.__name__}: .*\[time, \*batch\].*log_ratios \(4,\)"):
        function(np.zeros(4), *[np.zeros(3)] * 5, discount=0.9)
