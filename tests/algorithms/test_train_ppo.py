from dataclasses import replace

import numpy as np
import optax
import pytest
from flax import nnx

from algorithms.small import CONFIG, ENV, PPO, TwoArm, assert_same, recurrent_net, two_arm_net, weights_of
from compilations import counted_compilations
from triax.algorithms import (
    EvalConfig,
    LoggingLevel,
    PPOConfig,
    TrainConfig,
    TrainingState,
    VideoConfig,
    load_checkpoint,
    make_checkpoint_fn,
    train_ppo,
)
from triax.algorithms.training import with_overrides
from triax.core.modules import SplitModule
from triax.loops.device_on_policy import DeviceOnPolicy

FAMILIES = (
    *("losses/actor", "losses/critic", "losses/regularization", "losses/total", "losses/clipping_fraction"),
    *("losses/advantages", "losses/critic_R^2", "losses/predicted_value", "loglikelihood", "grad_norm", "weights"),
    *("rollout_batch/reward", "rollout_batch/action", "rollout_batch/obs", "env/distance"),
    *("net/ppo_adapter_1/action/normal_tanh_sampler_2/mu", "eval/env/distance"),
    *("eval/episode_reward", "eval/lifespan"),
)

UNWATCHED = replace(CONFIG, eval=EvalConfig(enabled=False))


@pytest.fixture(scope="module")
def unbroken():
    """A whole training, its network and what it logged."""
    network, logs = recurrent_net(), []
    result = train_ppo(ENV, network, CONFIG, log_fn=lambda metrics, steps: logs.append((steps, metrics)))
    return network, result, logs


def test_iterations_are_counted_and_logged_one_by_one(unbroken):
    _, result, logs = unbroken
    assert (result.total_steps, result.total_iterations) == (100, 5)
    assert [steps for steps, _ in logs] == [0, 20, 40, 60, 80, 100]
    assert all(metrics["total_steps"] == steps for steps, metrics in logs)
    assert all(isinstance(steps, int) for steps, _ in logs)  # F13
    assert all(
        isinstance(value, float | int) and np.isfinite(value) for _, metrics in logs for value in metrics.values()
    )
    assert result.final_metrics == logs[-1][1]


def test_the_last_iteration_may_overshoot():
    result = train_ppo(ENV, recurrent_net(), UNWATCHED, total_steps=50)
    assert (result.total_steps, result.total_iterations) == (60, 3)
    assert train_ppo(ENV, recurrent_net(), UNWATCHED, total_steps=0).final_metrics == {}


def test_evaluations_take_place_where_a_multiple_is_crossed(unbroken):
    _, result, logs = unbroken
    evaluated = [steps for steps, metrics in logs if "eval/episode_reward/mean" in metrics]
    assert evaluated == [0, 40, 80] == [entry["step"] for entry in result.eval_history]
    for entry in result.eval_history:
        metrics = dict(logs)[entry["step"]]
        assert {name: value for name, value in entry.items() if name != "step"}.items() <= metrics.items()


def test_evaluations_leave_no_trace_in_training(unbroken):  # F16, F17
    network = recurrent_net()
    train_ppo(ENV, network, UNWATCHED)
    assert_same(weights_of(network), weights_of(unbroken[0]))


def test_the_users_network_is_trained_in_place_and_is_the_states(unbroken):
    network, result, _ = unbroken
    assert result.training_state.networks is network
    _, params, variables = SplitModule.of(network)
    assert_same((params, variables), tuple(result.training_state.loop.agent.networks))
    assert not np.array_equal(weights_of(network)[0], weights_of(recurrent_net())[0])


def test_a_normalizer_sees_each_sample_once(unbroken):
    assert unbroken[0][0].counter == 100


def test_another_seed_is_another_training(unbroken):
    network = recurrent_net()
    train_ppo(ENV, network, CONFIG, seed=1)
    assert any(not np.array_equal(a, b) for a, b in zip(weights_of(network), weights_of(unbroken[0]), strict=True))


