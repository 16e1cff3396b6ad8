"""What holds for every distribution."""

import copy
import functools
import gc
import pickle
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from triax.proba_dists import (
    CategoricalDist,
    DiscretizedIntervalDist,
    EmpiricalQuantileDist,
    FactorizedCategoricalDist,
    NormalDist,
    ProbaDist,
    SquashedNormalDist,
)

KEY = jax.random.PRNGKey(3)
BOX = spaces.Box(np.float32([-2, 0]), np.float32([2, 3]))
NESTED = spaces.Dict(a=spaces.Tuple([spaces.Discrete(3, start=1), BOX]), b=spaces.MultiBinary((2, 1)))
DISTS = {
    "categorical": CategoricalDist(spaces.Discrete(4, start=2)),
    "normal": NormalDist(BOX),
    "squashed": SquashedNormalDist(BOX),
    "factorized": FactorizedCategoricalDist(spaces.MultiDiscrete([[2], [3]], start=[[1], [-1]])),
    "composite": ProbaDist(NESTED),
    "interval": DiscretizedIntervalDist(spaces.Box(-1, 2, (), np.float32), 5),
    "quantile": EmpiricalQuantileDist(6),
}
NAMES = list(DISTS)
HAVE_DENSITY = [name for name in NAMES if name != "quantile"]
BATCH = 5


@functools.cache
def drawn(name):
    """Parameters of a batch, raw and clean samples."""
    dist = DISTS[name]
    params = jax.jit(dist.example_params, static_argnums=1)(KEY, BATCH)
    X = dist.sample(params, KEY)
    return params, X, dist._jitted_decode(KEY, X)


def rows(tree, index):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], tree)


def assert_trees_close(x, y, **tolerance):
    assert jax.tree.structure(x) == jax.tree.structure(y)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **tolerance), x, y)


@pytest.mark.parametrize("name", NAMES)
def test_example_params_have_the_declared_structure(name):
    dist = DISTS[name]
    params, _, _ = drawn(name)
    assert jax.tree.structure(params) == dist.dist_params_structure == jax.tree.structure(dist.default_priors)
    for leaf, prior in zip(jax.tree.leaves(params), jax.tree.leaves(dist.default_priors), strict=True):
        assert leaf.shape == (5, *prior.shape[1:]) and leaf.dtype == np.float32
        assert prior.shape[0] == 1
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])
    assert len(np.unique(flat)) >= flat.size / 2


@pytest.mark.parametrize("name", HAVE_DENSITY)
def test_numbers_per_row_are_vectors_and_a_prior_broadcasts(name):
    dist = DISTS[name]
    params, X, _ = drawn(name)
    for value in (
        dist.log_proba(params, X),
        dist.entropy(params),
        dist.cross_entropy(params, dist.default_priors),
        dist.kl_divergence(params, dist.default_priors),
        dist.kl_divergence(dist.default_priors, params),
    ):
        assert value.shape == (5,) and np.isfinite(value).all()


