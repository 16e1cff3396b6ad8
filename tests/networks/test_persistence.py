"""Networks as pure data: checkpoints, both of flax's modes, plain transforms, fresh compilations."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from flax import nnx

from triax.networks import (
    GRU,
    LRU,
    LSTM,
    AR1VariationalBottleneck,
    Concat,
    Delay,
    Dense,
    FrameStack,
    MinGRU,
    Normalizer,
    NormalTanhSampler,
    PopulationGraph,
    PPOAdapter,
    Sequential,
    SlidingWindowAttention,
)

from .laws import BATCH, TIME, Pure, assert_trees_close, normals, quick_jit, random_resets


def loop():
    g = PopulationGraph(nnx.Rngs(3))
    g.add_output("z", 4, input_from="x", activation=nnx.tanh)
    g.connect("z", "z", delay=1)
    g.finalize()
    return g


def everything():
    """All kinds of layers, in one network; ``zoo`` is declared in an order that is not the alphabet's."""
    rngs = nnx.Rngs(0)
    memories = {
        "lstm": LSTM(4, 2, rngs, trainable_initial_state=True),
        "gru": GRU(4, 2, rngs),
        "attention": SlidingWindowAttention(4, rngs, window=2, num_heads=2),
        "lru": Sequential([LRU(4, 2, rngs), MinGRU(2, 2, rngs)]),
        "frames": Sequential([FrameStack(jnp.zeros(4), 2), Delay(jnp.zeros(8), 2)]),
        "graph": Sequential([lambda x: {"x": x}, loop(), lambda d: d["z"]]),
        "noise": Sequential([AR1VariationalBottleneck(2, rngs), nnx.Dropout(0.3, rngs=rngs)]),
    }
    trunk = Sequential({"spread": lambda x: dict.fromkeys(memories, x), "zoo": Concat(memories)})
    actor = Sequential([Dense(24, 4, rngs), NormalTanhSampler(rngs, 0.1)])
    return Sequential([Normalizer(3), Dense(3, 4, rngs, nnx.tanh), trunk, PPOAdapter(actor, Dense(24, 1, rngs))])


NET = everything()
PURE = Pure(NET)
XS, RESETS = normals(0, TIME, BATCH, 3), random_resets(0)


def make_step(graphdef, optimizer):
    """One update of the parameters and of the statistics, as a pure function."""

    traces = []

    def step(params, rest, opt_state, state):
        traces.append(1)

        def loss(params):
            net = nnx.merge(graphdef, params, rest, copy=True)
            out = net.unroll(state, XS, RESETS)
            value = jnp.mean(out.output.loglikelihoods) + jnp.mean(out.output.value_estimates**2)
            return value + jnp.mean(out.regularization_loss), (out, nnx.split(net, nnx.Param, ...)[2])

        (value, (out, rest_after)), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt_state = optimizer.update(gradient, opt_state, params)
        net = nnx.merge(graphdef, optax.apply_updates(params, updates), rest_after, copy=True)
        net.update_statistics(out.rollout_extras)
        _, params, rest = nnx.split(net, nnx.Param, ...)
        return (params, rest, opt_state, out.next_state), value

    return quick_jit(step), traces


def as_numbers(tree):
    """Typed keys as their data, everything as NumPy."""

    def one(leaf):
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_key else leaf)

    return jax.tree.map(one, tree)


def stored(params, rest, opt_state, state):
    """Leaves in order, as arrays that a checkpoint can hold."""
    parts = {"params": params, "rest": rest, "opt_state": opt_state, "state": state}
    return {name: [jnp.asarray(leaf) for leaf in jax.tree.leaves(as_numbers(part))] for name, part in parts.items()}


OPTIMIZER = optax.adam(1e-2)


@pytest.fixture(scope="module")
def trained():
    """Two steps of training, and the state between them."""
    graphdef, params, rest = nnx.split(NET, nnx.Param, ...)
    step, traces = make_step(graphdef, OPTIMIZER)
    start = params, rest, OPTIMIZER.init(params), PURE.initialize_state(BATCH)
    middle, _ = step(*start)
    end, value = step(*middle)
    return step, middle, end, value, len(traces)


def test_training_goes_on_bit_for_bit_from_plain_dicts(trained):
    step, (params, rest, opt_state, state), end, value, _ = trained
    plain = [jax.tree.map(np.asarray, nnx.to_pure_dict(params)), nnx.to_pure_dict(rest)]
    fresh_params, fresh_rest = nnx.split(everything(), nnx.Param, ...)[1:]
    nnx.replace_by_pure_dict(fresh_params, plain[0])
    nnx.replace_by_pure_dict(fresh_rest, plain[1])
    again, value_again = step(fresh_params, fresh_rest, opt_state, state)
    assert value == value_again
    jax.tree.map(np.testing.assert_array_equal, as_numbers(again), as_numbers(end))


