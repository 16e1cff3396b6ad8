"""The off-policy loop on Gymnasium: equal to the device loop, in every autoreset mode, in few calls."""

import functools
import signal
from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from compilations import counted_compilations, python_files_of_jax_run_by
from corridor import Corridor, Recall
from jax_envs import Pendulum
from jax_vector_env import JaxVectorEnv
from oracles import Step, n_step_parts
from scheduled_episodes import Scheduled, by_hand, expected_transitions, schedules
from triax.agents.off_policy import ReplayNeeds
from triax.agents.q_learning import QLearningAgent, QLearningConfig
from triax.agents.sac import SACAgent, SACConfig
from triax.core.trees import copy_arrays
from triax.loops.device_off_policy import DeviceOffPolicy, OffPolicyConfig
from triax.loops.vector_off_policy import VectorOffPolicy
from triax.networks import LSTM, Dense, Sequential
from triax.reward_tracing import Trajectory
from triax.runs import load_checkpoint, save_checkpoint

SMALL = {"hidden": (8,), "batch_size": 8, "epsilon_updates": 30, "learning_rate": 5e-3}


def recurrent(rngs):
    return Sequential([LSTM(2, 4, rngs), Dense(4, 2, rngs)])


def dqn(env, network=None, **options):
    return QLearningAgent(env, QLearningConfig(**SMALL, **options), network)


def sac(env):
    return SACAgent(env, SACConfig(hidden=(8,), batch_size=8))


@pytest.mark.parametrize(
    ("env", "make"),
    [
        pytest.param(Corridor(), dqn, marks=pytest.mark.slow),
        (Corridor(), partial(dqn, alpha=0.6, n_step=3)),
        pytest.param(
            Recall(), partial(dqn, network=recurrent, alpha=0.6, sequence_length=6, burn_in=2), marks=pytest.mark.slow
        ),
        pytest.param(Pendulum(limit=8), sac, marks=pytest.mark.slow),
    ],
    ids=["uniform", "prioritized n-step", "recurrent", "continuous"],
)
def test_gives_the_parameters_of_the_device_loop(env, make):
    agent = make(env)
    config = OffPolicyConfig(num_envs=2, capacity=100, warm_up=40, steps_per_iteration=2, updates_per_iteration=2)
    key = jax.random.PRNGKey(3)
    on_device = DeviceOffPolicy(env, agent, config)
    expected, told = on_device.run(on_device.init(key), 25)
    loop = VectorOffPolicy(JaxVectorEnv(env, 2, key), agent, config)
    loop.init(key)
    metrics = []
    assert loop.run(40 + 2 * 2 * 25, hooks=[lambda p: metrics.append(p.metrics)]) == 140
    learner = loop.state.learner
    for found, wanted in zip(jax.tree.leaves(learner.agent), jax.tree.leaves(expected.agent), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
    found, wanted = (state.stored.rows.tree() for state in (learner, expected))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, wanted)
    np.testing.assert_array_equal(learner.key, expected.key)
    losses = [m["loss"] for m in metrics if m is not None]
    assert len(losses) == 25
    np.testing.assert_allclose(np.mean(losses, axis=0), told["loss"], rtol=1e-4)
    for name, value in loop.report().items():
        np.testing.assert_allclose(value, told[name], rtol=1e-5)


# ------------------------------------------------------------------ every autoreset mode


class Listener:
    """An agent that learns nothing and keeps the last batch; it remembers steps, and something that never changes."""

    def __init__(self, window, alpha):
        self.replay = ReplayNeeds(batch_size=64, gamma=0.9, window=window, alpha=alpha)

    def init(self, key):
        zeros, at = jnp.zeros(64), {"at": (jnp.zeros((64, 2)), jnp.zeros(64, jnp.int32))}
        return {"S": at, "S_next": at, "Rn": zeros, "In": zeros, "W": zeros}

    def initial_carry(self, state, batch_size, key):
        return jnp.zeros(batch_size, jnp.int32), jnp.zeros((batch_size, 2))

    def reset_carry(self, state, carry, done, key):
        return jnp.where(done, 0, carry[0]), carry[1]

    def act(self, state, observation, carry, key, explore=True):
        steps, constant = carry
        return jax.random.bernoulli(key, shape=steps.shape).astype(jnp.int32), (steps + 1, constant), ()

    def learn(self, state, experience, key):
        told = {name: getattr(experience, name) for name in state}
        return told, {"priorities": jnp.abs(told["Rn"])} if self.replay.alpha else {}


