"""A second call of anything compiles nothing (section 10 of the design)."""

import contextlib
import logging

import jax
import numpy as np
import pytest

import triax

from .networks import DISCRETE, REALS, func_of, s


class Counter(logging.Handler):
    def __init__(self):
        super().__init__()
        self.names = []

    def emit(self, record):
        if "Finished XLA compilation" in record.getMessage():
            self.names.append(record.getMessage())


@contextlib.contextmanager
def counted():
    """The compilations within, by name."""
    handler, logger = Counter(), logging.getLogger("jax._src.dispatch")
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    try:
        with jax.log_compiles():
            yield handler.names
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def q_function(cls=triax.Q, **kwargs):
    return cls(func_of(cls.example_data(DISCRETE, **kwargs).type2), DISCRETE, random_seed=0, **kwargs)


def policy(env=DISCRETE):
    return triax.Policy(func_of(triax.Policy.example_data(env)), env, random_seed=0)


def test_compilations_are_counted():
    with counted() as compiled:
        jax.jit(lambda x: x * 3 + 1)(np.arange(7.0))
    assert len(compiled) >= 1


OBSERVATIONS = [s, s.astype(np.float64), s.tolist(), jax.numpy.asarray(s), s.astype(np.int64)]


def test_actions_and_observations_of_any_type_share_a_program():
    q = q_function()
    q(s, 1), q(s)
    with counted() as compiled:
        for a in (0, np.int64(2), np.int32(3), np.array(1), True):
            q(s, a)
        for x in OBSERVATIONS:
            q(x)
    assert compiled == []


def test_a_changed_number_compiles_nothing():
    q = q_function()
    policies = [triax.EpsilonGreedy(q), triax.BoltzmannPolicy(q)]
    for pi in policies:
        pi(s), pi.mode(s), pi.dist_params(s)
    with counted() as compiled:
        for number in (0.5, 1, np.float32(0.25), np.float64(0.3)):
            policies[0].epsilon = policies[1].temperature = number
            for pi in policies:
                pi(s), pi.mode(s), pi.dist_params(s), pi(s, return_logp=True)
    assert compiled == []


@pytest.mark.parametrize("make", [policy, lambda: policy(REALS)])
def test_second_calls_compile_nothing(make):
    pi = make()
    pi(s), pi.mode(s), pi.mean(s), pi.dist_params(s), pi.rng
    with counted() as compiled:
        for x in OBSERVATIONS:
            pi(x), pi(x, return_logp=True), pi.mode(x), pi.mean(x), pi.dist_params(x), pi.rng
        pi.random_seed = 3
        pi(s)
    assert compiled == []


def test_copies_share_compiled_functions():
    pi, q = policy(), q_function()
    greedy = triax.EpsilonGreedy(q)
    for f in (pi, q, greedy):
        f(s), f.copy()
        f.soft_update(f.copy(), 0.5)
        f.copy().params = f.params
    with counted() as compiled:
        for f in (pi, q, greedy):
            twin = f.copy(deep=True)
            twin(s)
            f.soft_update(twin, 0.25)
            twin.params = f.params
            twin(s)
    assert compiled == []


def test_lists_over_actions_compile_nothing_twice():
    q = q_function(triax.StochasticQ, value_range=(-1, 1), num_bins=3)
    q(s), q.mean(s), q.dist_params(s)
    with counted() as compiled:
        q(s, return_logp=True), q.mean(-s), q.dist_params(2 * s)
    assert compiled == []


def test_carries_compile_once():
    pi = triax.Policy(func_of(triax.Policy.example_data(DISCRETE), "memory"), DISCRETE, random_seed=0)
    _, carry = pi(s, pi.initial_carry())
    pi(s, carry)
    with counted() as compiled:
        carry = pi.initial_carry()
        for _ in range(3):
            _, carry = pi(s, carry)
    assert compiled == []


def test_training_compiles_neither_the_function_nor_the_step_again():
    q = q_function()
    rule = triax.td_learning.QLearning(q, q_targ=q.copy())
    batches = [triax.reward_tracing.get_transition_batch(DISCRETE, 4, random_seed=k) for k in range(4)]
    for batch in batches[:2]:
        rule.update(batch)
    q(s)
    with counted() as compiled:
        for batch in batches[2:]:
            rule.update(batch)
            q(s)
    assert compiled == []
