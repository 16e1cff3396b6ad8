import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from gymnasium import spaces
from hypothesis import given, settings

from space_strategies import any_space
from triax.proba_dists import CategoricalDist, FactorizedCategoricalDist, NormalDist, ProbaDist
from triax.spaces import batch_decoder, decoder, encoder, safe_sample, sample_batch

KEY = jax.random.PRNGKey(1)
BOX = spaces.Box(-1, 1, (2,))
NESTED = spaces.Dict(
    a=spaces.Tuple([spaces.Discrete(3, start=1), BOX]),
    b=spaces.MultiDiscrete([[2], [3], [2]], start=[[1], [0], [-4]]),
    c=spaces.MultiBinary((2, 1)),
)


SPACES = [
    spaces.Discrete(1, start=4),
    spaces.Discrete(5, start=-2),
    spaces.Discrete(3, dtype=np.uint8),
    spaces.Box(-1, 1, ()),
    spaces.Box(-2.5, 0.1, (2, 2), np.float64),
    spaces.Box(np.float64([-np.inf, 0, -np.inf, 3]), np.float64([np.inf, np.inf, -1, 3]), dtype=np.float64),
    spaces.Box(0, 255, (2, 3), np.uint8),
    spaces.Box(-(2**63), 2**63 - 2, (1,), np.int64),
    spaces.Box(-7, 7, (), np.int64),
    spaces.Box(0, 1, (3,), np.float16),
    spaces.MultiDiscrete([3, 1, 2, 3], start=[0, -4, 1, 0]),
    spaces.MultiDiscrete([[2], [2]], dtype=np.int8),
    spaces.MultiDiscrete(np.array(3), start=np.array(1)),
    spaces.MultiBinary((3, 2)),
    NESTED,
]
EVERY_SPACE = pytest.mark.parametrize("index", range(len(SPACES)), ids=lambda k: " ".join(str(SPACES[k]).split()))


def random_params(dist, batch_size, seed=0):
    return dist.example_params(jax.random.PRNGKey(seed), batch_size)


@functools.cache
def acted(index):
    """What acting and learning compute for a space, in one compiled call: two rows."""
    space = SPACES[index]
    dist = ProbaDist(space)

    @jax.jit
    def run(member):
        params = random_params(dist, 2)
        clean = dist.decode(KEY, dist.sample(params, KEY))
        back = dist.decode(KEY, dist.preprocess_variate(KEY, member))
        log_p = dist.log_proba(params, dist.preprocess_variate(KEY, clean))
        return {"clean": clean, "log_p": log_p, "back": back, "member": member}

    return run(encoder(space, who="test", argument="member")(safe_sample(space, 0)))


@EVERY_SPACE
def test_a_decoded_sample_of_any_space_is_a_member(index):
    """F23, F24, F26, F27."""
    space, clean = SPACES[index], acted(index)["clean"]
    example = sample_batch(space, 2, 0)
    assert jax.tree.map(lambda leaf: (leaf.dtype, leaf.shape), clean) == jax.tree.map(
        lambda leaf: (leaf.dtype, leaf.shape), example
    )
    members = batch_decoder(space)(jax.device_get(clean))
    for row in range(2):
        assert jax.tree.map(lambda leaf, k=row: np.asarray(leaf[k]), members) in space


@EVERY_SPACE
def test_clean_to_raw_and_back_is_the_same(index):
    """F28."""
    member, back = acted(index)["member"], acted(index)["back"]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(b[0], a, rtol=1e-4, atol=1e-5), member, back)


@EVERY_SPACE
def test_a_learner_computes_the_log_probability_that_acting_reported(index):
    """F28, F29: from the member that went through the environment, batched again on the host."""
    space, log_p = SPACES[index], acted(index)["log_p"]
    dist, encode = ProbaDist(space), encoder(space, who="test", argument="a")
    batch = jax.device_get(acted(index)["clean"])
    members = [decoder(space)(jax.tree.map(lambda leaf, k=row: leaf[k], batch)) for row in range(2)]
    A = jax.tree.map(lambda *leaves: np.stack(leaves), *map(encode, members))
    again = jax.jit(lambda A: dist.log_proba(random_params(dist, 2), dist.preprocess_variate(KEY, A)))(A)
    assert np.isfinite(log_p).all()
    np.testing.assert_allclose(again, log_p, rtol=1e-5, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(any_space)
def test_parameters_and_variates_nest_as_the_space_does(space):
    dist = ProbaDist(space)
    params, X, clean = jax.eval_shape(
        lambda key: (
            dist.example_params(key, 3),
            dist._sample(dist.example_params(key, 3), key),
            dist.decode(key, dist._sample(dist.example_params(key, 3), key)),
        ),
        KEY,
    )
    assert jax.tree.structure(params) == dist.dist_params_structure
    assert jax.tree.structure(X) == jax.tree.structure(
        jax.eval_shape(lambda: dist.preprocess_variate(KEY, sample_batch(space, 3, 0)))
    )
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), clean) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), sample_batch(space, 3, 0)
    )


