"""Each path of the Gymnasium loop beside a bare jitted call that does the same work, in one run.

    make bench        or        .venv/bin/python benchmarks/host.py

Exits 1 where a budget of DESIGN section 10 is missed. Timings drift: only ratios within a run count.
"""

import itertools
import sys
import time
from types import SimpleNamespace

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from gymnasium.spaces import Box, Discrete
from timing import Report

import triax
from triax.agents import DQN, DQNConfig
from triax.experience_replay import PrioritizedReplayBuffer, SimpleReplayBuffer
from triax.loops import run_gymnasium
from triax.reward_tracing import get_transition_batch
from triax.td_learning import QLearning

STATE = Box(-np.inf, np.inf, (4,), np.float32)
DISCRETE = SimpleNamespace(observation_space=STATE, action_space=Discrete(2))
REALS = SimpleNamespace(observation_space=STATE, action_space=Box(-2.0, 2.0, (2,), np.float32))
S = np.linspace(-1, 1, 4, dtype=np.float32)


class MLP(nnx.Module):
    """Two hidden layers of 64."""

    def __init__(self, outputs: int, rngs: nnx.Rngs) -> None:
        sizes = (4, 64, 64, outputs)
        self.layers = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in itertools.pairwise(sizes)])

    def apply(self, x):
        for layer in list(self.layers)[:-1]:
            x = nnx.relu(layer(x))
        return self.layers[-1](x)


class Value(MLP):
    def __call__(self, S, is_training):
        return self.apply(S)[:, 0]


class Values(MLP):
    def __call__(self, S, is_training):
        return self.apply(S)


class Logits(MLP):
    def __call__(self, S, is_training):
        return {"logits": self.apply(S)}


class Gaussian(MLP):
    def __call__(self, S, is_training):
        mu, logvar = jnp.split(self.apply(S), 2, axis=-1)
        return {"mu": mu, "logvar": logvar}


def weights(key, outputs):
    """Weights of the same network as a list of pairs."""
    sizes = (4, 64, 64, outputs)
    keys = jax.random.split(key, 3)
    return [
        (jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b))
        for k, a, b in zip(keys, sizes, sizes[1:], strict=False)
    ]


def mlp(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def floor_value(outputs, pick):
    params = weights(jax.random.key(0), outputs)
    call = jax.jit(lambda params, s: pick(mlp(params, s[None])[0]))
    return lambda: np.asarray(call(params, S))


def floor_policy(outputs, choose, to_host):
    """A bare jitted policy: forward pass, a draw, the next key."""
    params, state = weights(jax.random.key(0), outputs), [jax.random.PRNGKey(0)]

    @jax.jit
    def call(params, key, s):
        key, rng = jax.random.split(key)
        return choose(rng, mlp(params, s[None])[0]), key

    def act():
        a, state[0] = call(params, state[0], S)
        return to_host(a)

    return act


def choose_epsilon_greedy(rng, values):
    rng_a, rng_b = jax.random.split(rng)
    random = jax.random.randint(rng_a, (), 0, 2)
    return jnp.where(jax.random.uniform(rng_b) < 0.1, random, jnp.argmax(values))


def choose_gaussian(rng, output):
    mu, logvar = jnp.split(output, 2)
    x = mu + jnp.exp(logvar / 2) * jax.random.normal(rng, mu.shape)
    return -2 + 4 * jax.nn.sigmoid(x)


def finite(*trees):
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(trees)]))


def floor_update(batch, *, reports: bool):
    """Q-learning by hand: Huber loss, Adam, donated weights.

    With ``reports`` it does the work of a rule: the errors against target and target network, size and largest of the
    gradients, and a step that is not finite is left out.
    """
    params, optimizer = weights(jax.random.key(0), 2), optax.adam(1e-3)
    state = [params, optimizer.init(params)]
    target_params = weights(jax.random.key(1), 2)

    def step(params, optimizer_state, target_params, columns):
        S, A, Rn, In, S_next, W = columns
        G = Rn + In * jnp.max(mlp(target_params, S_next), axis=-1)

        def loss(params):
            predicted = jnp.take_along_axis(mlp(params, S), A[:, None], axis=-1)[:, 0]
            return jnp.mean(W * optax.huber_loss(predicted, G)), predicted

        (value, predicted), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, new_optimizer_state = optimizer.update(grads, optimizer_state, params)
        new = optax.apply_updates(params, updates), new_optimizer_state
        if not reports:
            return *new, value, ()
        at_target = jnp.take_along_axis(mlp(target_params, S), A[:, None], axis=-1)[:, 0]
        td_error = jnp.clip(G - predicted, -1, 1)
        leaves = jax.tree.leaves(grads)
        report = (
            td_error,
            jnp.mean(W * td_error),
            jnp.mean(jnp.clip(predicted - at_target, -1, 1)),
            jnp.max(jnp.array([jnp.max(jnp.abs(leaf)) for leaf in leaves])),
            optax.global_norm(grads),
        )
        fine = finite(grads, new[0])
        new = jax.tree.map(lambda a, b: jnp.where(fine, a, b), new, (params, optimizer_state))
        return *new, value, (fine, *report)

    call = jax.jit(step, donate_argnums=(0, 1))
    columns = (batch.S, batch.A, batch.Rn, batch.In, batch.S_next, batch.W)

    def update():
        state[0], state[1], value, _ = call(state[0], state[1], target_params, columns)
        value.block_until_ready()

    return update


