import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy import integrate, stats

from triax.agents.action_heads import expose_heads, is_head, kl_divergence, raw_action
from triax.networks import ActionSampler, Dense, DistributionSampler, NormalTanhSampler, PPOAdapter, Sequential
from triax.networks.plain import plain

SPACES = {
    "discrete": gym.spaces.Discrete(3, start=5),
    "box": gym.spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 9.0], np.float32)),
    "nested": gym.spaces.Dict(gear=gym.spaces.Discrete(2), arms=gym.spaces.MultiDiscrete([2, 3])),
}


def sampler_of(kind):
    if kind == "tanh":
        return NormalTanhSampler(nnx.Rngs(0), 0.0), 4
    sampler = DistributionSampler(SPACES[kind], nnx.Rngs(0))
    return sampler, sampler.num_params


def density(u, mu, sigma):
    """Of tanh(u), by SciPy."""
    return stats.norm.pdf(u, mu, sigma) / (1 - np.tanh(u) ** 2)


def test_divergence_of_squashed_normals_is_that_of_their_densities():
    sampler, _ = sampler_of("tanh")
    (mu, sigma), (nu, tau) = ([0.3, -1.0], [0.5, 0.2]), ([0.0, -0.7], [0.8, 0.3])

    def integrand(action, i):
        u = np.arctanh(action)
        p, q = density(u, mu[i], sigma[i]), density(u, nu[i], tau[i])
        return p * np.log(p / q)

    expected = sum(integrate.quad(integrand, -0.99999, 0.99999, args=(i,), limit=300)[0] for i in range(2))
    p = {"mu": jnp.array([mu]), "sigma": jnp.array([sigma])}
    q = {"mu": jnp.array([nu]), "sigma": jnp.array([tau])}
    np.testing.assert_allclose(kl_divergence(sampler, sampler, p, q), [expected], rtol=1e-3)


def test_divergence_of_choices_is_the_sum_over_them():
    sampler, _ = sampler_of("discrete")
    p, q = np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.1, 0.3])
    params = [{"dist_params": {"logits": jnp.log(jnp.array([x]))}} for x in (p, q)]
    np.testing.assert_allclose(kl_divergence(sampler, sampler, *params), [np.sum(p * np.log(p / q))], rtol=1e-5)


@pytest.mark.parametrize("kind", ["tanh", *SPACES])
def test_an_action_and_its_raw_sample_have_one_likelihood(kind):
    sampler, features = sampler_of(kind)
    x = jax.random.normal(jax.random.key(1), (6, features))
    out = sampler((), x)
    raw = raw_action(sampler, out.output["action"])
    again = sampler((), x, raw)
    for a, b in zip(*map(jax.tree.leaves, (again.output["action"], out.output["action"])), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    np.testing.assert_allclose(again.output["log_likelihood"], out.output["log_likelihood"], rtol=1e-2, atol=1e-2)


def test_heads_come_out_wherever_the_samplers_are_and_change_no_action():
    def network():
        rngs = nnx.Rngs(3)
        actor = Sequential([Dense(3, 4, rngs), Sequential([NormalTanhSampler(rngs, 0.1)])])
        return Sequential([Dense(3, 3, rngs), PPOAdapter(actor, Dense(3, 1, rngs))])

    x = jax.random.normal(jax.random.key(0), (5, 3))
    plain_net, exposed = network(), network()
    samplers = expose_heads(exposed)
    assert len(samplers) == 1
    before = plain_net(plain_net.initialize_state(5), x)
    after = exposed(exposed.initialize_state(5), x)
    head = after.output.loglikelihoods
    assert is_head(head)
    assert head.place == 0
    np.testing.assert_array_equal(after.output.actions, before.output.actions)
    np.testing.assert_array_equal(jnp.tanh(head.raw), before.output.actions)
    np.testing.assert_array_equal(after.regularization_loss, before.regularization_loss)


def test_other_families_and_unknown_samplers_are_refused():
    class Own(ActionSampler):
        def __call__(self, state, mean_and_std, rollout_extras=None):
            return plain(mean_and_std)

    tanh, discrete, box = (sampler_of(kind)[0] for kind in ("tanh", "discrete", "box"))
    other = DistributionSampler(gym.spaces.Discrete(4), nnx.Rngs(0))
    for student, teacher in ((tanh, box), (box, tanh), (discrete, other), (Own(), Own())):
        with pytest.raises(TypeError, match=r"distributions of one family; got .*loss='sample'"):
            kl_divergence(student, teacher, {}, {})
    with pytest.raises(TypeError, match="Own cannot judge actions"):
        raw_action(Own(), jnp.zeros((2, 1)))