@pytest.mark.parametrize(
    ("space", "structure"),
    [
        (spaces.Discrete(3), {"logits": (1, 3)}),
        (BOX, {"mu": (1, 2), "logvar": (1, 2)}),
        (spaces.MultiDiscrete([[2], [3]]), ({"logits": (1, 2)}, {"logits": (1, 3)})),
        (spaces.MultiBinary((2, 1)), ({"logits": (1, 2)}, {"logits": (1, 2)})),
        (spaces.Tuple([BOX, spaces.Discrete(3)]), ({"mu": (1, 2), "logvar": (1, 2)}, {"logits": (1, 3)})),
        (spaces.Dict(a=spaces.Tuple([spaces.MultiBinary(1)])), {"a": (({"logits": (1, 2)},),)}),
    ],
    ids=str,
)
def test_parameters_have_the_structure_of_the_space(space, structure):
    assert jax.tree.map(jnp.shape, ProbaDist(space).default_priors) == structure


def test_raw_variates_have_lists_for_tuples():
    X = ProbaDist(NESTED).preprocess_variate(KEY, sample_batch(NESTED, 4, 0))
    shapes = {"a": [(4, 3), (4, 2)], "b": [(4, 2), (4, 3), (4, 2)], "c": [(4, 2), (4, 2)]}
    assert jax.tree.map(jnp.shape, X) == shapes


def test_numbers_are_sums_over_the_parts():
    """Oracle: the parts one by one, the factors as categorical distributions of their own."""
    dist = ProbaDist(NESTED)
    p, q = random_params(dist, 4), random_params(dist, 4, 1)
    X = dist.preprocess_variate(KEY, sample_batch(NESTED, 4, 0))
    parts = [CategoricalDist(NESTED["a"][0]), NormalDist(BOX)]
    parts += [CategoricalDist(spaces.Discrete(n)) for n in (2, 3, 2, 2, 2)]

    def flat(tree):
        return [*tree["a"], *tree["b"], *tree["c"]]

    for name in ("entropy", "cross_entropy", "kl_divergence", "log_proba"):
        args = {"entropy": (p,), "log_proba": (p, X)}.get(name, (p, q))
        rows = zip(parts, *map(flat, args), strict=True)
        expected = sum(getattr(part, name)(*columns) for part, *columns in rows)
        np.testing.assert_allclose(getattr(dist, name)(*args), expected, rtol=1e-5, atol=1e-5)


def test_lists_and_tuples_are_taken_alike():
    dist = ProbaDist(NESTED)
    params = random_params(dist, 3)
    lists = {key: list(value) for key, value in params.items()}
    np.testing.assert_array_equal(dist.entropy(lists), dist.entropy(params))
    X = dist.sample(params, KEY)
    tuples = {key: tuple(value) for key, value in X.items()}
    np.testing.assert_array_equal(dist.log_proba(params, tuples), dist.log_proba(params, X))


def test_parts_are_sampled_with_keys_of_their_own():
    """Pitfall 18: equal parts with equal parameters draw different, uncorrelated numbers."""
    dist = ProbaDist(spaces.Tuple([spaces.Box(-np.inf, np.inf, (3000,)), spaces.Box(-np.inf, np.inf, (3000,))]))
    x, y = dist.sample(dist.default_priors, KEY)
    assert abs(scipy.stats.pearsonr(x[0], y[0]).statistic) < 0.08
    binary = ProbaDist(spaces.MultiBinary(3))
    clean = np.asarray(
        binary.decode(KEY, binary.sample(jax.tree.map(lambda x: jnp.tile(x, (4000, 1)), binary.default_priors), KEY))
    )
    codes = np.bincount(clean @ [1, 2, 4], minlength=8)
    assert scipy.stats.chisquare(codes).pvalue > 1e-3
    mixed = ProbaDist(spaces.MultiDiscrete([2, 3, 2, 3]))
    X = mixed.sample(jax.tree.map(lambda x: jnp.tile(x, (2000, 1)), mixed.default_priors), KEY)
    assert abs(np.corrcoef(X[0][:, 0], X[2][:, 0])[0, 1]) < 0.1
    assert abs(np.corrcoef(X[0][:, 0], X[1][:, 0])[0, 1]) < 0.1


