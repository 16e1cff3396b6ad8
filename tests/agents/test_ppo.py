"""PPO: one update by hand, bootstraps by a plain loop, memory replayed, steps that weigh nothing, numbers swept."""

import functools

import gymnasium
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import optax
import pytest
from flax import nnx

from jax_envs import CartPole
from oracles import gae_oracle, steps_of
from triax.agents.distillation import Distillation
from triax.agents.interface import Rollout
from triax.agents.logging_level import LoggingLevel, summarize
from triax.agents.ppo import PPOAgent
from triax.agents.ppo_config import PPOAgentConfig
from triax.networks import (
    LSTM,
    Dense,
    DistributionSampler,
    Map,
    Normalizer,
    NormalTanhSampler,
    PPOAdapter,
    Sequential,
    VariationalBottleneck,
)

TIME, BATCH = 7, 4
ACTIONS = gymnasium.spaces.Discrete(3)


@pytest.fixture
def unchecked(monkeypatch):
    """Without beartype, as users run: shows the library's own errors for wrong types."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def memoryless(rngs):
    actor = Sequential([Dense(2, 3, rngs), DistributionSampler(ACTIONS, rngs)])
    return PPOAdapter(actor, Dense(2, 1, rngs))


def recurrent(rngs):
    """With noise that is a memory, and statistics."""
    memory = [Normalizer(2), Dense(2, 6, rngs), VariationalBottleneck(3, rngs, kl_weight=0.1), LSTM(3, 4, rngs)]
    actor = Sequential([Dense(4, 2, rngs), NormalTanhSampler(rngs, 0.01)])
    return Sequential([*memory, PPOAdapter(actor, Dense(4, 1, rngs))])


@functools.lru_cache
def agent_of(make, config=PPOAgentConfig.a2c(learning_rate=1e-2)):
    return PPOAgent(make, config)


@functools.partial(jax.jit, static_argnums=0)
def rollout(agent, state, key):
    """Noise for observations and rewards, episodes that end by chance, and one that began before."""
    carry = agent.initial_carry(state, BATCH, key)
    _, carry, _ = agent.act(state, jnp.ones((BATCH, 2)), carry, key)
    starts = jnp.array([True, False, False, True])

    def step(loop, key):
        carry, fresh, observation = loop
        carry = agent.reset_carry(state, carry, fresh, key)
        action, carry, extras = agent.act(state, observation, carry, key)
        noise = jax.random.normal(key, (BATCH, 6))
        terminated, truncated = noise[:, 4] > 0.9, noise[:, 4] < -0.7
        final, done = noise[:, 2:4], terminated | truncated
        following = jnp.where(done[:, None], noise[:, :2], final)
        return (carry, done, following), (observation, action, noise[:, 5], terminated, truncated, final, extras)

    first = jax.random.normal(key, (BATCH, 2))
    (after, *_), told = jax.lax.scan(step, (carry, starts, first), jax.random.split(key, TIME))
    return Rollout(*told, carry=carry, last_carry=after, starts=starts)


learn = jax.jit(lambda agent, *args: agent.learn(*args), static_argnums=0)


def begun(agent, seed=0):
    state = agent.init(jax.random.PRNGKey(seed))
    return state, rollout(agent, state, jax.random.PRNGKey(seed + 1))


def weights(state):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(state.networks.params)])


def numpy_advantages(agent, state, told, config):
    """``(advantages, returns)``: each step's own observation valued by a loop that calls the network."""
    values, after = told.extras.output.value_estimates, np.zeros((TIME, BATCH))
    network, key = agent._network, jax.random.PRNGKey(0)
    carry, fresh = told.carry, told.starts
    step = jax.jit(lambda *args: network.step(*args, key))
    for t in range(TIME):
        carry = agent.reset_carry(state, carry, fresh, key)
        carry = step(state.networks, carry, told.observation[t]).next_state
        after[t] = step(state.networks, carry, told.next_observation[t]).output.value_estimates
        fresh = told.terminated[t] | told.truncated[t]
    columns = [
        gae_oracle(
            steps_of(*(x[:, b] for x in (told.reward, values, after, told.terminated, told.truncated))),
            config.discounting_factor,
            config.gae_lambda,
        )
        for b in range(BATCH)
    ]
    advantages = np.stack(columns, axis=1)
    return advantages, advantages + values


