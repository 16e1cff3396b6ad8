"""A Q-learning worker as users of the base class write it."""

import gymnasium
import numpy as np
import optax

from triax import EpsilonGreedy, Q
from triax.agents.default_networks import ActionValues
from triax.distributed import Worker
from triax.experience_replay import PrioritizedReplayBuffer
from triax.reward_tracing import NStep
from triax.td_learning import QLearning
from triax.utils import chunks_pow2


class QWorker(Worker):
    """Prioritized Q-learning with soft target updates; only the store has a buffer."""

    def __init__(self, env="CartPole-v1", param_store=None, name=None):
        env = gymnasium.make(env)
        self.q = Q(ActionValues.factory(env, (8,)), env, random_seed=0)
        self.q_targ = self.q.copy()
        self.qlearning = QLearning(self.q, q_targ=self.q_targ, optimizer=optax.adam(1e-3))
        buffer = PrioritizedReplayBuffer(10_000, alpha=0.6, random_seed=0) if param_store is None else None
        super().__init__(
            env,
            param_store=param_store,
            pi=EpsilonGreedy(self.q, epsilon=0.5),
            tracer=NStep(1, 0.9),
            buffer=buffer,
            buffer_warmup=50,
            name=name,
        )
        self.updates = 0

    def get_state(self):
        return self.q.params, self.q.function_state, self.q_targ.params, self.q_targ.function_state

    def set_state(self, state):
        self.q.params, self.q.function_state, self.q_targ.params, self.q_targ.function_state = state

    def trace(self, s, a, r, done, logp=0.0, w=1.0, *, truncated=False, s_next=None):
        self.tracer.add(s, a, r, done, logp, w, truncated=truncated, s_next=s_next)
        if done or truncated:
            for chunk in chunks_pow2(self.tracer.flush()):
                self.buffer_add(chunk, self.qlearning.td_error(chunk))

    def learn(self, transition_batch):
        metrics, td_error = self.qlearning.update(transition_batch, return_td_error=True)
        self.buffer_update(transition_batch.idx, td_error)
        self.q_targ.soft_update(self.q, tau=0.01)
        self.push_setattr("buffer.beta", 0.5)
        self.updates += 1
        return metrics

    def state_numbers(self):
        return [np.asarray(leaf) for leaf in self.q.params.values() for leaf in _leaves(leaf)]


def _leaves(tree):
    import jax

    return jax.tree.leaves(tree)
