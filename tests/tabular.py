"""Tables as functions, and exact dynamic programming on FrozenLake: what learned values are compared with."""

from types import SimpleNamespace

import gymnasium
import numpy as np
from flax import nnx

from triax.reward_tracing import TransitionBatch

GAMMA = 0.9


class Table(nnx.Module):
    """One number per state and action (or per state), all zero at first."""

    def __init__(self, num_states, *shape):
        self.table = nnx.Param(np.zeros((num_states, *shape), np.float32))

    def __call__(self, S, is_training):
        return S @ self.table[...]


class FrozenLake:
    """The exact model of a FrozenLake environment: arrays over (s, a, s')."""

    def __init__(self, *, is_slippery):
        self.env = gymnasium.make("FrozenLake-v1", is_slippery=is_slippery)
        self.num_states, self.num_actions = self.env.observation_space.n, self.env.action_space.n
        table = self.env.unwrapped.P
        rows = [
            (s, a, probability, s_next, r, done)
            for s in range(self.num_states)
            for a in range(self.num_actions)
            for probability, s_next, r, done in table[s][a]
        ]
        self.s, self.a, self.p, self.s_next, self.r, self.done = (np.array(column) for column in zip(*rows))

    @property
    def spaces(self):
        return SimpleNamespace(observation_space=self.env.observation_space, action_space=self.env.action_space)

    def backup(self, next_values):
        """Exact q-values [states, actions] from the values of next states."""
        q = np.zeros((self.num_states, self.num_actions))
        np.add.at(q, (self.s, self.a), self.p * (self.r + GAMMA * ~self.done * next_values[self.s_next]))
        return q

    def optimal_q(self):
        return self._iterate(lambda q: q.max(axis=1))

    def policy_q(self, policy):
        return self._iterate(lambda q: (policy * q).sum(axis=1))

    def _iterate(self, value):
        q = np.zeros((self.num_states, self.num_actions))
        for _ in range(500):
            q = self.backup(value(q))
        return q

    def transitions(self, policy=None):
        """Every transition once, weighted by its probability; with a policy every next action too."""
        s, a, p, s_next, r, done = self.s, self.a, self.p, self.s_next, self.r, self.done
        a_next, logp_next = None, None
        if policy is not None:
            n = self.num_actions
            s, a, p, s_next, r, done = (np.repeat(x, n) for x in (s, a, p, s_next, r, done))
            a_next = np.tile(np.arange(n), len(self.s))
            p = p * policy[s_next, a_next]
            logp_next = np.log(policy[s_next, a_next])
        return TransitionBatch(
            S=s,
            A=a,
            logP=np.zeros(len(s)),
            Rn=r,
            In=GAMMA * ~done,
            S_next=s_next,
            A_next=a_next,
            logP_next=logp_next,
            W=p,
        )
