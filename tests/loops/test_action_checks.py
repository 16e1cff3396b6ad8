import functools

import gymnasium
import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from jax_envs import CartPole, OnlyTimesOut, PlainWalk, Walk
from triax.agents import Distillation, PPOAgent
from triax.algorithms import PPOConfig, TrainConfig, eval_rollout, train_distillation, train_ppo
from triax.envs import AutoReset, EnvWrapper, adapt
from triax.envs.adapt import declared_action_space
from triax.loops import DeviceOnPolicy, OnPolicyConfig, VectorOnPolicy
from triax.loops.action_checks import check_actions
from triax.networks import make_mlp_actor_critic

KEY = jax.random.key(0)
ONE = OnPolicyConfig(num_envs=2, rollout_length=2)
CONFIG = TrainConfig(PPOConfig(n_envs=2, rollout_length=2, total_steps=4, n_minibatches=1))


@functools.cache
def net(obs_size, actions):
    return make_mlp_actor_critic(obs_size, actions, [4], [4], nnx.Rngs(0))


def batch(shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct((7, *shape), dtype)


FITTING = [
    (Box(-1, 1, (2, 3)), batch((2, 3))),
    (Box(0, 5, (2,), int), batch((2,), jnp.int32)),
    (Box(0, 5, (2,), int), batch((2,))),
    (Discrete(3, start=1), batch((), jnp.int32)),
    (MultiDiscrete([2, 3]), batch((2,), jnp.int32)),
    (MultiBinary(4), batch((4,), jnp.int8)),
    (MultiBinary(4), batch((4,), bool)),
    (Dict(a=Box(0, 5, (2,), int), b=Discrete(2)), {"a": batch((2,)), "b": batch((), jnp.int32)}),
    (Tuple([Box(-1, 1, ()), Discrete(2)]), (batch(()), batch((), jnp.int32))),
    (None, batch((3,))),
]
OTHERS = [
    (Box(-1, 1, (1,)), batch((3,)), r"Box\(-1.0, 1.0, \(1,\), float32\).*action: float32\[1\]; got action: float32\[3"),
    (Box(-1, 1, (1,)), batch(()), r"float32\[1\]; got action: float32\[\]"),
    (Box(-1, 1, (1,)), batch((1,), jnp.int32), r"float32\[1\]; got action: int32\[1\]"),
    (Discrete(2), batch(()), r"int32\[\]; got action: float32\[\]"),
    (Discrete(2), batch((1,), jnp.int32), r"int32\[\]; got action: int32\[1\]"),
    (MultiDiscrete([2, 3]), batch((3,), jnp.int32), r"int32\[2\]; got action: int32\[3\]"),
    (Dict(a=Discrete(2)), batch((), jnp.int32), r"action\['a'\]: int32\[\]; got action: int32\[\]"),
    (Dict(a=Discrete(2)), {"a": batch(())}, r"action\['a'\]: int32\[\]; got action\['a'\]: float32\[\]"),
    (Tuple([Discrete(2)] * 2), (batch((), jnp.int32),), r"action\[1\]: int32\[\]; got action\[0\]: int32\[\]\. "),
]


@pytest.mark.parametrize(("space", "actions"), FITTING)
def test_actions_of_the_space_pass(space, actions):
    check_actions("loop", actions, space)


@pytest.mark.parametrize(("space", "actions", "message"), OTHERS)
def test_actions_of_another_tree_shape_or_kind_are_refused_with_both(space, actions, message):
    with pytest.raises(ValueError, match=f"^loop: the network's actions must be of env.action_space.*{message}"):
        check_actions("loop", actions, space)


def test_a_training_refuses_a_network_whose_actions_are_of_another_shape():
    with pytest.raises(ValueError, match=r"DeviceOnPolicy.*expected.*float32\[1\]; got action: float32\[3\]"):
        train_ppo(Walk(), net(1, 3), CONFIG)


def test_a_training_refuses_a_network_whose_actions_are_of_another_kind():
    with pytest.raises(ValueError, match=r"DeviceOnPolicy.*Discrete\(2\).*int32\[\]; got action: float32\[1\]"):
        train_ppo(CartPole(), net(4, 1), CONFIG)


def test_a_distillation_refuses_a_student_whose_actions_are_of_another_shape():
    with pytest.raises(ValueError, match=r"expected.*float32\[1\]; got action: float32\[2\]"):
        train_distillation(Walk(), net(1, 2), net(1, 2))


def test_an_evaluation_refuses_a_network_whose_actions_are_of_another_shape():
    with pytest.raises(ValueError, match=r"evaluation.*float32\[1\]; got action: float32\[3\]"):
        eval_rollout(Walk(), net(1, 3), 2, 3, KEY)


@pytest.mark.parametrize("num_seeds", [None, 2])
def test_a_device_loop_refuses_actions_of_another_shape_when_it_begins(num_seeds):
    agent = PPOAgent(lambda rngs: make_mlp_actor_critic(1, 3, [4], [4], rngs))
    loop = DeviceOnPolicy(Walk(), agent, ONE, num_seeds=num_seeds)
    with pytest.raises(ValueError, match=r"DeviceOnPolicy.*float32\[1\]; got action: float32\[3\]"):
        loop.init(KEY if num_seeds is None else jax.random.split(KEY, num_seeds))


@pytest.mark.parametrize("make", [PPOAgent, lambda net: Distillation(net, net)])
def test_a_vector_loop_refuses_actions_of_another_kind_when_it_begins(make):
    loop = VectorOnPolicy(gymnasium.make("CartPole-v1"), make(net(4, 2)))
    with pytest.raises(ValueError, match=r"VectorOnPolicy.*int32\[\]; got action: float32\[2\]"):
        loop.init(KEY)


def test_an_environment_that_declares_no_action_space_takes_what_the_network_gives():
    assert declared_action_space(AutoReset(PlainWalk())) is None
    DeviceOnPolicy(PlainWalk(), PPOAgent(net(1, 1)), ONE).init(KEY)


def test_a_declared_action_space_is_found_through_all_wrappers():
    class Renamed(EnvWrapper):
        action_space = Discrete(9)

    space = Box(-3, 3, (1,))
    assert declared_action_space(AutoReset(adapt(PlainWalk(), action_space=space))) == space
    assert declared_action_space(AutoReset(EnvWrapper(OnlyTimesOut()))) == OnlyTimesOut.action_space
    assert declared_action_space(AutoReset(Renamed(Walk()))) == Discrete(9)