def approximators(report: Report) -> None:
    q = triax.Q(lambda rngs: Values(2, rngs), DISCRETE, random_seed=0)
    v = triax.V(lambda rngs: Value(1, rngs), DISCRETE, random_seed=0)
    categorical = triax.Policy(lambda rngs: Logits(2, rngs), DISCRETE, random_seed=0)
    gaussian = triax.Policy(lambda rngs: Gaussian(4, rngs), REALS, random_seed=0)
    epsilon_greedy = triax.EpsilonGreedy(q, epsilon=0.1)
    report.ratio("v(s)", lambda: v(S), floor_value(1, lambda out: out[0]), at_most=3)
    report.ratio("q(s)", lambda: q(S), floor_value(2, lambda out: out), at_most=3)
    report.ratio("q(s, a)", lambda: q(S, 1), floor_value(2, lambda out: out[1]), at_most=3)
    report.ratio(
        "pi(s), epsilon-greedy",
        lambda: epsilon_greedy(S),
        floor_policy(2, choose_epsilon_greedy, int),
        at_most=3,
    )
    report.ratio("pi(s), categorical", lambda: categorical(S), floor_policy(2, jax.random.categorical, int), at_most=3)
    report.ratio("pi(s), Gaussian", lambda: gaussian(S), floor_policy(4, choose_gaussian, np.asarray), at_most=3)


def updates(report: Report) -> None:
    for batch_size in (32, 256):
        batch = get_transition_batch(DISCRETE, batch_size=batch_size, random_seed=0)
        q = triax.Q(lambda rngs: Values(2, rngs), DISCRETE, random_seed=0)
        rule = QLearning(q, q_targ=q.copy())

        def update(rule=rule, batch=batch):
            rule.update(batch)["QLearning/loss"].block_until_ready()

        name = f"QLearning.update, batch {batch_size}"
        report.ratio(name, update, floor_update(batch, reports=True), at_most=1.5)
        report.ratio("  beside a step that reports nothing", update, floor_update(batch, reports=False))


def replay(report: Report) -> None:
    single = get_transition_batch(DISCRETE, batch_size=1, random_seed=0)
    many = get_transition_batch(DISCRETE, batch_size=50_000, random_seed=0)
    for Buffer in (SimpleReplayBuffer, PrioritizedReplayBuffer):
        buffer = Buffer(100_000, random_seed=0)
        buffer.add(many)
        report.absolute(f"{Buffer.__name__}.add", lambda buffer=buffer: buffer.add(single), at_most=5)
        report.absolute(f"{Buffer.__name__}.sample(256)", lambda buffer=buffer: buffer.sample(256), at_most=40)


def dqn_loop(steps: int = 20_000) -> float:
    """Steps per second of DQN on CartPole: one update of 32 per step, soft target updates; compiled before."""
    env = gymnasium.make("CartPole-v1")
    config = DQNConfig(hidden=(64, 64), double=False, batch_size=32, learning_starts=100)
    agent = DQN(env, config, total_steps=steps)
    run_gymnasium(agent, env, 500, seed=0)
    began = time.perf_counter()
    run_gymnasium(agent, env, steps, seed=0)
    return steps / (time.perf_counter() - began)


def main() -> int:
    report = Report("triax in a Gymnasium loop; networks 4-64-64, Adam, CPU")
    approximators(report)
    updates(report)
    replay(report)
    report.show()
    speed = dqn_loop()
    print(f"DQN on CartPole, one update of 32 per step: {speed:,.0f} steps/s (wanted: 2,000)")
    print("Orientation from one core of such a machine: the 2023 original 216, SBX 406, SB3 530.")
    return 1 if report.failed or speed < 2_000 else 0


if __name__ == "__main__":
    sys.exit(main())