listener = functools.cache(Listener)  # equal loops are compiled once
FIRST = (0, 500)
"""Numbers of the first episodes of two environments, by which steps are told apart."""


def listening(schedules, mode, window=1, alpha=None, first=FIRST):
    env = SyncVectorEnv(
        [lambda s=s, k=k: Scheduled(s, k) for s, k in zip(schedules, first, strict=True)], autoreset_mode=mode
    )
    return VectorOffPolicy(env, listener(window, alpha), OffPolicyConfig(num_envs=2, capacity=60, warm_up=8))


@pytest.mark.parametrize("mode", list(AutoresetMode))
@given(
    st.lists(schedules, min_size=2, max_size=2),
    st.sampled_from([(1, None), (3, 0.7)]),
    st.integers(5, 40),
    st.integers(0, 2**31),
)
@settings(max_examples=12, deadline=None)
def test_what_is_learned_from_crosses_no_boundary_whichever_way_episodes_begin(mode, many, needs, total, seed):
    """Pitfalls 4, 8, 19."""
    loop = listening(many, mode, *needs)
    loop.init(jax.random.PRNGKey(seed))
    taken = loop.run(2 * total)
    each = [by_hand(schedule, first, loop.state.steps, mode) for schedule, first in zip(many, FIRST, strict=True)]
    assert taken == sum(map(len, each)) >= 2 * total
    batch = jax.device_get(loop.state.learner.agent)
    at, following, counts = batch["S"]["at"], batch["S_next"]["at"], batch["W"] > 0
    assert counts.mean() > 0.8 if needs[1] is None and mode is AutoresetMode.NEXT_STEP else counts.all()
    for row in np.flatnonzero(counts):
        k = int(at[0][row, 0] >= FIRST[1])
        ahead = expected_transitions(many[k], 60, FIRST[k])
        begin = [r[:2] for r in ahead].index(tuple(at[0][row]))
        steps = [Step(r[3], 0, 0, r[4], r[5]) for r in ahead]
        Rn, In, m = n_step_parts(steps, begin, needs[0], 0.9)
        np.testing.assert_allclose((batch["Rn"][row], batch["In"][row]), (Rn, In), rtol=1e-5)
        last = ahead[begin + m - 1]
        assert begin + m <= len(each[k])
        assert tuple(following[0][row]) == (last[0], last[2]) and following[1][row] == last[2]
        assert at[1][row] == at[0][row, 1]


@pytest.mark.parametrize("mode", list(AutoresetMode))
@given(st.lists(schedules, min_size=2, max_size=2), st.integers(1, 30))
@settings(max_examples=10, deadline=None)
@pytest.mark.slow
def test_returns_and_lengths_are_those_of_the_episodes_that_ended(mode, many, total):
    loop = listening(many, mode)
    loop.init(jax.random.PRNGKey(0))
    ended = []
    loop.run(2 * total, hooks=[lambda p: ended.append(p.episode_ended)])
    returns, lengths = [], []
    for schedule, first in zip(many, FIRST, strict=True):
        running = []
        for row in by_hand(schedule, first, loop.state.steps, mode):
            running.append(row[3])
            if row[4] or row[5]:
                returns.append(sum(running))
                lengths.append(len(running))
                running = []
    report = loop.report()
    assert report["episodes"] == loop.state.episodes == len(returns) and any(ended) == bool(returns)
    if returns:
        np.testing.assert_allclose(
            (report["return"], report["length"]), (np.mean(returns), np.mean(lengths)), rtol=1e-5
        )
    assert loop.report()["episodes"] == 0


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_memory_begins_afresh_with_each_episode(mode):
    loop = listening([[(3, "truncated")], [(2, "terminated")]], mode)
    loop.init(jax.random.PRNGKey(0))
    loop.run(40)
    rows = jax.device_get(loop.state.learner.stored.rows.tree())
    filled = rows.carry[0][: 2 * loop.state.steps], rows.observation["at"][1][: 2 * loop.state.steps]
    counts = slice(None) if rows.weight is None else rows.weight[: 2 * loop.state.steps] > 0
    np.testing.assert_array_equal(filled[0][counts], filled[1][counts])