@pytest.mark.parametrize("make", [memoryless, recurrent])
def test_every_step_bootstraps_from_what_it_led_to_itself(make):
    agent = agent_of(make)
    for seed in range(3):
        state, told = begun(agent, seed)
        targets = jax.jit(agent._targets)(state, told, told.extras.output.value_estimates, jax.random.PRNGKey(3))
        assert (told.truncated[:-1] & ~told.terminated[:-1]).any()
        advantages, returns = numpy_advantages(agent, state, told, agent.config)
        np.testing.assert_allclose(targets.advantages, advantages, atol=2e-5)
        np.testing.assert_allclose(targets.returns, returns, atol=2e-5)


def by_hand(params, told, advantages, returns, old_logs, config):
    """The loss of the textbook, from the weights of two linear layers."""
    actor, critic = params["action"]["0"], params["value"]
    logits = told.observation @ actor["kernel"] + actor["bias"]
    log_p = jnp.take_along_axis(jax.nn.log_softmax(logits), told.action[..., None], axis=-1)[..., 0]
    value = (told.observation @ critic["kernel"] + critic["bias"])[..., 0]
    ratio = jnp.exp(log_p - old_logs)
    clipped = jnp.clip(ratio, 1 - config.clip_range, 1 + config.clip_range)
    surrogate = jnp.minimum(ratio * advantages, clipped * advantages)
    return -jnp.mean(surrogate) + config.critic_loss_weight * 0.5 * jnp.mean((value - returns) ** 2)


gradient = jax.jit(jax.grad(by_hand), static_argnums=5)


def linear_params(state):
    """``{"action": {"0": {"kernel", "bias"}}, "value": {"kernel", "bias"}}``, wherever containers keep them."""
    found = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(state.networks.params):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        found["action" if "action" in name else "value", "kernel" if "kernel" in name else "bias"] = leaf
    assert len(found) == 4
    return {
        "action": {"0": {"kernel": found["action", "kernel"], "bias": found["action", "bias"]}},
        "value": {"kernel": found["value", "kernel"], "bias": found["value", "bias"]},
    }


