"""What the transitions of a replay are like, before there are any."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from triax.agents.off_policy import OffPolicyAgent
from triax.distributed.recipe import Recipe
from triax.reward_tracing import NStep, TransitionBatch
from triax.spaces import batch_encoder, sample_batch


def example_batch(recipe: Recipe, agent: OffPolicyAgent, rows: Mapping[str, np.ndarray]) -> TransitionBatch:
    """A transition like those of a snapshot: the spaces tell its structure, the arrays the dtypes."""
    env = recipe.make_env()
    encode = batch_encoder(env.observation_space, who="replay", argument="observation")
    observation = encode(sample_batch(env.observation_space, 1, 0))
    env.close()
    action = jax.eval_shape(lambda key: _act(agent, observation, key), jax.random.key(0))
    s = jax.tree.map(lambda leaf: np.asarray(leaf)[0], observation)
    a = jax.tree.map(lambda leaf: np.zeros(leaf.shape[1:], leaf.dtype), action)
    tracer = NStep(1, 0.0)
    tracer.add(s, a, 0.0, True, s_next=None if agent.replay.next_actions else s)

    def as_stored(path: Any, leaf: np.ndarray) -> np.ndarray:
        stored = rows.get(f"rows/{jax.tree_util.keystr(path, simple=True, separator='/')}")
        return leaf if stored is None or stored.shape[1:] != leaf.shape[1:] else leaf.astype(stored.dtype)

    return jax.tree_util.tree_map_with_path(as_stored, tracer.pop())


def _act(agent: OffPolicyAgent, observation: Any, key: Any) -> Any:
    state = agent.init(key)
    return agent.act(state, observation, agent.initial_carry(state, 1, key), key)[0]