def test_training_goes_on_bit_for_bit_from_an_orbax_checkpoint_with_the_state_of_the_optimizer(trained, tmp_path):
    step, (params, rest, opt_state, state), end, value, _ = trained
    fresh_params, fresh_rest = nnx.split(everything(), nnx.Param, ...)[1:]
    fresh_opt_state = OPTIMIZER.init(fresh_params)
    tree = stored(params, rest, opt_state, state)
    structs = jax.tree.map(jnp.zeros_like, stored(fresh_params, fresh_rest, fresh_opt_state, state))
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "net", tree)
    with ocp.StandardCheckpointer() as checkpointer:
        loaded = checkpointer.restore(tmp_path / "net", structs)
    moments = [leaf for leaf in jax.tree.leaves(loaded["opt_state"]) if leaf.ndim]
    assert moments and int(loaded["opt_state"][0]) == 1  # Adam counts its steps first
    assert any(np.any(np.asarray(leaf) != 0) for leaf in moments)

    def as_before(like, numbers):
        leaves, treedef = jax.tree.flatten(like)
        is_key = [jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves]
        numbers = [jnp.asarray(leaf) for leaf in numbers]
        pairs = zip(is_key, numbers, strict=True)
        return treedef.unflatten([jax.random.wrap_key_data(leaf) if key else leaf for key, leaf in pairs])

    parts = {"params": fresh_params, "rest": fresh_rest, "opt_state": fresh_opt_state, "state": state}
    again, value_again = step(*(as_before(like, loaded[name]) for name, like in parts.items()))
    assert value == value_again
    jax.tree.map(np.testing.assert_array_equal, as_numbers(again), as_numbers(end))


def test_training_would_go_on_otherwise_without_the_state_of_the_optimizer(trained):
    step, (params, rest, _, state), end, *_ = trained
    (others, *_), _ = step(params, rest, OPTIMIZER.init(params), state)
    pairs = zip(jax.tree.leaves(as_numbers(others)), jax.tree.leaves(as_numbers(end[0])), strict=True)
    assert any(np.any(a != b) for a, b in pairs)


def test_a_second_step_compiles_nothing(trained):  # F42
    *_, traces = trained
    assert traces == 1


def test_the_replay_reproduces_everything_from_the_same_carry():  # invariant 1
    state = PURE.initialize_state(BATCH)
    rollout = PURE.steps(state, XS, RESETS)
    replay = PURE.unroll(state, XS, RESETS, rollout.rollout_extras)
    assert_trees_close(replay.output, rollout.output)
    assert_trees_close(replay.next_state, rollout.next_state, atol=1e-4)
    ratio = np.exp(np.asarray(replay.output.loglikelihoods) - rollout.output.loglikelihoods)
    np.testing.assert_allclose(ratio, 1, atol=1e-4)


def test_a_batch_of_environments_equals_batches_of_one():  # invariant 7
    state = PURE.initialize_state(BATCH)
    whole = PURE.unroll(state, XS, RESETS)
    whole = PURE.unroll(state, XS, RESETS, whole.rollout_extras).replace(rollout_extras=whole.rollout_extras)
    for b in (0, BATCH - 1):
        one = slice(b, b + 1)
        carry = jax.tree.map(lambda leaf, one=one: leaf[one], state)
        extras = jax.tree.map(lambda leaf, one=one: leaf[:, one], whole.rollout_extras)
        out = PURE.unroll(carry, XS[:, one], RESETS[:, one], extras)
        assert_trees_close(out.output, jax.tree.map(lambda leaf, one=one: leaf[:, one], whole.output))
        assert_trees_close(out.next_state, jax.tree.map(lambda leaf, one=one: leaf[one], whole.next_state))


def test_works_without_the_graph_mode_of_flax():  # pitfall 39
    with nnx.set_graph_mode(False):
        net = everything()
        pure = Pure(net)
        got = pure.unroll(pure.initialize_state(BATCH), XS, RESETS)
    assert_trees_close(got.output, PURE.unroll(PURE.initialize_state(BATCH), XS, RESETS).output)


def test_a_carry_of_one_environment_can_be_reset_alone():
    after = PURE.unroll(PURE.initialize_state(BATCH), XS, RESETS).next_state
    reset = quick_jit(NET.reset_state)
    batch, one = reset(after), reset(jax.tree.map(lambda leaf: leaf[0], after))
    assert_trees_close(one, jax.tree.map(lambda leaf: leaf[0], batch))


def test_seeds_can_be_mapped():
    graphdef, variables = nnx.split(GRU(3, 2, nnx.Rngs(0)))
    many = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), variables)
    state = jnp.zeros((BATCH, 2))
    unroll = quick_jit(jax.vmap(lambda v: nnx.merge(graphdef, v).unroll(state, XS, RESETS).output))
    one = nnx.merge(graphdef, jax.tree.map(lambda leaf: leaf[1], many)).unroll(state, XS, RESETS).output
    np.testing.assert_allclose(unroll(many)[1], one, rtol=1e-5, atol=1e-6)


def test_no_key_is_used_twice():  # F16, pitfall 28
    pure = Pure(Sequential([AR1VariationalBottleneck(2, nnx.Rngs(0)), nnx.Dropout(0.3, rngs=nnx.Rngs(1))]))
    xs = normals(0, TIME, BATCH, 4)
    with jax.debug_key_reuse(True):
        pure.unroll(pure.initialize_state(BATCH), xs, RESETS)
        state, keys = pure.initialize_state(BATCH), []
        for x in xs[:3]:
            keys += [
                np.asarray(jax.random.key_data(jax.random.clone(k))).tobytes() for k in (state[0]["keys"], state[1])
            ]
            state = pure.step(pure.variables, state, x, RESETS[0], None)[0].next_state
    assert len(set(keys)) == len(keys)