def test_epochs_of_full_batches_equal_gradient_steps_by_hand():
    config = PPOAgentConfig(
        learning_rate=0.05,
        n_epochs=4,
        n_minibatches=1,
        clip_range=0.02,
        critic_loss_weight=0.7,
        gradient_clipping=0.3,
    )
    agent = agent_of(memoryless, config)
    state, told = begun(agent)
    advantages, returns = numpy_advantages(agent, state, told, config)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    old_logs = told.extras.output.loglikelihoods
    optimizer = optax.chain(optax.clip_by_global_norm(0.3), optax.adam(0.05))
    params = linear_params(state)
    optimizer_state = optimizer.init(params)
    for _ in range(4):
        grads = gradient(params, told, advantages, returns, old_logs, config)
        updates, optimizer_state = optimizer.update(grads, optimizer_state)
        params = optax.apply_updates(params, updates)
    after, _ = learn(agent, state, told, jax.random.PRNGKey(2))
    for expected, found in zip(jax.tree.leaves(params), jax.tree.leaves(linear_params(after)), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_minibatches_are_whole_trajectories_each_once_an_epoch():
    config = PPOAgentConfig(n_epochs=3, n_minibatches=2)
    agent = agent_of(memoryless, config)
    state, told = begun(agent)
    seen = []

    def spy(self, state, batch, key):
        jax.debug.callback(lambda obs: seen.append(np.asarray(obs)), batch.rollout.observation, ordered=True)
        return PPOAgent._update(self, state, batch, key)

    watched = type("Watched", (PPOAgent,), {"_update": spy})(memoryless, config)
    watched.learn(state, told, jax.random.PRNGKey(0))
    jax.effects_barrier()
    assert len(seen) == 6
    orders = []
    for first, second in zip(seen[::2], seen[1::2], strict=True):
        both = np.concatenate([first, second], axis=1)
        orders.append([int(np.flatnonzero((told.observation == both[:, [b]]).all((0, 2)))[0]) for b in range(BATCH)])
        assert sorted(orders[-1]) == list(range(BATCH))
    assert len({tuple(order) for order in orders}) > 1


@pytest.mark.parametrize("make", [memoryless, recurrent])
def test_the_replay_gives_what_the_rollout_gave(make):
    agent = agent_of(make)
    state, told = begun(agent)
    again = jax.jit(agent._network.replay)(state.networks, told, told.extras.network, jax.random.PRNGKey(9))
    old = told.extras.output
    np.testing.assert_allclose(again.output.loglikelihoods, old.loglikelihoods, atol=1e-5)
    np.testing.assert_allclose(again.output.value_estimates, old.value_estimates, atol=1e-5)
    _, metrics = learn(agent, state, told, jax.random.PRNGKey(2))
    assert metrics["approx_kl"] < 1e-8
    assert metrics["skipped"] == 0


@pytest.mark.slow
def test_a_first_memory_that_is_learned_gets_gradients_where_a_rollout_begins_an_episode():
    """F24."""

    def make(rngs):
        memory = LSTM(2, 3, rngs, trainable_initial_state=True)
        actor = Sequential([Dense(3, 3, rngs), DistributionSampler(ACTIONS, rngs)])
        return Sequential([memory, PPOAdapter(actor, Dense(3, 1, rngs))])

    agent = PPOAgent(make, PPOAgentConfig.a2c())
    state, told = begun(agent)
    never = jnp.zeros((TIME, BATCH), bool)

    def moved(starts):
        whole = told._replace(terminated=never, truncated=never, starts=starts)
        after, _ = learn(agent, state, whole, jax.random.PRNGKey(0))
        old, new = (
            {jax.tree_util.keystr(p): x for p, x in jax.tree_util.tree_leaves_with_path(s.networks.params)}
            for s in (state, after)
        )
        return [bool(np.any(new[name] != old[name])) for name in old if "initial" in name]

    assert moved(jnp.ones(BATCH, bool)) == [True, True]
    assert moved(jnp.zeros(BATCH, bool)) == [False, False]


def test_steps_of_weight_zero_teach_nothing():
    config = PPOAgentConfig(n_epochs=2, n_minibatches=2, normalize_advantages=True, learning_rate=1e-2)
    agent = agent_of(memoryless, config)
    state, told = begun(agent)
    # As a vector environment that resets in the next step tells it: after each end a step that nobody takes.
    done = np.asarray(told.terminated | told.truncated)
    nobody = np.concatenate([np.zeros((1, BATCH), bool), done[:-1]])
    nobody[1:] &= ~nobody[:-1]
    terminated = told.terminated & ~nobody
    truncated = (told.truncated & ~nobody) | nobody
    told = told._replace(
        terminated=terminated, truncated=truncated, weight=1.0 - nobody, reward=jnp.where(nobody, 0.0, told.reward)
    )
    assert 0 < nobody.sum() < nobody.size

    def with_garbage(value):
        bad = jnp.asarray(nobody)
        output = told.extras.output
        logs = jnp.where(bad, value, output.loglikelihoods)
        seen = jnp.where(bad[..., None], value, told.next_observation)
        extras = told.extras._replace(output=output.replace(loglikelihoods=logs))
        return told._replace(extras=extras, next_observation=seen)

    found = [weights(learn(agent, state, with_garbage(v), jax.random.PRNGKey(1))[0]) for v in (0.0, -3.0)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-7)
    assert np.abs(found[0] - weights(state)).max() > 1e-3


@pytest.mark.slow
def test_statistics_are_learned_once_from_each_sample():
    config = PPOAgentConfig(n_epochs=3, n_minibatches=2)
    agent = agent_of(recurrent, config)
    state, told = begun(agent)
    after, _ = learn(agent, state, told, jax.random.PRNGKey(1))
    network = recurrent(nnx.Rngs(5))
    agent.write_into(network, after)
    normalizer = network[0]
    assert normalizer.counter == TIME * BATCH
    np.testing.assert_allclose(normalizer.mean, np.mean(told.observation, axis=(0, 1)), atol=1e-6)


def test_a_rollout_that_is_not_finite_changes_no_weight():
    agent = agent_of(memoryless, PPOAgentConfig(n_epochs=2, n_minibatches=2))
    state, told = begun(agent)
    after, metrics = learn(agent, state, told._replace(reward=told.reward.at[2, 1].set(jnp.nan)), jax.random.PRNGKey(0))
    assert metrics["skipped"] > 0
    assert np.isfinite(weights(after)).all()
    whole = told._replace(reward=jnp.full_like(told.reward, jnp.nan))
    after, metrics = learn(agent, state, whole, jax.random.PRNGKey(0))
    assert metrics["skipped"] == 1
    np.testing.assert_array_equal(weights(after), weights(state))


def test_stops_once_the_policy_has_moved_as_far_as_it_may():
    far = PPOAgentConfig(n_epochs=6, n_minibatches=1, learning_rate=0.3, target_kl=1e-4)
    agent = agent_of(memoryless, far)
    state, told = begun(agent)
    after, metrics = learn(agent, state, told, jax.random.PRNGKey(0))
    # The first update is made at KL 0, the second finds the policy moved, and is the last one.
    np.testing.assert_allclose(metrics["stopped"], 4 / 6)
    twice = agent_of(memoryless, PPOAgentConfig(n_epochs=2, n_minibatches=1, learning_rate=0.3))
    np.testing.assert_allclose(
        weights(after), weights(learn(twice, state._replace(numbers=begun(twice)[0].numbers), told, KEY)[0]), atol=1e-6
    )
    assert np.isfinite(metrics["losses/actor/mean"])


KEY = jax.random.PRNGKey(0)


def test_clipped_values_are_not_pushed_beyond_their_range():
    config = PPOAgentConfig(n_epochs=1, n_minibatches=1, value_clip_range=0.1, learning_rate=1e-3)
    agent = agent_of(memoryless, config)
    state, told = begun(agent)
    output = told.extras.output
    # Values of then below those of today by more than the range, targets above: today's lie between, ignored.
    moved = told._replace(
        extras=told.extras._replace(output=output.replace(value_estimates=output.value_estimates - 1))
    )
    new, before, target = output.value_estimates, output.value_estimates - 1, output.value_estimates + 0.5
    losses = [
        max((n - t) ** 2, (b + np.clip(n - b, -0.1, 0.1) - t) ** 2)
        for n, b, t in zip(*(np.ravel(x) for x in (new, before, target)), strict=True)
    ]
    from triax.agents.ppo_loss import Targets, ppo_losses

    targets = Targets(jnp.zeros((TIME, BATCH)), target)
    found = ppo_losses(output, jnp.zeros((TIME, BATCH)), moved.extras.output, targets, state.numbers, None)
    np.testing.assert_allclose(found.critic, 0.5 * np.mean(losses), rtol=1e-5)


def test_recomputed_advantages_are_those_of_the_first_epoch_and_others_later():
    once, anew = (
        agent_of(memoryless, PPOAgentConfig(n_epochs=n, n_minibatches=1, learning_rate=0.1, recompute_advantages=again))
        for n, again in ((1, False), (1, True))
    )
    state, told = begun(once)
    same = [weights(learn(agent, state, told, KEY)[0]) for agent in (once, anew)]
    np.testing.assert_allclose(*same, atol=1e-6)
    later = [
        PPOAgent(memoryless, PPOAgentConfig(n_epochs=3, n_minibatches=1, learning_rate=0.1, recompute_advantages=again))
        for again in (False, True)
    ]
    different = [weights(learn(agent, state, told, KEY)[0]) for agent in later]
    assert np.abs(different[0] - different[1]).max() > 1e-4


@pytest.mark.slow
def test_numbers_of_a_vmap_give_what_each_config_gives():
    agent = agent_of(memoryless)
    state, told = begun(agent)
    rates, clips, lambdas = jnp.array([1e-2, 3e-2]), jnp.array([0.1, 0.3]), jnp.array([0.5, 1.0])
    swept = jax.vmap(lambda r, c, g: agent.with_numbers(state, learning_rate=r, clip_range=c, gae_lambda=g))(
        rates, clips, lambdas
    )
    found = jax.jit(jax.vmap(lambda s: agent.learn(s, told, KEY)[0]))(swept)
    for i in range(2):
        config = PPOAgentConfig.a2c(
            learning_rate=float(rates[i]), clip_range=float(clips[i]), gae_lambda=float(lambdas[i])
        )
        alone = PPOAgent(memoryless, config)
        fresh = alone.init(jax.random.PRNGKey(0))
        expected = alone.learn(fresh, told, KEY)[0]
        np.testing.assert_allclose(weights(jax.tree.map(lambda x, i=i: x[i], found)), weights(expected), atol=1e-6)
    with pytest.raises(ValueError, match="target_kl"):
        agent.with_numbers(state, target_kl=0.1)


def test_a_number_may_be_given_twice_and_outlives_the_state_that_a_loop_donates():
    agent, number = agent_of(memoryless), jnp.float32(0.1)
    state = agent.with_numbers(agent.init(KEY), learning_rate=number, clip_range=number)
    jax.jit(lambda numbers: jax.tree.map(jnp.negative, numbers), donate_argnums=0)(state.numbers)
    assert float(number) == pytest.approx(0.1)


def test_agents_of_one_structure_and_config_are_equal():
    given = [PPOAgent(recurrent(nnx.Rngs(seed))) for seed in (0, 1)]
    assert given[0] == given[1]
    assert hash(given[0]) == hash(given[1])
    assert given[0] != PPOAgent(memoryless(nnx.Rngs(0)))
    assert given[0] != PPOAgent(recurrent(nnx.Rngs(0)), PPOAgentConfig(n_epochs=1))
    network = recurrent(nnx.Rngs(0))
    network.eval()
    assert given[0] == PPOAgent(network)


def test_a_given_network_is_copied_and_another_one_is_drawn_for_each_key():
    network = memoryless(nnx.Rngs(3))
    agent = PPOAgent(network)
    state = agent.init(jax.random.PRNGKey(0))
    np.testing.assert_array_equal(weights(state), weights(agent.init(jax.random.PRNGKey(1))))
    drawn = agent_of(memoryless)
    assert np.any(weights(drawn.init(jax.random.PRNGKey(0))) != weights(drawn.init(jax.random.PRNGKey(1))))


class TwoArms:
    """Two actions and two rewards."""

    @staticmethod
    def make(rngs):
        arm = lambda: Sequential([Dense(2, 2, rngs), NormalTanhSampler(rngs, 0.0)])  # noqa: E731
        split = lambda: Map(left=arm(), right=arm())  # noqa: E731
        return PPOAdapter(split(), Map(left=Dense(2, 1, rngs), right=Dense(2, 1, rngs)))


def two_armed(agent, state, combined_reward=False):
    keys = jax.random.split(jax.random.PRNGKey(5), TIME)
    seen = jnp.stack([jax.random.normal(k, (BATCH, 2)) for k in keys])
    obs = {"left": seen, "right": seen + 1}
    acts = [
        agent.act(state, jax.tree.map(lambda x, t=t: x[t], obs), carry_of(agent, state), keys[t]) for t in range(TIME)
    ]
    action, extras = (jax.tree.map(lambda *xs: jnp.stack(xs), *[act[i] for act in acts]) for i in (0, 2))
    reward = {"left": seen[..., 0], "right": 2 * seen[..., 1]}
    never, carry = jnp.zeros((TIME, BATCH), bool), carry_of(agent, state)
    told = Rollout(obs, action, reward, never, never, obs, extras, carry, carry, jnp.zeros(BATCH, bool))
    return told._replace(reward=seen[..., 0]) if combined_reward else told


def carry_of(agent, state):
    return agent.initial_carry(state, BATCH, KEY)


def test_each_action_learns_from_its_own_reward_or_all_from_the_sum():
    network = TwoArms.make(nnx.Rngs(0))
    apart, together = (
        PPOAgent(
            network, PPOAgentConfig.a2c(combine_advantages=combine, critic_loss_weight=0.0, gradient_clipping=None)
        )
        for combine in (False, True)
    )
    state = apart.init(KEY)
    told = two_armed(apart, state)
    silent = told._replace(reward={**told.reward, "left": jnp.zeros((TIME, BATCH))})
    none = told.extras.output.replace(value_estimates=jax.tree.map(jnp.zeros_like, told.reward))
    silent = silent._replace(extras=told.extras._replace(output=none))

    def moved(agent):
        after = agent.learn(state, silent._replace(terminated=jnp.ones((TIME, BATCH), bool)), KEY)[0]
        pairs = zip(
            jax.tree_util.tree_leaves_with_path(state.networks.params),
            jax.tree.leaves(after.networks.params),
            strict=True,
        )
        return {
            arm
            for (path, old), new in pairs
            for arm in ("left", "right")
            if arm in jax.tree_util.keystr(path) and np.any(old != new)
        }

    assert moved(apart) == {"right"}
    assert moved(together) == {"left", "right"}


def test_trees_that_do_not_go_together_are_refused_with_advice():
    agent = PPOAgent(TwoArms.make(nnx.Rngs(0)), PPOAgentConfig.a2c())
    state = agent.init(KEY)
    with pytest.raises(ValueError, match="value estimates must be a tree like the rewards"):
        agent.learn(state, two_armed(agent, state, combined_reward=True), KEY)

    def one_value(rngs):
        arm = lambda: Sequential([Dense(2, 2, rngs), NormalTanhSampler(rngs, 0.0)])  # noqa: E731
        from triax.networks import Parallel

        return PPOAdapter(Parallel(left=arm(), right=arm()), Dense(2, 1, rngs))

    agent = agent_of(one_value)
    state, told = begun(agent)
    with pytest.raises(ValueError, match="Try combine_advantages=True"):
        agent.learn(state, told, KEY)


def test_environments_that_cannot_be_divided_are_refused_with_both_numbers():
    agent = agent_of(memoryless, PPOAgentConfig(n_minibatches=3))
    state, told = begun(agent)
    with pytest.raises(ValueError, match=r"multiple of n_minibatches; got 4 and 3"):
        agent.learn(state, told, KEY)


def test_a_network_without_values_is_refused_by_name():
    agent = PPOAgent(Dense(2, 3, nnx.Rngs(0)))
    state = agent.init(KEY)
    with pytest.raises(TypeError, match="PPONetworkOutput"):
        agent.act(state, jnp.zeros((BATCH, 2)), (), KEY)


@pytest.mark.parametrize("given", [CartPole(), CartPole, gymnasium.make("CartPole-v1")])
def test_an_environment_in_place_of_the_network_is_told_and_where_it_belongs(given, unchecked):
    told = r"PPOAgent: network must be .*got an environment. Try PPOAgent\(make_mlp_actor_critic\(\.\.\.\), config\)"
    with pytest.raises(TypeError, match=told):
        PPOAgent(given)
    with pytest.raises(TypeError, match="Distillation: teacher must be a network; got an environment"):
        Distillation(given, memoryless(nnx.Rngs(0)))
    with pytest.raises(TypeError, match="PPOAgent: config must be a PPOAgentConfig; got"):
        PPOAgent(memoryless, given)


def test_what_makes_no_network_is_refused_with_its_type(unchecked):
    with pytest.raises(TypeError, match=r"PPOAgent: network must be .*got str, 'CartPole-v1'"):
        PPOAgent("CartPole-v1")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gae_lambda", 1.5),
        ("clip_range", -0.1),
        ("learning_rate", 0.0),
        ("n_epochs", 0),
        ("target_kl", 0.0),
        ("value_clip_range", float("nan")),
        ("weight_decay", -1.0),
        ("logging_percentiles", (101.0,)),
    ],
)
def test_a_config_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"PPOAgentConfig: .*{field}"):
        PPOAgentConfig(**{field: value})