def test_a_second_training_compiles_nothing(unbroken):  # F43
    network = recurrent_net(5)
    with counted_compilations() as count:
        train_ppo(ENV, network, CONFIG, total_steps=60, seed=3, log_fn=lambda metrics, steps: None)
    assert count.compilations == 0


def test_callbacks_find_the_weights_so_far_and_the_mode_of_the_network_stays():  # F54
    network, seen = recurrent_net(), []
    network.eval()

    def log(metrics, steps):
        seen.append(float(network[0].counter))

    train_ppo(ENV, network, CONFIG, total_steps=40, log_fn=log)
    assert seen[0] == 0 and seen[-1] == 40
    assert network[1].components["action"][2].deterministic
    network.train()
    train_ppo(ENV, network, CONFIG, total_steps=20)
    assert not network[1].components["action"][2].deterministic


def test_an_exception_leaves_the_network_as_it_was_trained_so_far():  # F54
    network = recurrent_net()

    def log(metrics, steps):
        if steps == 40:
            raise RuntimeError("full disk")

    with pytest.raises(RuntimeError, match="full disk"):
        train_ppo(ENV, network, CONFIG, log_fn=log)
    expected = recurrent_net()
    train_ppo(ENV, expected, CONFIG, total_steps=40)
    assert_same(weights_of(network), weights_of(expected))
    train_ppo(ENV, network, CONFIG, total_steps=20)  # its arrays are its own


