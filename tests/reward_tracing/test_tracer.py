"""What all tracers do: refuse bad steps unchanged, copy what they get, keep episodes and modes apart."""

import copy

import jax.numpy as jnp
import numpy as np
import pytest

from triax.core.errors import EpisodeDoneError, NonFiniteError
from triax.reward_tracing import MonteCarlo, NStep, TransitionBatch

TRACERS = [lambda: NStep(2, 0.9), lambda: MonteCarlo(0.9)]
both = pytest.mark.parametrize("make", TRACERS, ids=["NStep", "MonteCarlo"])


def drain(tracer):
    batches = []
    while tracer:
        batches.append(tracer.pop())
    return batches


def obs(value):
    return np.full(2, value, np.float32)


@both
def test_a_finished_episode_must_be_drained_first(make):
    tracer = make()
    tracer.add(obs(0), 0, 1.0, True)
    with pytest.raises(EpisodeDoneError, match="1 of its steps"):
        tracer.add(obs(1), 0, 1.0, False)
    assert len(drain(tracer)) == 1
    tracer.add(obs(1), 0, 1.0, False)
    assert len(tracer) == 1


@both
def test_a_reset_drops_a_finished_episode(make):
    tracer = make()
    tracer.add(obs(0), 0, 1.0, True)
    tracer.reset()
    assert not tracer
    assert len(tracer) == 0
    tracer.add(obs(1), 0, 1.0, False)
    assert not tracer


BAD_STEPS = [
    ({"r": np.nan}, ValueError, "r"),
    ({"r": "1"}, TypeError, "r"),
    ({"logp": np.nan}, ValueError, "logp"),
    ({"w": 0.0}, TypeError, "w"),
    ({"w": np.nan}, ValueError, "w"),
    ({"done": 2}, TypeError, "done"),
    ({"truncated": 0.5, "s_next": obs(2)}, TypeError, "truncated"),
    ({"truncated": True}, ValueError, "s_next"),
    ({"s": None}, TypeError, "s"),
    ({"a": object()}, TypeError, "a"),
    ({"s": np.zeros(3, np.float32)}, ValueError, "s must have the structure and shapes of the previous s"),
    ({"a": np.zeros(3)}, ValueError, "a must have"),
    ({"truncated": True, "s_next": np.zeros(3)}, ValueError, "s_next must have"),
    ({"s_next": obs(2)}, ValueError, "started without s_next"),
]


@both
@pytest.mark.parametrize(("change", "error", "message"), BAD_STEPS)
def test_a_refused_step_changes_nothing(make, change, error, message):
    tracer, untouched = make(), make()
    for each in (tracer, untouched):
        each.add(obs(0), 0, 1.0, False)
    with pytest.raises(error, match=rf"\b{message}"):
        tracer.add(**({"s": obs(1), "a": 0, "r": 1.0, "done": False} | change))
    for each in (tracer, untouched):
        each.add(obs(1), 1, 2.0, True)
    expected = drain(untouched)
    assert len(expected) == 2
    assert drain(tracer) == expected


@both
def test_a_refused_first_step_does_not_decide_how_next_steps_look(make):
    tracer = make()
    with pytest.raises(ValueError, match="r must be finite"):
        tracer.add(obs(0), 0, np.inf, False, s_next=obs(1))
    tracer.add(obs(0), 0, 1.0, False)
    tracer.add(obs(1), 0, 1.0, True)
    assert all(batch.A_next is not None for batch in drain(tracer))


@both
def test_the_first_step_decides_for_good(make):
    tracer = make()
    tracer.add(obs(0), 0, 1.0, True, s_next=obs(1))  # a one-step episode decides too
    (batch,) = drain(tracer)
    assert batch.A_next is None
    np.testing.assert_array_equal(batch.S_next[0], obs(1))
    tracer.reset()
    with pytest.raises(ValueError, match="started with s_next"):
        tracer.add(obs(0), 0, 1.0, False)
    tracer.add(obs(0), 0, 1.0, True)
    (batch,) = drain(tracer)
    assert batch.A_next is None
    assert batch.In[0] == 0


@both
def test_termination_wins_over_truncation(make):
    tracer = make()
    tracer.add(obs(0), 0, 1.0, True, truncated=True)
    assert drain(tracer)[0].In[0] == 0


@both
def test_takes_numbers_and_truth_values_of_any_kind(make):  # F5
    for number, truth in [(np.float32, np.bool_), (np.array, np.array), (jnp.asarray, jnp.asarray)]:
        tracer = make()
        tracer.add(obs(0), number(1), number(2.0), truth(False), number(7.0), number(3.0))  # logp > 0: F4
        tracer.add(obs(1), number(1), number(0.0), truth(True), truncated=truth(False))
        batch = drain(tracer)[0 if isinstance(tracer, NStep) else -1]
        assert (batch.Rn[0], batch.logP[0], batch.W[0], batch.A[0]) == (2, 7, 3, 1)