@pytest.mark.slow
def test_measures_the_families_that_are_asked_for():
    config = PPOAgentConfig(n_minibatches=2, logging_level=LoggingLevel.ALL, logging_percentiles=(2.5, 50))
    agent = agent_of(memoryless, config)
    state, told = begun(agent)
    _, metrics = learn(agent, state, told, KEY)
    families = {
        "losses/total", "losses/actor", "losses/critic", "losses/regularization", "losses/clipping_fraction",
        "losses/advantages", "losses/critic_R^2", "losses/predicted_value", "loglikelihood", "grad_norm",
    }  # fmt: skip
    named = {f"{name}/{number}" for name in families for number in ("mean", "std", "p2.5", "p50")}
    assert named | {"approx_kl", "skipped"} == set(metrics)
    logs = told.extras.output.loglikelihoods
    np.testing.assert_allclose(metrics["loglikelihood/p2.5"], np.percentile(logs, 2.5), rtol=1e-5)
    quiet = agent_of(memoryless, PPOAgentConfig(n_minibatches=2, logging_level=LoggingLevel.NONE))
    assert set(learn(quiet, begun(quiet)[0], told, KEY)[1]) == {"approx_kl", "skipped"}


def test_summaries_name_leaves_by_their_path():
    tree = {"a": [jnp.array([1.0, 3.0]), None], "b": jnp.array([True, False]), "c": {"d": jnp.int32(4)}}
    found = {name: float(value) for name, value in summarize("x", tree, (100,)).items()}
    assert found == {
        "x/a/0/mean": 2.0, "x/a/0/std": 1.0, "x/a/0/p100": 3.0, "x/b": 0.5,
        "x/c/d/mean": 4.0, "x/c/d/std": 0.0, "x/c/d/p100": 4.0,
    }  # fmt: skip