def test_an_interrupt_in_the_middle_of_a_call_leaves_the_last_weights_that_there_are(monkeypatch):
    network, launch = recurrent_net(), DeviceOnPolicy.launch
    before = weights_of(network)

    def interrupted(self, state, iterations):
        launch(self, state, iterations)  # which uses up the state
        raise KeyboardInterrupt

    monkeypatch.setattr(DeviceOnPolicy, "launch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_ppo(ENV, network, CONFIG)
    assert_same(weights_of(network), before)


def test_an_optimizer_takes_the_place_of_adam():  # F28
    network, still = recurrent_net(), optax.sgd(0.0)
    state = train_ppo(ENV, network, UNWATCHED, total_steps=20, optimizer=still).training_state
    assert train_ppo(ENV, network, UNWATCHED, optimizer=still, initial_state=state).total_steps == 100
    assert_same(SplitModule.of(network)[1], SplitModule.of(recurrent_net())[1])


# ------------------------------------------------------------------ checkpoints, resuming


def kept_states(config=CONFIG, **options):
    """The states that a training hands out."""
    states = {}
    config = replace(config, checkpoint_every_steps=40)
    train_ppo(ENV, recurrent_net(), config, checkpoint_fn=lambda state, step: states.update({step: state}), **options)
    return states


def test_checkpoints_are_due_at_the_start_and_once_per_multiple():
    states = kept_states()
    assert list(states) == [0, 40, 80]
    assert all(isinstance(state, TrainingState) and state.steps_taken == step for step, state in states.items())
    config = replace(CONFIG, checkpoint_every_steps=10**9)
    steps = []
    train_ppo(ENV, recurrent_net(), config, checkpoint_fn=lambda state, step: steps.append(step))
    assert steps == [0]


def test_a_kept_state_goes_on_bit_for_bit_twice(unbroken):  # F14
    state = kept_states()[40]
    for _ in range(2):
        other = recurrent_net(9)  # the state's weights count, not those of the argument
        result = train_ppo(ENV, other, CONFIG, seed=99, initial_state=state)
        assert_same(weights_of(other), weights_of(unbroken[0]))
        assert result.training_state.networks is other
        assert result.total_iterations == 5  # F50
        assert result.eval_history == unbroken[1].eval_history  # F50
        assert_same(result.training_state.loop, unbroken[1].training_state.loop)


def test_a_checkpoint_goes_on_bit_for_bit_in_its_own_directory(tmp_path, unbroken):  # F49, F50
    config = replace(CONFIG, checkpoint_every_steps=40)
    save = make_checkpoint_fn(tmp_path, config)
    train_ppo(ENV, recurrent_net(), config, total_steps=40, checkpoint_fn=save)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step_0000000000", "step_0000000040"]
    network = recurrent_net(4)
    checkpoint = load_checkpoint(tmp_path, network)
    assert checkpoint["config"] == config
    logged = []
    result = train_ppo(
        ENV,
        network,
        checkpoint["config"],
        initial_state=checkpoint["training_state"],
        checkpoint_fn=save,
        log_fn=lambda metrics, steps: logged.append(steps),
    )
    assert logged == [60, 80, 100]
    assert sorted(path.name for path in tmp_path.iterdir())[-1] == "step_0000000080"
    assert_same(result.training_state.loop, unbroken[1].training_state.loop)
    assert_same(weights_of(network), weights_of(unbroken[0]))
    assert result.eval_history == unbroken[1].eval_history


def test_coefficients_come_from_the_config_when_resuming(unbroken):
    changed = replace(CONFIG, ppo=replace(PPO, learning_rate=2e-2, clip_range=0.3))
    result = train_ppo(ENV, recurrent_net(), changed, initial_state=unbroken[1].training_state)
    assert result.total_iterations == 5
    agent = result.training_state.loop.agent
    assert agent.numbers.clip_range == np.float32(0.3)
    assert agent.numbers.learning_rate == np.float32(2e-2)


@pytest.mark.parametrize("saved", [False, True])
def test_another_number_of_environments_is_refused_with_both_numbers(tmp_path, unbroken, saved):  # F15
    state = unbroken[1].training_state
    if saved:
        make_checkpoint_fn(tmp_path)(state, 100)
        state = load_checkpoint(tmp_path)["training_state"]
    config = replace(CONFIG, ppo=replace(PPO, n_envs=8))
    with pytest.raises(ValueError, match=r"4 environments and the config n_envs=8\. Try n_envs=4"):
        train_ppo(ENV, recurrent_net(), config, initial_state=state)


def test_a_state_of_another_network_is_refused_with_the_leaves(unbroken):
    with pytest.raises(ValueError, match=r"(?s)TrainConfig: initial_state is of another structure.*networks.*dense_1"):
        train_ppo(ENV, recurrent_net()[1], CONFIG, initial_state=unbroken[1].training_state)


# ------------------------------------------------------------------ metrics, videos, many rewards


@pytest.mark.slow
def test_metrics_come_by_family():
    logged = []
    ppo = replace(PPO, logging_level=LoggingLevel.ALL | LoggingLevel.ROLLOUT_OBS, logging_percentiles=(2.5, 50))
    config = replace(CONFIG, ppo=ppo, eval=replace(CONFIG.eval, logging_level=LoggingLevel.ALL))
    train_ppo(ENV, recurrent_net(), config, total_steps=40, log_fn=lambda metrics, steps: logged.append(metrics))
    names = set(logged[-1])
    for name in FAMILIES:
        assert {f"{name}/{part}" for part in ("mean", "std", "p2.5", "p50")} <= names, name  # F56
    assert {"rollout_batch/done_rate", "rollout_batch/truncation_rate"} <= names
    assert {"throughput/train_sps", "throughput/eval_sps"} <= names
    assert all(np.isfinite(value) for metrics in logged for value in metrics.values())


def test_videos_are_shown_where_they_are_due():
    videos = []
    video = VideoConfig(enabled=True, every_steps=40, episode_length=9, render_kwargs={"height": 4, "width": 5})
    train_ppo(ENV, recurrent_net(), replace(UNWATCHED, video=video), total_steps=60, video_fn=videos.append)
    assert [video.step for video in videos] == [0, 40]
    for video in videos:
        assert video.frames.shape == (10, 4, 5, 3) and video.frames.dtype == np.uint8
        assert 1 <= video.episode_length <= 6
        assert video.episode_reward > 0


def test_a_video_that_cannot_be_made_is_told_before_training():  # F53
    config = replace(UNWATCHED, video=VideoConfig(enabled=True))
    with pytest.raises(ValueError, match="needs a video_fn"):
        train_ppo(ENV, recurrent_net(), config)
    with pytest.raises(TypeError, match=r"needs an environment with render\(states"):
        train_ppo(TwoArm(), two_arm_net(), config, video_fn=print)


@pytest.mark.parametrize("combine", [False, True])
@pytest.mark.slow
def test_rewards_and_actions_may_be_trees(combine):
    logged = []
    level = LoggingLevel.NONE if combine else LoggingLevel.LOSSES
    ppo = PPOConfig(n_envs=4, rollout_length=6, n_minibatches=2, combine_advantages=combine, logging_level=level)
    config = TrainConfig(ppo=ppo, eval=EvalConfig(n_envs=2, max_episode_length=5, logging_percentiles=None))
    network = two_arm_net()
    before = weights_of(network)
    log_fn = lambda metrics, steps: logged.append(metrics)  # noqa: E731
    result = train_ppo(TwoArm(), network, config, total_steps=48, log_fn=log_fn)
    assert all(np.isfinite(value) for metrics in logged for value in metrics.values())
    assert all(not np.array_equal(a, b) for a, b in zip(before, weights_of(network), strict=True))
    first = result.eval_history[0]
    parts = [first[f"eval/episode_reward/{arm}/mean"] for arm in ("left", "right")]
    np.testing.assert_allclose(sum(parts), first["eval/episode_reward/mean"], rtol=1e-5)
    losses = {f"losses/{part}/{arm}/mean" for part in ("actor", "critic") for arm in ("left", "right")}
    always = {"total_steps", "approx_kl", "skipped", "episodes", "return", "length"}
    assert set(logged[-1]) == always if combine else losses <= set(logged[-1])


def test_networks_that_cannot_tell_their_samples_again_are_refused():
    with pytest.raises(TypeError, match=r"networks must be a StatefulModule.*got Linear"):
        train_ppo(ENV, nnx.Linear(2, 2, rngs=nnx.Rngs(0)), CONFIG)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    make_checkpoint_fn(tmp_path)({"a": np.ones(2)}, 0)
    with pytest.raises(ValueError, match="is no checkpoint of train_ppo"):
        train_ppo(ENV, recurrent_net(), CONFIG, initial_state=load_checkpoint(tmp_path)["training_state"])


def test_configs_of_another_kind_are_refused():
    with pytest.raises(
        TypeError, match=r"train_ppo: config must be a TrainConfig; got PPOConfig\. Try TrainConfig\(ppo="
    ):
        with_overrides("train_ppo", PPO, TrainConfig, None, None)


def test_a_result_prints_steps_evaluations_and_returns_and_no_arrays(unbroken):
    _, result, _ = unbroken
    lines = repr(result).splitlines()
    assert lines[0] == "TrainResult(100 steps, 5 iterations)"
    last = result.eval_history[-1]
    assert f"  last return in training: {result.final_metrics['return']:.4g}" in lines
    assert f"  evaluations: {len(result.eval_history)}" in lines
    assert f"  last evaluation: return {last['eval/episode_reward/mean']:.4g} at step {last['step']}" in lines
    assert "  training_state: TrainingState(100 steps, 5 iterations, 4 environments)" in lines
    assert len(lines) == 6 and "Array" not in repr(result)


def test_a_result_without_evaluations_and_ended_episodes_prints_too():
    text = repr(train_ppo(ENV, recurrent_net(), UNWATCHED, total_steps=0))
    assert text.startswith("TrainResult(0 steps, 0 iterations)\n  evaluations: 0\n  training_state: TrainingState(0 st")
