from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from algorithms.small import ENV, EVAL, assert_same, recurrent_net, weights_of
from compilations import counted_compilations
from triax.algorithms import (
    DistillationConfig,
    DistillationTrainConfig,
    EvalConfig,
    LoggingLevel,
    load_checkpoint,
    make_checkpoint_fn,
    train_distillation,
)
from triax.networks import make_mlp_actor_critic

CONFIG = DistillationTrainConfig(
    distillation=DistillationConfig(
        n_envs=4,
        rollout_length=5,
        total_steps=100,
        n_epochs=2,
        n_minibatches=2,
        learning_rate=1e-2,
        logging_level=LoggingLevel.ALL,
    ),
    eval=EVAL,
    checkpoint_every_steps=40,
)


def student(seed=1):
    return make_mlp_actor_critic(2, 2, [6], [3], nnx.Rngs(seed), head_scale=1.0)


def differ(one, other):
    return any(not np.array_equal(a, b) for a, b in zip(weights_of(one), weights_of(other), strict=True))


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """A whole distillation: its networks, its result, what it logged, its checkpoints."""
    teacher, network, logs = recurrent_net(), student(), []
    teacher.train()
    directory = tmp_path_factory.mktemp("unbroken")
    result = train_distillation(
        ENV,
        teacher,
        network,
        CONFIG,
        log_fn=lambda metrics, steps: logs.append((steps, metrics)),
        checkpoint_fn=make_checkpoint_fn(directory, CONFIG),
    )
    return teacher, network, result, logs, directory


def test_the_student_learns_in_place_and_the_teacher_stays_as_it_is(unbroken):  # F54
    teacher, network, result, _, _ = unbroken
    assert_same(weights_of(teacher), weights_of(recurrent_net()))
    assert not teacher[1].components["action"][2].deterministic
    assert result.training_state.networks is network
    assert network[0].counter == 100
    assert differ(network, student())


def test_steps_are_counted_and_metrics_are_finite_and_of_the_student(unbroken):
    _, _, result, logs, _ = unbroken
    assert (result.total_steps, result.total_iterations) == (100, 5)
    assert [steps for steps, _ in logs] == [0, 20, 40, 60, 80, 100]
    assert all(np.isfinite(value) for _, metrics in logs for value in metrics.values())
    names = set(logs[-1][1])
    for name in ("losses/distillation", "losses/regularization", "grad_norm", "weights", "rollout_batch/reward"):
        assert {f"{name}/mean", f"{name}/std"} <= names, name
    assert any(name.startswith("student/ppo_adapter_1/action") for name in names)
    assert [entry["step"] for entry in result.eval_history] == [0, 40, 80]


def test_a_second_distillation_of_another_teacher_compiles_nothing(unbroken):
    teacher, network = recurrent_net(5), student(6)
    with counted_compilations() as count:
        train_distillation(ENV, teacher, network, CONFIG, total_steps=40, log_fn=lambda metrics, steps: None)
    assert count.compilations == 0
    other = student(6)
    train_distillation(ENV, recurrent_net(), other, CONFIG, total_steps=40)
    assert differ(network, other)  # the teacher is not part of the program


def test_a_checkpoint_goes_on_bit_for_bit_with_the_teacher_that_is_given(unbroken):  # F50
    _, network, result, _, directory = unbroken
    resumed = student(8)
    checkpoint = load_checkpoint(directory / "step_0000000040", resumed)
    assert checkpoint["config"] == CONFIG
    state = checkpoint["training_state"]
    again = train_distillation(ENV, recurrent_net(), resumed, CONFIG, initial_state=state)
    assert_same(again.training_state.loop, result.training_state.loop)
    assert_same(weights_of(resumed), weights_of(network))
    assert again.eval_history == result.eval_history


def test_another_number_of_environments_is_refused(unbroken):  # F15
    config = replace(CONFIG, distillation=replace(CONFIG.distillation, n_envs=8))
    with pytest.raises(ValueError, match="4 environments and the config n_envs=8"):
        train_distillation(ENV, recurrent_net(), student(), config, initial_state=unbroken[2].training_state)


@pytest.mark.slow
def test_a_scripted_teacher_is_learned():
    def script(observation):
        return jnp.clip(-10.0 * observation, -0.9, 0.9)

    learning = DistillationConfig(n_envs=16, rollout_length=6, n_minibatches=1, learning_rate=1e-2)
    config = DistillationTrainConfig(learning, eval=EvalConfig(enabled=False))
    network, logs = student(), []
    train_distillation(
        ENV, script, network, config, total_steps=3000, log_fn=lambda metrics, steps: logs.append(metrics)
    )
    assert logs[-1]["losses/distillation/mean"] < logs[0]["losses/distillation/mean"] - 1.0
    network.eval()
    x = jnp.array([[0.05, 0.0], [-0.05, 0.03]])
    action = network(network.initialize_state(2), x).output.actions
    assert np.max(np.abs(action - script(x))) < 0.2