def sequences(idle, told):
    """Six steps of eight environments of noise; what the idle ones saw and did is noise of the seed ``told``."""
    rng, noise = np.random.default_rng(0), np.random.default_rng(told)
    S, S_next = rng.normal(size=(2, 6, 8, 2)).astype(np.float32)
    R, A = rng.normal(size=(6, 8)).astype(np.float32), rng.integers(0, 2, (6, 8)).astype(np.int32)
    before = np.concatenate([idle[1:], np.zeros((1, 8), bool)])
    terminated = before & (rng.random((6, 8)) < 0.5)
    S[idle], S_next[idle] = noise.normal(size=(2, idle.sum(), 2))
    A[idle], R[idle] = noise.integers(0, 2, idle.sum()), 0.0
    return Trajectory(
        S=S,
        A=A,
        logP=np.zeros((6, 8), np.float32),
        R=R,
        terminated=terminated,
        truncated=(before & ~terminated) | idle,
        S_next=S_next,
        carry=jax.tree.map(np.asarray, recurrent_agent().initial_carry(recurrent_state(), 8, jax.random.PRNGKey(1))),
        W=np.where(idle, 0, 1).astype(np.float32),
        burn_in=2,
    )


@functools.cache
def recurrent_agent():
    return QLearningAgent(Recall(), QLearningConfig(**SMALL, sequence_length=6, burn_in=2), recurrent)


@functools.cache
def recurrent_state():
    return recurrent_agent().init(jax.random.PRNGKey(0))


def test_what_was_seen_in_steps_that_nobody_took_changes_no_parameter():
    """Pitfall 8, also where there is memory."""
    idle = np.zeros((6, 8), bool)
    idle[[1, 3, 4, 5, 2], [0, 1, 2, 3, 4]] = True
    learn = jax.jit(recurrent_agent().learn)
    one, same, other = (
        learn(recurrent_state(), sequences(where, told), jax.random.PRNGKey(2))[0].online.params
        for where, told in ((idle, 1), (idle, 2), (np.roll(idle, 1, axis=1), 1))
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), one, same)
    assert any(not np.allclose(a, b, atol=1e-4) for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True))


# ------------------------------------------------------------------ the state


@pytest.mark.slow
def test_a_resumed_run_cuts_the_episodes_that_were_under_way():
    endless = [[(1000, "truncated")]] * 2
    loop = listening(endless, AutoresetMode.SAME_STEP, 3)
    loop.init(jax.random.PRNGKey(0))
    loop.run(20)
    kept = copy_arrays(loop.state)
    later = listening(endless, AutoresetMode.SAME_STEP, 3, first=(100, 600))
    later.restore(kept)
    assert not np.any(later.state.learner.carry[0])
    assert later.run(32) == 32
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(kept.learner))
    batch = jax.device_get(later.state.learner.agent)
    at, following = batch["S"]["at"][0], batch["S_next"]["at"][0]
    np.testing.assert_array_equal(at[:, 0], following[:, 0])
    assert {0, 500, 100, 600} == set(at[:, 0].tolist())
    last = (at[:, 0] == 0) & (at[:, 1] == 9)
    assert last.any()
    np.testing.assert_allclose(batch["In"][last], 0.9, rtol=1e-6)
    assert np.isnan(later.report()["return"])


@pytest.mark.slow
def test_a_saved_state_goes_on_in_another_loop(tmp_path):
    loop = listening([[(3, "truncated")], [(2, "both")]], AutoresetMode.NEXT_STEP, 3, 0.7)
    loop.init(jax.random.PRNGKey(0))
    loop.run(20)
    save_checkpoint(tmp_path / "state", loop.state)
    later = listening([[(3, "truncated")], [(2, "both")]], AutoresetMode.NEXT_STEP, 3, 0.7)
    later.init(jax.random.PRNGKey(1))
    loaded = load_checkpoint(tmp_path / "state", later.state).tree
    jax.tree.map(np.testing.assert_array_equal, loaded, loop.state)
    later.restore(loaded)
    assert later.state[1:] == loop.state[1:]
    taken = later.state.taken
    assert later.run(taken + 10) >= taken + 10


class Interrupting(Scheduled):
    """Ctrl-C is pressed while it makes its third step."""

    def step(self, action):
        if self.t == 2:
            signal.raise_signal(signal.SIGINT)
        return super().step(action)