@both
def test_an_environment_may_reuse_its_observation(make):
    tracer, s = make(), np.zeros(2, np.float32)
    for t in range(3):
        s[:] = t
        tracer.add(s, 0, 1.0, t == 2)
    s[:] = 100
    assert sorted(batch.S[0, 0] for batch in drain(tracer)) == [0, 1, 2]


@both
def test_what_transitions_share_is_read_only(make):
    tracer = make()
    for t in range(3):
        tracer.add((obs(t),), 0, 1.0, t == 2)
    batches = drain(tracer)
    with pytest.raises(ValueError, match="read-only"):
        batches[0].S[0][:] = 1
    batches[0].Rn[:] = 100
    assert all(batch.Rn[0] < 100 for batch in batches[1:])
    copied = batches[0].copy(deep=True)
    copied.S[0][:] = 1


@both
def test_states_and_actions_may_be_pytrees_and_keep_their_dtypes(make):
    tracer = make()
    for t in range(3):
        s = {"image": np.full((2, 2), t, np.uint8), "rest": (obs(t), t)}
        tracer.add(s, (t, np.float32(t)), 1.0, t == 2)
    batch = tracer.flush()
    assert batch.S["image"].dtype == np.uint8
    assert batch.S["image"].shape == (3, 2, 2)
    assert batch.S["rest"][1].shape == (3,)
    assert batch.A[1].dtype == np.float32
    order = [0, 1, 2] if isinstance(tracer, NStep) else [2, 1, 0]
    np.testing.assert_array_equal(batch.A[0], order)


@both
def test_traces_an_environment_without_numbers_in_its_observation(make):
    tracer = make()
    tracer.add({}, 0, 1.0, True)
    assert drain(tracer)[0].S == {}


@both
@pytest.mark.parametrize("value", [1e39, -1e39, 10**400, np.float64(3.5e38)])
@pytest.mark.parametrize("name", ["r", "logp", "w"])
def test_a_number_that_float32_cannot_hold_is_refused_by_name(make, name, value):
    tracer = make()
    step = {"s": obs(0), "a": 0, "r": 1.0, "done": True} | {name: value}
    with pytest.raises(ValueError, match=f": {name} must be finite in float32; got"):
        tracer.add(**step)
    assert len(tracer) == 0
    tracer.add(obs(0), 0, 3.4e38, True)
    assert np.isfinite(tracer.pop().Rn)


@both
@pytest.mark.parametrize("truncated", [True, False, np.True_])
def test_five_positional_arguments_as_env_step_returns_them_are_refused_with_a_hint(make, truncated):
    tracer = make()
    with pytest.raises(TypeError, match=r"logp must be a number.*pass truncated=\.\.\. by name"):
        tracer.add(obs(0), 0, 1.0, False, truncated)
    with pytest.raises(TypeError, match="logp"):
        TransitionBatch.from_single(obs(0), 0, truncated, 1.0, False, 0.9)
    assert len(tracer) == 0


@both
@pytest.mark.parametrize("wrong", [None, 1.5, np.nan, "1"])
def test_the_discount_is_checked_whenever_it_is_set(make, wrong):
    tracer = make()
    with pytest.raises((TypeError, ValueError), match="gamma must be"):
        tracer.gamma = wrong
    assert tracer.gamma == 0.9
    with pytest.raises(AttributeError, match=r"no attribute 'gama'.*gamma"):
        tracer.gama = 0.5


def test_tracers_print_their_arguments_and_how_much_they_hold():
    tracer = NStep(2, 0.9)
    tracer.add(obs(0), 0, 1.0, False)
    assert repr(tracer) == "NStep(n=2, gamma=0.9, 1 steps cached)"
    assert repr(MonteCarlo(1)) == "MonteCarlo(gamma=1, 0 steps cached)"


@both
def test_a_copy_holds_steps_of_its_own(make):
    tracer = make()
    tracer.add(obs(0), 0, 1.0, False)
    twin = copy.copy(tracer)
    twin.add(obs(1), 0, 1.0, True)
    assert (len(tracer), len(twin)) == (1, 2)
    assert len(drain(twin)) == 2
    assert len(tracer) == 1


def two_large_rewards(tracer):
    tracer.add(0, 0, 3e38, False)
    tracer.add(1, 0, 3e38, True)
    return tracer


@pytest.mark.parametrize("method", ["pop", "flush"])
@pytest.mark.parametrize("tracer", [NStep(2, 1.0), MonteCarlo(1.0)], ids=repr)
def test_a_sum_of_rewards_beyond_float32_is_refused_and_nothing_is_half_done(tracer, method):
    tracer = two_large_rewards(copy.copy(tracer))
    singles = [tracer.pop()] if isinstance(tracer, MonteCarlo) and method == "pop" else []
    left = len(tracer)
    for _ in range(2):
        with pytest.raises(NonFiniteError, match=r"sum of discounted rewards, 6e\+38, is beyond float32"):
            getattr(tracer, method)()
        assert len(tracer) == left == 2 - len(singles)
    tracer.reset()
    assert two_large_rewards(tracer)
