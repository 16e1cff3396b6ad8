"""What trainings come to on one device and on several, as JSON: run by test_many_devices.py where there are four."""

import json
import re
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from compilations import counted_compilations
from jax_envs import CartPole, MaskedCartPole, Pendulum
from triax.agents import PPOAgent, PPOAgentConfig, QLearningAgent, QLearningConfig, SACAgent, SACConfig
from triax.algorithms import EvalConfig, PPOConfig, TrainConfig, load_checkpoint, make_checkpoint_fn, train_ppo
from triax.core.leaves import named_leaves, to_numpy
from triax.loops import DeviceOffPolicy, DeviceOnPolicy, OffPolicyConfig, OnPolicyConfig
from triax.loops.device_on_policy import _run
from triax.networks import LSTM, Dense, DistributionSampler, Normalizer, PPOAdapter, Sequential
from triax.networks.normalizer import NormalizerStatistics

ENVS, STEPS = 8, 6
KEY = jax.random.PRNGKey(0)


def distance(a, b):
    """The largest difference of floats, and whether all else is the same."""
    pairs = zip(*(to_numpy(named_leaves(tree)).values() for tree in (a, b)), strict=True)
    floats, same = [0.0], True
    for x, y in pairs:
        if np.issubdtype(x.dtype, np.floating):
            floats.append(float(np.max(np.abs(x - y), initial=0)))
        else:
            same &= bool(np.array_equal(x, y))
    return {"floats": max(floats), "same": same}


def mlp(rngs):
    actor = Sequential(
        [Dense(4, 8, rngs, jnp.tanh), Dense(8, 2, rngs), DistributionSampler(CartPole.action_space, rngs)]
    )
    return Sequential([Normalizer(4), PPOAdapter(actor, Dense(4, 1, rngs))])


def lstm(rngs):
    actor = Sequential([Dense(4, 2, rngs), DistributionSampler(CartPole.action_space, rngs)])
    return Sequential([Normalizer(2), LSTM(2, 4, rngs), PPOAdapter(actor, Dense(4, 1, rngs))])


def memory(rngs):
    return Sequential([LSTM(2, 4, rngs), Dense(4, 2, rngs)])


def spec(array):
    return [str(name) for name in array.sharding.spec], len(array.devices())


def collectives(compiled):
    """``{operation: places in the program}``."""
    found = {}
    for line in compiled.as_text().splitlines():
        if kind := re.search(r" (all-gather|all-reduce|all-to-all|collective-permute)(?:-start)?\(", line):
            place, shape = re.search(r'op_name="([^"]*)"', line), re.search(r"= (.*?) all-|= (.*?) collective", line)
            found.setdefault(kind[1], []).append(f"{place and place[1]} {shape and shape[1]}")
    return found


def ppo():
    """An episode lasts five steps at most: some end in each rollout, by a time limit too."""
    env, agent = CartPole(5), PPOAgent(mlp, PPOAgentConfig(n_epochs=2, n_minibatches=2, learning_rate=1e-2))
    one, four = (DeviceOnPolicy(env, agent, OnPolicyConfig(ENVS, STEPS), devices=n, most=4) for n in (1, 4))
    alone, measured = one.run(one.init(KEY), 3)
    begun, told = four.run(four.init(KEY), 1)
    before = begun
    with counted_compilations() as count:
        begun, later = four.run(begun, 2)
    with jax.set_mesh(four.program.mesh):
        compiled = _run.lower(four.program, begun, np.int32(1), 4).compile()
    learned = mlp(nnx.Rngs(0))
    agent.write_into(learned, begun.agent)
    together = {name: np.concatenate([told[name], later[name]]) for name in told}
    return {
        "agent": distance(alone.agent, begun.agent),
        "environments": distance(alone.acting, begun.acting),
        "metrics": distance(measured, together),
        "seen": float(learned[0].counter),
        "compilations": count.compilations,
        "donated": all(leaf.is_deleted() for leaf in jax.tree.leaves(before)),
        "observations": spec(begun.acting.envs.obs),
        "keys": spec(begun.acting.envs.inner.rng),
        "weights": [spec(leaf) for leaf in jax.tree.leaves(begun.agent)],
        "collectives": collectives(compiled),
    }