def test_factors_are_sampled_with_their_probabilities_and_offsets():
    space = spaces.MultiDiscrete([[3], [2]], start=[[5], [-1]])
    dist = FactorizedCategoricalDist(space)
    probabilities = [np.float32([0.2, 0.3, 0.5]), np.float32([0.9, 0.1])]
    params = tuple({"logits": jnp.tile(jnp.log(p), (6000, 1))} for p in probabilities)
    clean = np.asarray(dist.decode(KEY, dist.sample(params, KEY)))
    assert clean.shape == (6000, 2, 1)
    for k, (p, first) in enumerate(zip(probabilities, (5, -1), strict=True)):
        counts = np.bincount(clean[:, k, 0] - first, minlength=len(p))
        assert scipy.stats.chisquare(counts, 6000 * p.astype(float) / p.astype(float).sum()).pvalue > 1e-3
    np.testing.assert_array_equal(dist.postprocess_variate(KEY, dist.mode(params)), [[7], [-1]])


def test_modes_and_means_decode_to_the_most_probable_values():
    dist = ProbaDist(NESTED)
    params = random_params(dist, 3)
    for X in (dist.mode(params), dist.mean(params)):
        clean = dist.decode(KEY, X)
        np.testing.assert_array_equal(clean["a"][0], np.argmax(params["a"][0]["logits"], axis=1) + 1)
        np.testing.assert_array_equal(clean["b"][:, 1, 0], np.argmax(params["b"][1]["logits"], axis=1))
        np.testing.assert_array_equal(clean["c"][:, 0, 0], np.argmax(params["c"][0]["logits"], axis=1))


def test_affine_transform_goes_part_by_part():
    """F72: with value transforms, and discrete parts left alone."""
    dist = ProbaDist(NESTED)
    params = random_params(dist, 3)
    nothing = {"b": None, "c": None}
    scale, shift = {"a": (None, 2.0), **nothing}, {"a": (None, jnp.arange(3.0)), **nothing}
    transformed = dist.affine_transform(params, scale, shift)
    expected = NormalDist(BOX).affine_transform(params["a"][1], 2.0, jnp.arange(3.0))
    np.testing.assert_allclose(transformed["a"][1]["mu"], expected["mu"])
    np.testing.assert_array_equal(transformed["a"][0]["logits"], params["a"][0]["logits"])
    np.testing.assert_array_equal(transformed["b"][1]["logits"], params["b"][1]["logits"])
    pair = (jnp.sinh, jnp.arcsinh)
    curved = dist.affine_transform(params, scale, shift, {"a": (None, pair), **nothing})
    expected = NormalDist(BOX).affine_transform(params["a"][1], 2.0, jnp.arange(3.0), pair)
    np.testing.assert_allclose(curved["a"][1]["logvar"], expected["logvar"])


def test_affine_transform_of_a_discrete_part_is_refused():
    dist = ProbaDist(spaces.Tuple([spaces.Discrete(3), BOX]))
    with pytest.raises(NotImplementedError, match=r"Discrete\(3\) cannot be scaled"):
        dist.affine_transform(random_params(dist, 2), (1.0, 1.0), (0.0, 0.0))
    with pytest.raises(NotImplementedError, match="MultiBinary"):
        ProbaDist(spaces.MultiBinary(2)).affine_transform(ProbaDist(spaces.MultiBinary(2)).default_priors, 1.0, 0.0)


def test_hyperparams_are_nested_as_the_space():
    tau = {"gumbel_softmax_tau": 0.2}
    normal = {"clip_box": (-256.0, 256.0), "clip_reals": (-30.0, 30.0), "clip_logvar": (-20.0, 20.0)}
    assert ProbaDist(NESTED).hyperparams == {"a": (tau, normal), "b": (tau, tau, tau), "c": (tau, tau)}


def test_unsupported_spaces_are_refused():
    with pytest.raises(TypeError, match="Text"):
        ProbaDist(spaces.Tuple([spaces.Text(3)]))
    with pytest.raises(TypeError, match="must be MultiDiscrete or MultiBinary"):
        FactorizedCategoricalDist(spaces.Discrete(3))


def test_a_large_multi_binary_space_traces_to_a_small_graph():
    dist = ProbaDist(spaces.MultiBinary(64))
    jaxpr = jax.make_jaxpr(dist._log_proba)(dist.default_priors, dist.sample(dist.default_priors, KEY))
    per_factor = len(jaxpr.jaxpr.eqns) / 64
    assert per_factor < 3
