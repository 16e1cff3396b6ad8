import jax.numpy as jnp
import numpy as np
import pytest

from triax.agents.interface import Rollout
from triax.agents.ppo import PPOExtras, PPOState
from triax.agents.ppo_network import Networks
from triax.algorithms import LoggingLevel
from triax.algorithms.measures import RolloutMeasure

FLAGS = np.array([[True, False], [False, False], [False, True]])
VALUES = np.arange(6.0).reshape(3, 2)


def rollout():
    values = jnp.asarray(VALUES)
    extras = PPOExtras(output=(), network=(), metrics={"layer": [values]})  # pyright: ignore[reportArgumentType]
    return Rollout(
        observation={"a": values},
        action=(values, values * 2),
        reward={"x": values, "y": -values},
        terminated=jnp.asarray(FLAGS),
        truncated=jnp.roll(jnp.asarray(FLAGS), 1, axis=1),
        next_observation={"a": values},
        extras=extras,
        carry=(),
        last_carry=(),
        starts=jnp.zeros(2, bool),
        metrics={"speed": values * 3},
    )


def state(params):
    return PPOState(Networks(params, {}), (), ())  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (
            LoggingLevel.ROLLOUT_STATS,
            {
                "rollout_batch/reward/x": VALUES,
                "rollout_batch/reward/y": -VALUES,
                "rollout_batch/action/0": VALUES,
                "rollout_batch/action/1": VALUES * 2,
            },
        ),
        (LoggingLevel.ROLLOUT_OBS, {"rollout_batch/obs/a": VALUES}),
        (LoggingLevel.ENV_METRICS, {"env/speed": VALUES * 3}),
        (LoggingLevel.NETWORK_METRICS, {"student/layer/0": VALUES}),  # F33
        (LoggingLevel.WEIGHTS, {"weights": np.array([1.0, 2.0, 3.0, 4.0, 5.0])}),
    ],
)
def test_each_family_is_told_of_its_values_and_nothing_else(level, expected):
    measure = RolloutMeasure.of(level | LoggingLevel.LOSSES, (2.5,), "student")
    params = {"w": jnp.arange(1.0, 5.0).reshape(2, 2), "b": jnp.array([5.0])}
    found = measure(state(params), rollout())
    for name, values in expected.items():
        np.testing.assert_allclose(found.pop(f"{name}/mean"), values.mean(), rtol=1e-6)
        np.testing.assert_allclose(found.pop(f"{name}/std"), values.std(), rtol=1e-6)
        np.testing.assert_allclose(found.pop(f"{name}/p2.5"), np.percentile(values, 2.5), rtol=1e-6)
    if level is LoggingLevel.ROLLOUT_STATS:
        np.testing.assert_allclose(found.pop("rollout_batch/done_rate"), 4 / 6, rtol=1e-6)
        np.testing.assert_allclose(found.pop("rollout_batch/truncation_rate"), 2 / 6, rtol=1e-6)
    assert not found


def test_levels_without_such_families_need_no_measure():
    assert (
        RolloutMeasure.of(LoggingLevel.LOSSES | LoggingLevel.GRAD_NORM | LoggingLevel.THROUGHPUT, None, "net") is None
    )


def test_a_network_without_weights_is_told_of():
    with pytest.warns(UserWarning, match="no parameters"):
        assert RolloutMeasure(LoggingLevel.WEIGHTS)(state({}), rollout()) == {}
