import dataclasses

import pytest

from triax.algorithms import (
    DistillationConfig,
    DistillationTrainConfig,
    EvalConfig,
    LoggingLevel,
    PPOConfig,
    TrainConfig,
    VideoConfig,
)
from triax.runs import decode_config, encode_config


@pytest.mark.parametrize("cls", [PPOConfig, DistillationConfig])
def test_environments_must_be_a_multiple_of_minibatches(cls):  # F31
    with pytest.raises(ValueError, match=r"n_envs=10 and n_minibatches=4\. Try n_envs=8"):
        cls(n_envs=10)
    with pytest.raises(ValueError, match=r"Try n_envs=4"):
        cls(n_envs=3)
    assert cls(n_envs=10, n_minibatches=5).steps_per_iteration == 200


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PPOConfig(rollout_length=0), "PPOConfig: rollout_length must be at least 1; got 0"),
        (lambda: PPOConfig(gae_lambda=1.5), r"PPOConfig: gae_lambda must be in \[0, 1\]"),
        (lambda: DistillationConfig(total_steps=-1), "total_steps must be at least 0"),
        (lambda: DistillationConfig(learning_rate=0.0), "DistillationConfig: learning_rate must be positive"),
        (lambda: DistillationConfig(loss="nll"), "loss must be 'kl', 'sample' or 'mode'; got 'nll'"),
        (lambda: EvalConfig(n_envs=0), "EvalConfig: n_envs must be at least 1"),
        (lambda: EvalConfig(logging_percentiles=(101,)), r"logging_percentiles must be in \[0, 100\]"),
        (lambda: VideoConfig(episode_length=0), "VideoConfig: episode_length must be at least 1"),
        (lambda: TrainConfig(seed=-1), r"TrainConfig: seed must be in \[0, 2\^32\)"),
        (lambda: DistillationTrainConfig(checkpoint_every_steps=-5), "checkpoint_every_steps must be at least 0"),
    ],
)
def test_numbers_are_checked_when_a_config_is_made(make, message):  # F31
    with pytest.raises(ValueError, match=message):
        make()


def test_configs_are_frozen_and_hashable():  # F31
    config = TrainConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 3  # pyright: ignore[reportAttributeAccessIssue]
    assert hash(config) == hash(TrainConfig()) and config == TrainConfig()
    assert config.video.render_kwargs == {"height": 480, "width": 640}


def test_trainings_of_other_lengths_share_what_the_agent_knows():
    assert PPOConfig(total_steps=5, n_envs=8).agent == PPOConfig().agent
    assert PPOConfig(clip_range=0.1).agent != PPOConfig().agent
    assert DistillationConfig(rollout_length=3).agent == DistillationConfig().agent


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(
            ppo=PPOConfig(logging_level=LoggingLevel.LOSSES | LoggingLevel.GRAD_NORM, weight_decay=True),
            eval=EvalConfig(logging_percentiles=None),
            video=VideoConfig(render_kwargs={"camera": "side"}),
        ),
        DistillationTrainConfig(distillation=DistillationConfig(weight_decay=0.1, logging_level=LoggingLevel.ALL)),
    ],
)
def test_configs_survive_json(config):
    assert decode_config(type(config), encode_config(config)) == config