def test_after_an_interrupt_the_step_is_done_and_the_state_whole():
    env = SyncVectorEnv(
        [lambda: Interrupting([(9, "both")]), lambda: Scheduled([(9, "both")])], autoreset_mode="SameStep"
    )
    loop = VectorOffPolicy(env, listener(1, None), OffPolicyConfig(num_envs=2, capacity=60, warm_up=8))
    loop.init(jax.random.PRNGKey(0))
    with pytest.raises(KeyboardInterrupt):
        loop.run(20)
    assert loop.state.steps == 3 and loop.state.learner.cursor.size == 3
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(loop.state.learner))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert loop.run(20) == 20
    np.testing.assert_array_equal(loop.state.learner.stored.rows.tree().observation["at"][1][:20:2], [*range(9), 0])


# ------------------------------------------------------------------ spaces and calls


class Odd(gymnasium.Env):
    """Pictures beside numbers that do not begin at 0, and float64 where float32 is meant; remembers actions."""

    observation_space = Dict(
        picture=Box(0, 255, (2, 2, 1), np.uint8), place=Discrete(3, start=5), speed=Box(-1, 1, (1,))
    )
    action_space = Discrete(4, start=3)

    def __init__(self):
        self.actions = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._see(), {}

    def step(self, action):
        self.actions.append(action)
        return self._see(), np.float64(1), self.np_random.random() < 0.2, False, {}

    def _see(self):
        picture = self.np_random.integers(0, 256, (2, 2, 1), np.uint8)
        return {"picture": picture, "place": int(self.np_random.integers(5, 8)), "speed": np.full(1, 0.1)}


@functools.cache
def odd_loop():
    agent = QLearningAgent(Odd(), QLearningConfig(**SMALL))
    config = OffPolicyConfig(capacity=100, warm_up=10, steps_per_iteration=3)
    return agent, config


def test_one_environment_with_any_spaces_compiles_each_program_once_and_gets_members_of_its_action_space():
    agent, config = odd_loop()
    env = Odd()
    loop = VectorOffPolicy(env, agent, config)
    with counted_compilations() as count:
        loop.init(jax.random.PRNGKey(0))
        loop.run(20)
        before = count.compilations
        loop.run(40)
        again = VectorOffPolicy(Odd(), agent, config)
        again.init(jax.random.PRNGKey(1))
        again.run(40)
        assert count.compilations == before
    assert all(action in env.action_space for action in env.actions) and set(env.actions) == {3, 4, 5, 6}
    rows = loop.state.learner.stored.rows.tree()
    assert rows.observation["picture"].dtype == np.uint8 and rows.observation["place"].dtype == np.int32
    assert set(np.asarray(rows.observation["place"][:40]).tolist()) == {5, 6, 7}
    assert loop.state.learner.agent.updates == 10


def test_a_step_makes_one_compiled_call_and_no_other_operation():
    agent, config = odd_loop()
    loop = VectorOffPolicy(Odd(), agent, config)
    loop.init(jax.random.PRNGKey(0))
    loop.run(20)
    called = []

    def counted(name):
        program = getattr(loop._compiled, name)
        return lambda *args: called.append(name) or program(*args)

    loop._compiled = loop._compiled._replace(**{name: counted(name) for name in loop._compiled._fields})
    loop.run(26)
    assert called == ["store", "learn", "store"] * 2
    files = python_files_of_jax_run_by(loop._step)
    assert not files & {"pjit.py", "core.py", "lax.py", "random.py", "lax_numpy.py"}


def test_what_does_not_fit_is_refused():
    agent = listener(1, None)
    env = SyncVectorEnv([lambda: Scheduled([(1, "both")])] * 2)
    with pytest.raises(ValueError, match=r"num_envs must be that of env, 2; got 3"):
        VectorOffPolicy(env, agent, OffPolicyConfig(num_envs=3))
    with pytest.raises(ValueError, match=r"VectorOffPolicy: warm_up must give windows of 3 steps in 2 environments"):
        VectorOffPolicy(env, listener(3, None), OffPolicyConfig(num_envs=2, warm_up=4))
    with pytest.raises(RuntimeError, match=r"Call init\(key\) or restore"):
        VectorOffPolicy(env, agent).run(1)
