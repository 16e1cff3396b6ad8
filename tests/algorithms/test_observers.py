from dataclasses import replace

import jax

from algorithms.small import ENV, EVAL, recurrent_net
from triax.agents.ppo_network import PPONetwork
from triax.algorithms.observers import Evaluator


def test_each_evaluation_sees_fresh_episodes_unless_they_are_to_be_fixed():  # F18
    network, networks = PPONetwork.of(recurrent_net())
    for fixed, different in ((False, 3), (True, 1)):
        evaluator = Evaluator(network, ENV, replace(EVAL, fixed_episodes=fixed))
        found = [evaluator(networks, jax.random.key(0), iteration)[0] for iteration in range(3)]
        assert len({metrics["eval/episode_reward/mean"] for metrics in found}) == different
