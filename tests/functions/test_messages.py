"""What users get wrong, and what they are told."""

import gymnasium
import jax
import numpy as np
import pytest
from flax import nnx
from gymnasium import spaces

import triax
from triax.networks import (
    LSTM,
    Dense,
    Normalizer,
    Sequential,
    extract_activations,
    make_mlp_actor_critic,
    with_recording,
)
from triax.reward_tracing import get_transition_batch
from triax.td_learning import SimpleTD

from .networks import DISCRETE, STATE, env_of, s


class Net(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(3, 4, rngs=rngs)

    def __call__(self, S, is_training):
        return self.layer(S)


def memory_policy():
    rngs = nnx.Rngs(0)
    net = Sequential([LSTM(3, 2, rngs), Dense(2, 4, rngs), lambda x: {"logits": x}])
    return triax.Policy(net, DISCRETE, random_seed=0)


# ------------------------------------------------------------------ calls


def test_return_logp_by_position_is_recognised_with_memory_too():
    with pytest.raises(TypeError, match=r"Policy: func has memory.*got True. return_logp is keyword-only"):
        memory_policy()(s, True)
    with pytest.raises(TypeError, match=r"Policy: func has no memory.*got True. return_logp is keyword-only"):
        triax.Policy(lambda S, is_training: {"logits": S @ np.ones((3, 4), np.float32)}, DISCRETE)(s, True)


def test_the_carry_of_another_network_is_shown_beside_the_expected_one():
    pi = memory_policy()
    told = r"needs its carry, \[LSTMCarry\(h=array, c=array\), \(\), \(\)\]; got \(array, array\)\."
    with pytest.raises(TypeError, match=told):
        pi(s, (np.zeros(1), np.zeros(1)))


def test_a_carry_that_is_missing_is_told_in_words():
    with pytest.raises(TypeError, match=r"needs its carry, \[LSTMCarry\(h=array, c=array\), \(\), \(\)\]; got none"):
        memory_policy()(s)


@pytest.mark.parametrize("f", [memory_policy(), triax.Q(Net, DISCRETE), triax.EpsilonGreedy(triax.Q(Net, DISCRETE))])
def test_a_batch_is_recognised_and_told_where_to_go(f):
    with pytest.raises(ValueError, match=r"must be an element of Box.*batch of 5; a call takes one.*f\.function\("):
        f(np.stack([s] * 5))
    with pytest.raises(ValueError, match=r"must be an element of Box.*expected \(3,\)\.$"):
        f(np.zeros((2, 2), np.float32))


def test_what_is_said_of_batches_works():
    f, S = triax.Q(Net, DISCRETE), np.stack([s, -s, 0 * s])
    values, _ = f.function(f.params, f.function_state, f.rng, f.observation_preprocessor(f.rng, S), False)
    np.testing.assert_allclose(values, np.stack([f(x) for x in S]), rtol=1e-5)


def test_a_network_comes_back_with_its_present_weights_for_analysis():
    v = triax.V(Sequential([Normalizer(3), Dense(3, 1, nnx.Rngs(0)), lambda x: x[..., 0]]), DISCRETE)
    SimpleTD(v).update(get_transition_batch(DISCRETE, batch_size=4))
    net = v.to_module()
    out = net(net.initialize_state(1), s[None])
    np.testing.assert_allclose(out.output, v(s)[None], rtol=1e-5)
    recorder = with_recording(net)
    recorded = extract_activations(recorder(recorder.initialize_state(1), s[None]).metrics)
    assert any(np.allclose(leaf, out.output) for leaf in jax.tree.leaves(recorded))
    net.update_statistics(jax.tree.map(lambda x: x[None], out.rollout_extras))  # of a copy
    np.testing.assert_allclose(out.output, v(s)[None], rtol=1e-5)


@pytest.mark.parametrize(
    "f", [triax.EpsilonGreedy(triax.Q(Net, DISCRETE)), triax.V(lambda S, is_training: S.sum(-1), DISCRETE)]
)
def test_a_function_without_a_module_has_none_to_give(f):
    with pytest.raises(TypeError, match=r"to_module: there is no module: func must be a flax.nnx.Module"):
        f.to_module()


# ------------------------------------------------------------------ environments


def test_environments_in_the_wrong_place_are_told_apart():
    with pytest.raises(TypeError, match=r"Q: env must be an environment; got Net. env comes second: Q\(func, env"):
        triax.Q(gymnasium.make("CartPole-v1"), Net)
    with pytest.raises(TypeError, match=r"Q: env must be .*got its name. Try gymnasium.make\('CartPole-v1'\)"):
        triax.Q(Net, "CartPole-v1")


@pytest.mark.parametrize("cls", [triax.Q, triax.V, triax.Policy, triax.RandomPolicy])
def test_a_vector_environment_is_refused_with_the_space_that_is_meant(cls):
    envs = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    with pytest.raises(TypeError, match=r"env must be a single environment; got a vector environment.*each has the"):
        cls(*([envs] if cls is triax.RandomPolicy else [Net, envs]))
    envs.close()


# ------------------------------------------------------------------ func


def test_the_parameters_of_a_module_are_told_from_those_of_its_factory():
    with pytest.raises(TypeError, match=r"got \(inputs\)\. These are those of Linear.__call__: .*self, S, is_training"):
        triax.V(lambda rngs: nnx.Linear(3, 1, rngs=rngs), DISCRETE)


def test_open_parameters_are_shown():
    with pytest.raises(
        TypeError, match=r"got \(\*args, \*\*kwargs\)\. These are those of Sequential.__call__.*triax.netw"
    ):
        triax.Q(nnx.Sequential(nnx.Linear(3, 4, rngs=nnx.Rngs(0))), DISCRETE)


def test_the_number_of_bins_is_shown_where_another_comes():
    with pytest.raises(TypeError, match=r"\(8, 7\) .*expected \(8, 51\) .*num_bins is 51"):
        triax.StochasticV(lambda rngs: Sequential([Dense(3, 7, rngs), lambda x: {"logits": x}]), DISCRETE, (0, 1))


def test_bare_arrays_are_shown_the_dict_that_is_meant():
    told = r"Policy: func must return .* structure \{'logits': array\}; got array\. Try return \{'logits': x\}"
    with pytest.raises(TypeError, match=told):
        triax.Policy(Net, DISCRETE)
    reals = env_of(spaces.Box(-np.inf, np.inf, (4,), np.float32))
    with pytest.raises(TypeError, match=r"Try return \{'logvar': x, 'mu': x\}"):
        triax.Policy(Net, reals)


def test_a_network_for_ppo_is_told_from_one_for_a_policy():
    net = make_mlp_actor_critic(3, 4, [4], [4], nnx.Rngs(0))
    with pytest.raises(TypeError, match=r"are for triax.algorithms.train_ppo .*; here return \{'logits': x\} alone"):
        triax.Policy(net, DISCRETE)


@pytest.mark.parametrize("kind", ["module", "haiku", "stateful"])
def test_an_error_inside_of_func_says_with_which_inputs_it_came(kind):
    def broken(S):
        return S["x"]

    class Module(nnx.Module):
        def __call__(self, S, is_training):
            return broken(S)

    func = {"module": Module(), "haiku": lambda S, is_training: broken(S), "stateful": Sequential([broken])}[kind]
    with pytest.raises(Exception) as caught:
        triax.V(func, DISCRETE)
    (note,) = [note for note in caught.value.__notes__ if note.startswith("V: func failed on V.example_data(...)")]
    assert f"S = ShapeDtypeStruct(shape=(1, {STATE.shape[0]}), dtype=float32)" in note
    assert "ShapeDtypeStruct" not in str(caught.value)  # the error itself stays what it was
