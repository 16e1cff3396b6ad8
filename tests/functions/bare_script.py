"""Run by the fixture ``bare_process``: triax without type checks, flax in tree mode; prints what it saw as JSON."""

import json
import random
from types import SimpleNamespace

import flax
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


def main():
    states = random.getstate(), repr(np.random.get_state())
    q = triax.Q(Net, ENV)
    triax.Q.example_data(ENV)
    pi = triax.EpsilonGreedy(q.copy())
    actions = [pi(s), triax.RandomPolicy(ENV)(s)]
    random_untouched, numpy_untouched = states[0] == random.getstate(), states[1] == repr(np.random.get_state())
    triax.td_learning.QLearning(q).update(triax.reward_tracing.get_transition_batch(ENV, batch_size=8))
    seen = {
        "graph_mode": flax.config.nnx_graph_mode,
        "values": q(s).shape,
        "is_action": all(a in ENV.action_space for a in actions),
        "random_untouched": random_untouched,
        "numpy_untouched": numpy_untouched,
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