def resumed():
    """Four devices, then two, from a checkpoint; against one that was never interrupted. With memory and statistics."""
    env, half = MaskedCartPole(5), 2 * ENVS * STEPS
    learning = PPOConfig(n_envs=ENVS, rollout_length=STEPS, total_steps=2 * half, n_epochs=1, n_minibatches=2)
    evals = EvalConfig(every_steps=0, n_envs=2, max_episode_length=6)
    config = TrainConfig(learning, eval=evals, checkpoint_every_steps=half)
    alone, several = lstm(nnx.Rngs(1)), lstm(nnx.Rngs(1))
    unbroken = train_ppo(env, alone, config)
    with tempfile.TemporaryDirectory() as folder:
        train_ppo(env, several, config, total_steps=half, checkpoint_fn=make_checkpoint_fn(folder, config), devices=4)
        saved = load_checkpoint(folder)["training_state"]
        result = train_ppo(env, several, config, initial_state=saved, devices=2)
    back = DeviceOnPolicy(env, PPOAgent(lstm), OnPolicyConfig(ENVS, STEPS)).place(result.training_state.loop)
    return {
        "networks": distance(weights(alone), weights(several)),
        "counted": float(several[0].counter),
        "evaluations": distance(unbroken.eval_history, result.eval_history),
        "state": spec(result.training_state.env_states.obs),
        "on one device": len(back.acting.envs.obs.devices()),
        "network lies on": len(jax.tree.leaves(nnx.state(several))[0].devices()),
    }


def weights(network):
    """And statistics."""
    return [nnx.to_pure_dict(nnx.state(network, kind)) for kind in (nnx.Param, NormalizerStatistics)]


def off_policy(env, agent, *, compiled=False):
    config = OffPolicyConfig(ENVS, 256, 64, steps_per_iteration=1, updates_per_iteration=2)
    one, four = (DeviceOffPolicy(env, agent, config, devices=n) for n in (1, 4))
    alone, measured = one.run(one.run(one.init(KEY), 3)[0], 3)
    begun, _ = four.run(four.init(KEY), 3)
    with counted_compilations() as count:
        begun, told = four.run(begun, 3)
    exchanged = {}
    if compiled:
        with jax.set_mesh(four._mesh):
            exchanged = collectives(four._jitted_run.lower(begun, 3).compile())
    return {
        "agent": distance(alone.agent, begun.agent),
        "environments": distance(alone.envs, begun.envs),
        "replay": distance(alone.stored.rows.tree(), begun.stored.rows.tree()),
        "metrics": distance(measured, told),
        "compilations": count.compilations,
        "observations": spec(begun.envs.obs),
        "tables": [spec(table) for table in begun.stored.rows.tables.values()],
        "table": [list(table.addressable_data(0).shape) for table in begun.stored.rows.tables.values()],
        "collectives": exchanged,
    }


def refused():
    agent = PPOAgent(mlp, PPOAgentConfig(n_minibatches=2))
    q = QLearningAgent(CartPole(), QLearningConfig(hidden=(4,), batch_size=6))

    def begin(envs, devices, agent=agent):
        loop = DeviceOnPolicy(CartPole(), agent, OnPolicyConfig(envs, 2), devices=devices)
        loop.run(loop.init(KEY), 1)

    def elsewhere():
        two, four = (DeviceOnPolicy(CartPole(), agent, OnPolicyConfig(8, 2), devices=n) for n in (2, 4))
        two.run(four.init(KEY), 1)

    attempts = {
        "elsewhere": elsewhere,
        "environments": lambda: begin(6, 4),
        "minibatches": lambda: begin(4, 4),
        "too many": lambda: begin(8, 5),
        "none": lambda: begin(8, []),
        "batch": lambda: DeviceOffPolicy(CartPole(), q, OffPolicyConfig(num_envs=4), devices=4),
    }
    found = {}
    for name, attempt in attempts.items():
        try:
            attempt()
        except ValueError as error:
            found[name] = str(error)
    return found


PARTS = {
    "ppo": ppo,
    "resumed": resumed,
    "sac": lambda: off_policy(Pendulum(5), SACAgent(Pendulum(5), SACConfig(hidden=(8,), batch_size=8))),
    "prioritized": lambda: off_policy(
        CartPole(5),
        QLearningAgent(CartPole(5), QLearningConfig(hidden=(8,), batch_size=8, n_step=3, alpha=0.6)),
        compiled=True,
    ),
    "recurrent": lambda: off_policy(
        MaskedCartPole(5),
        QLearningAgent(MaskedCartPole(5), QLearningConfig(batch_size=8, sequence_length=4, burn_in=1), memory),
    ),
    "refused": refused,
}

if __name__ == "__main__":
    assert jax.device_count() == 4
    print(json.dumps({name: PARTS[name]() for name in sys.argv[1:] or PARTS}))
