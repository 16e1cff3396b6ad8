"""One of two processes with two devices each: run by test_many_devices.py with its number and the address."""

import json
import sys

import jax

jax.distributed.initialize(sys.argv[2], num_processes=2, process_id=int(sys.argv[1]))

from four_devices import ENVS, KEY, STEPS, distance, mlp  # noqa: E402

from jax_envs import CartPole  # noqa: E402
from triax.agents import PPOAgent, PPOAgentConfig  # noqa: E402
from triax.core.sharding import first_replica  # noqa: E402
from triax.loops import DeviceOnPolicy, OnPolicyConfig  # noqa: E402

env, agent = CartPole(5), PPOAgent(mlp, PPOAgentConfig(n_epochs=2, n_minibatches=2, learning_rate=1e-2))
states = []
for devices in (None, jax.devices()):
    loop = DeviceOnPolicy(env, agent, OnPolicyConfig(ENVS, STEPS), devices=devices)
    states.append(loop.run(loop.init(KEY), 3)[0])
alone, together = states
here = [shard.data.shape[0] for shard in together.acting.envs.obs.addressable_shards]
print(json.dumps({"agent": distance(alone.agent, first_replica(together.agent)), "environments here": here}))
