"""Samples and masks that would be broadcast are refused."""

import re

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.networks import DistributionSampler, NormalTanhSampler

from .laws import assert_trees_close, normals

SPACES = {
    "discrete": gym.spaces.Discrete(3, start=5),
    "multi-discrete": gym.spaces.MultiDiscrete([2, 4]),
    "box": gym.spaces.Box(-1, 1, (2,)),
    "nested": gym.spaces.Dict(gear=gym.spaces.Discrete(2), arms=gym.spaces.Tuple([gym.spaces.Box(-1, 1, (2,))])),
}
SAMPLERS = {name: lambda space=space: DistributionSampler(space, nnx.Rngs(0)) for name, space in SPACES.items()}
SAMPLERS["tanh"] = lambda: NormalTanhSampler(nnx.Rngs(0), 0.0)


@pytest.mark.parametrize("name", list(SAMPLERS))
def test_a_sample_that_would_be_broadcast_is_refused_in_a_replay(name):
    sampler = SAMPLERS[name]()
    params = normals(0, 4, 4 if name == "tanh" else sampler.num_params)
    sample = sampler((), params).rollout_extras
    assert_trees_close(sampler((), params, sample).rollout_extras, sample)
    for cut in (lambda leaf: leaf[:1], lambda leaf: leaf[0], lambda leaf: leaf[..., :1]):
        wrong = jax.tree.map(cut, sample)
        wanted, got = (str(list(jax.tree.leaves(tree)[0].shape)) for tree in (sample, wrong))
        with pytest.raises(ValueError, match="rollout_extras are the sample of this step") as caught:
            sampler((), params, wrong)
        who, message = type(sampler).__name__, str(caught.value)
        assert message.startswith(who) and wanted in message.split("; got")[0] and got in message.split("; got")[1]
    for cut in (lambda leaf: leaf[None, :1], lambda leaf: leaf[None].repeat(2, 0)):  # of another batch, or length
        with pytest.raises(ValueError, match=r"unroll: rollout_extras must start with \[time, batch\] = \[1, 4\]"):
            sampler.unroll((), params[None], jnp.zeros((1, 4), bool), jax.tree.map(cut, sample))


def test_parameters_that_would_be_broadcast_or_not_be_used_are_refused():
    sampler, ones = SAMPLERS["box"](), jnp.ones((4, 2))
    with pytest.raises(ValueError, match=r"all parameters must be of one batch; got .*'logvar': \[1, 2\]"):
        sampler((), {"mu": ones, "logvar": ones[:1]})
    for wrong in ({"mu": ones}, {"mu": ones, "sigma": ones}, {"mu": ones, "logvar": ones, "std": ones}):
        with pytest.raises(ValueError, match=r"takes the parameters \{'logvar': array, 'mu': array\}, .*; got .*'mu'"):
            sampler((), wrong)
    nested = SAMPLERS["nested"]()
    params = {"gear": {"logits": ones}, "arms": [{"mu": ones, "logvar": ones}]}  # a list for a tuple
    assert nested((), params).output["log_likelihood"].shape == (4,)


@pytest.mark.parametrize("shape", [(2, 1), (3,), (1, 3), (2, 2, 3), (2, 4), ()])
def test_a_mask_that_would_be_broadcast_is_refused_with_both_shapes(shape):
    sampler = DistributionSampler(SPACES["discrete"], nnx.Rngs(0), masked=True)
    for mask in (np.ones(shape, bool), jnp.ones(shape, bool)):
        with pytest.raises(ValueError, match=rf"shape of the logits, \[2, 3\]; got {re.escape(str(list(shape)))}"):
            sampler((), {"params": jnp.zeros((2, 3)), "mask": mask})
    with pytest.raises(ValueError, match=r"shape of the logits, \[2, 3\]; got"):  # in a sequence, too
        sampler.unroll((), {"params": jnp.zeros((5, 2, 3)), "mask": jnp.ones((5, 2, 1), bool)}, jnp.zeros((5, 2), bool))


def test_masks_of_many_discrete_parts_are_one_for_each():
    sampler = DistributionSampler(SPACES["multi-discrete"], nnx.Rngs(0), masked=True)
    mask = (np.array([[True, False]] * 9), np.array([[False, False, True, False]] * 9))
    action = sampler((), {"params": normals(0, 9, 6), "mask": mask}).output["action"]
    np.testing.assert_array_equal(action, [[0, 2]] * 9)
    with pytest.raises(ValueError, match=r"\[9, 2\]; got \[9, 1\]"):
        sampler((), {"params": normals(0, 9, 6), "mask": (mask[0][:, :1], None)})