@pytest.mark.parametrize("name", HAVE_DENSITY)
def test_kl_is_cross_entropy_minus_entropy_and_zero_for_equals(name):
    dist = DISTS[name]
    p, _, _ = drawn(name)
    q = rows(p, slice(None, None, -1))
    difference = dist.cross_entropy(p, q) - dist.entropy(p)
    np.testing.assert_allclose(dist.kl_divergence(p, q), difference, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dist.kl_divergence(p, p), 0, atol=1e-6)
    assert (np.delete(dist.kl_divergence(p, q), BATCH // 2) > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_every_method_works_inside_jit_and_compiles_once(name):
    dist = DISTS[name]

    @jax.jit
    def function(params, rng):
        X, log_p = dist.sample_with_log_proba(params, rng)
        return dist.decode(rng, X), dist.mean(params), dist.log_proba(params, X), log_p

    params, _, _ = drawn(name)
    sizes = dist.sample._cache_size()
    for seed in range(3):
        function(params, jax.random.PRNGKey(seed))
        dist.sample(params, jax.random.PRNGKey(seed))
    assert function._cache_size() == 1
    assert dist.sample is dist.sample and dist.sample._cache_size() == sizes


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_keys_give_different_samples_but_typed_and_raw_keys_the_same(name):
    dist = DISTS[name]
    params, X, _ = drawn(name)
    same = dist.sample(params, jax.random.wrap_key_data(KEY))
    assert_trees_close(same, X)
    equal_rows = rows(params, np.zeros(BATCH, int))
    first, second = (dist.sample(equal_rows, jax.random.PRNGKey(seed)) for seed in (1, 2))
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        both = np.concatenate([a, b]).reshape(2 * BATCH, -1)
        assert len(np.unique(both, axis=0)) > (1 if name == "quantile" else BATCH)


@pytest.mark.parametrize("name", NAMES)
def test_postprocessing_gives_members_one_or_all(name):
    dist = DISTS[name]
    _, X, _ = drawn(name)
    space = {"interval": spaces.Box(-1, 2, ()), "quantile": spaces.Box(-np.inf, np.inf, ())}.get(name, dist.space)
    batch = dist.postprocess_variate(KEY, X, batch_mode=True)
    for leaf in jax.tree.leaves(batch):
        assert type(leaf) is np.ndarray and leaf.shape[0] == BATCH
    for index in range(BATCH):
        member = dist.postprocess_variate(KEY, X, index)
        assert member in space
        assert_trees_close(member, rows(batch, index))
    assert_trees_close(dist.postprocess_variate(KEY, X), dist.postprocess_variate(KEY, X, index=0))


@pytest.mark.parametrize("name", NAMES)
def test_preprocessing_takes_one_or_a_batch(name):
    preprocess = jax.jit(DISTS[name].preprocess_variate)
    _, _, clean = drawn(name)
    batch = preprocess(KEY, clean)
    for index in (0, 3):
        single = preprocess(KEY, rows(clean, index))
        assert_trees_close(single, rows(batch, slice(index, index + 1)), rtol=1e-6)


@pytest.mark.parametrize("name", HAVE_DENSITY)
def test_gradients_reach_the_parameters_through_samples_and_densities(name):
    dist = DISTS[name]
    params, _, _ = drawn(name)

    @jax.jit
    @jax.grad
    def gradient_of(params):
        X, log_p = dist.sample_with_log_proba(params, KEY)
        numbers = sum(jnp.sum(jnp.sin(3 * leaf)) for leaf in jax.tree.leaves(X))
        return numbers + log_p.sum() + dist.entropy(params).sum()

    for gradient in jax.tree.leaves(gradient_of(params)):
        assert np.isfinite(gradient).all() and np.any(gradient)


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_is_the_distribution_itself(name):
    assert copy.copy(DISTS[name]) is DISTS[name] and copy.deepcopy({"dist": DISTS[name]})["dist"] is DISTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_used_distribution_can_be_pickled(name):
    params, X, _ = drawn(name)
    twin = pickle.loads(pickle.dumps(DISTS[name]))
    assert twin.hyperparams == DISTS[name].hyperparams and repr(twin) == repr(DISTS[name])
    assert_trees_close(twin.sample(params, KEY), X)


def test_a_distribution_that_was_used_can_be_collected():
    dist = NormalDist(BOX)
    jax.grad(lambda params: dist.log_proba(params, dist.sample(params, KEY)).sum())(dist.example_params(KEY, 2))
    reference = weakref.ref(dist)
    del dist
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    ("name", "params", "says"),
    [
        (
            "categorical",
            {"logits": np.zeros((2, 3))},
            r"'logits'\] must have the shape \(batch, 4\); got \(2, 3\)",
        ),
        ("categorical", {"logits": np.zeros(4)}, r"shape \(batch, 4\); got \(4,\)"),
        ("categorical", {"logit": np.zeros((2, 4))}, r"key 'logits'; got a dict with the keys \['logit'\]"),
        ("categorical", np.zeros((2, 4)), "must be a dict"),
        (
            "normal",
            {"mu": np.zeros((2, 2)), "logvar": np.zeros((2, 3))},
            r"'logvar'\] must have the shape \(batch, 2\)",
        ),
        ("normal", {"mu": np.zeros(2), "logvar": np.zeros((2, 2))}, r"'mu'\] must have the shape"),
        ("interval", {"logits": np.zeros((2, 4))}, r"shape \(batch, 5\)"),
        ("quantile", {"values": np.zeros((2, 4))}, r"shape \(batch, 6\)"),
        ("factorized", ({"logits": np.zeros((2, 2))},), r"tuple of 2 factors; got 1"),
        ("factorized", ({"logits": np.zeros((2, 2))}, {"logits": np.zeros((2, 2))}), r"\[1\]\['logits'\]"),
        ("composite", {"a": ()}, r"keys \['a', 'b'\]; got the keys \['a'\]"),
        ("composite", {"a": (), "b": ()}, r"dist_params\['a'\] must be a tuple of 2 parts; got 0"),
    ],
)
def test_parameters_of_another_structure_or_shape_are_refused(name, params, says):
    with pytest.raises(ValueError, match=says):
        DISTS[name].mean(params)


@pytest.mark.parametrize("name", ["categorical", "normal", "squashed", "interval"])
def test_variates_of_another_shape_are_refused(name):
    params = DISTS[name].example_params(KEY, 2)
    for shape in [(2, 7), (7,), (2, 2, 7)]:
        with pytest.raises(ValueError, match="X must have the shape"):
            DISTS[name].log_proba(params, np.zeros(shape))
