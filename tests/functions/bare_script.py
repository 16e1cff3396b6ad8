"""Run by the fixture ``bare_process``: triax without type checks, flax in tree mode; prints what it saw as JSON."""

import json
import pathlib
import random
import warnings
from types import SimpleNamespace

import flax
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from gymnasium.spaces import Box, Discrete

import triax

ENV = SimpleNamespace(observation_space=Box(-1.0, 1.0, (2,), np.float32), action_space=Discrete(3))
s = np.zeros(2, np.float32)


class Net(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.List([nnx.Linear(2, 4, rngs=rngs), nnx.Linear(4, 4, rngs=rngs)])
        self.norm, self.dropout = nnx.BatchNorm(4, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
        self.last = nnx.Linear(4, 3, rngs=rngs)

    def __call__(self, S, is_training):
        for layer in self.hidden:
            S = nnx.relu(layer(S))
        return self.last(self.dropout(self.norm(S)))


def warn(q, pi):
    """Four warnings, from lines 2, 3, 5 and 6 of this function."""
    triax.td_learning.QLearning(q, pi_targ=pi)
    triax.td_learning.ClippedDoubleQLearning(q, pi_targ_list=[pi], q_targ_list=[q.copy(), q.copy()])
    actor, critic, v, p, r = others()
    triax.policy_objectives.SoftPG(actor, [critic])
    triax.SuccessorStateQ(v, p, r)


def others():
    reals = SimpleNamespace(observation_space=ENV.observation_space, action_space=Box(-1.0, 1.0, (2,), np.float32))
    return (
        triax.Policy(lambda S, is_training: {"mu": S, "logvar": S}, reals),
        triax.Q(lambda S, A, is_training: S.sum(-1) + A.sum(-1), reals),
        triax.V(lambda S, is_training: S.sum(-1), ENV),
        triax.TransitionModel(lambda S, A, is_training: S, ENV),
        triax.RewardFunction(
            lambda S, A, is_training: S.sum(-1) + A.sum(-1),
            ENV,
            action_preprocessor=lambda rng, a: 0.5 * jax.nn.one_hot(jnp.atleast_1d(a), 3),
        ),
    )


def main():
    states = random.getstate(), repr(np.random.get_state())
    q = triax.Q(Net, ENV)
    triax.Q.example_data(ENV)
    pi = triax.EpsilonGreedy(q.copy())
    actions = [pi(s), triax.RandomPolicy(ENV)(s)]
    random_untouched, numpy_untouched = states[0] == random.getstate(), states[1] == repr(np.random.get_state())
    triax.td_learning.QLearning(q).update(triax.reward_tracing.get_transition_batch(ENV, batch_size=8))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn(q, pi)
    seen = {
        "warned": [[str(w.message).partition(":")[0], pathlib.Path(w.filename).name, w.lineno] for w in caught],
        "warned_from": [warn.__code__.co_firstlineno + offset for offset in (2, 3, 5, 6)],
        "graph_mode": flax.config.nnx_graph_mode,
        "values": q(s).shape,
        "is_action": all(a in ENV.action_space for a in actions),
        "random_untouched": random_untouched,
        "numpy_untouched": numpy_untouched,
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
