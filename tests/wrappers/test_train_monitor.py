import copy
import json
import logging
import math
import pickle
import re

import gymnasium
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from triax.wrappers import TrainMonitor


@pytest.fixture
def unchecked(monkeypatch):
    """Without beartype, as users run: shows the library's own errors for wrong types."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


class Countdown(gymnasium.Env):
    """Episodes of ``length`` steps with rewards 1, 2, ...; they end in the named way."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))

    def __init__(self, length=3, ends="terminated", action_space=None):
        self.action_space = action_space or gymnasium.spaces.Discrete(2)
        self.length, self.ends, self.closed, self.resets = length, ends, False, []

    def reset(self, *, seed=None, options=None):
        self.resets.append((seed, options))
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.t += 1
        over = self.t == self.length
        flags = over and self.ends == "terminated", over and self.ends == "truncated"
        return np.zeros(2, np.float32), float(self.t), *flags, {"mine": self.t}

    def close(self):
        self.closed = True


def play(env, steps=10**9):
    env.reset()
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            return


def scalars(folder):
    events = EventAccumulator(str(folder), size_guidance={"histograms": 0}).Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}, events


def test_reset_passes_seed_and_options_on():  # F77
    env = TrainMonitor(Countdown())
    env.reset(seed=7, options={"a": 1})
    assert env.unwrapped.resets == [(7, {"a": 1})]


@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_T_counts_steps_alone(ends):  # F77
    env = TrainMonitor(Countdown(3, ends))
    for _ in range(4):
        play(env)
    assert (env.T, env.ep, env.t, env.G) == (12, 4, 3, 6.0)
    env.reset()
    assert (env.T, env.ep, env.t, env.G) == (12, 5, 0, 0.0)


def test_info_holds_the_counters_before_the_step():
    env = TrainMonitor(Countdown())
    play(env)
    env.reset()
    *_, info = env.step(0)
    assert info == {"mine": 1, "monitor": {"T": 3, "ep": 2}}


@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_avg_G_moves_by_one_over_the_smaller_of_episodes_and_smoothing(ends):
    env = TrainMonitor(Countdown(ends=ends), smoothing=3)
    expected, returns = 0.0, []
    for episode, length in enumerate([2, 5, 3, 1, 7, 4], start=1):
        env.unwrapped.length = length
        play(env)
        G = length * (length + 1) / 2
        returns.append(G)
        expected += (G - expected) / min(episode, 3)
        assert env.avg_G == pytest.approx(expected)  # known as soon as the episode is over
        if episode <= 3:
            assert env.avg_G == pytest.approx(np.mean(returns))


def test_an_episode_cut_short_by_reset_or_close_counts_once():
    env = TrainMonitor(Countdown(100), smoothing=10)
    play(env, steps=2)  # return 3
    play(env, steps=1)  # return 1
    assert env.avg_G == 3.0
    env.close()
    env.close()
    assert env.avg_G == 2.0


def test_every_episode_is_logged_once_the_last_one_on_close(caplog):  # F77
    env = TrainMonitor(Countdown())
    with caplog.at_level(logging.INFO, logger="triax"):
        play(env)
        play(env)
        env.reset()
        env.reset()  # an episode without a step tells nothing
        play(env)
        assert len(caplog.records) == 2
        env.close()
        env.close()
    assert [r.getMessage().split(",\t")[:3] for r in caplog.records] == [
        ["ep: 1", "T: 3", "G: 6"],
        ["ep: 2", "T: 6", "G: 6"],
        ["ep: 5", "T: 9", "G: 6"],
    ]
    assert env.unwrapped.closed


def test_the_line_holds_the_headline_metrics_of_updates_after_the_last_step_too(caplog):
    env = TrainMonitor(Countdown(), name="mine")
    with caplog.at_level(logging.INFO, logger="triax"):
        play(env)
        env.record_metrics({"QLearning/loss": 1.0, "QLearning/td_error": 5.0, "throughput/x": 2})
        env.record_metrics({"QLearning/loss": 2.0})
        env.reset()
    (record,) = caplog.records
    assert record.name == "triax.TrainMonitor.mine"
    names = [part.split(": ")[0] for part in record.getMessage().split(",\t")]
    assert names == ["ep", "T", "G", "avg_r", "avg_G", "t", "dt", "QLearning/loss", "throughput/x"]
    assert "QLearning/loss: 1.5" in record.getMessage()


def test_all_metrics_are_logged_when_asked(caplog):
    env = TrainMonitor(Countdown(), log_all_metrics=True)
    with caplog.at_level(logging.INFO, logger="triax"):
        play(env)
        env.record_metrics({"QLearning/td_error": 5.0})
        env.close()
    assert "QLearning/td_error: 5" in caplog.text


def test_logging_is_never_configured():  # F78
    root, own = logging.getLogger(), logging.getLogger("triax.TrainMonitor")
    before = [(lg.level, list(lg.handlers), lg.propagate, lg.disabled) for lg in (root, own)]
    env = TrainMonitor(Countdown(), name="a")
    play(env)
    env.close()
    assert [(lg.level, list(lg.handlers), lg.propagate, lg.disabled) for lg in (root, own)] == before


def test_arguments_that_would_configure_logging_are_refused():  # F78
    with pytest.raises(TypeError, match=r"\['level', 'output_filepath'\].*basicConfig"):
        TrainMonitor(Countdown(), name="a", output_filepath="x.log", level=logging.DEBUG)


@pytest.mark.parametrize("smoothing", [0, -1, 2.5])
def test_smoothing_must_be_a_positive_int(unchecked, smoothing):
    with pytest.raises(ValueError, match="smoothing must be a positive int"):
        TrainMonitor(Countdown(), smoothing=smoothing)


def test_rates_are_nan_before_the_first_step():
    env = TrainMonitor(Countdown())
    env.reset()
    assert math.isnan(env.avg_r) and math.isnan(env.dt_ms)
    env.step(0)
    env.step(0)
    assert env.avg_r == 1.5 and env.dt_ms > 0


def test_counters_are_found_through_other_wrappers():  # F80
    env = gymnasium.wrappers.TransformReward(TrainMonitor(Countdown()), lambda r: r)
    play(env)
    assert env.get_wrapper_attr("T") == 3
    assert env.get_wrapper_attr("avg_G") == 6.0
    env.get_wrapper_attr("record_metrics")({"a": 1.0})
    assert env.get_wrapper_attr("get_metrics")() == {"a": 1.0}


def test_period_is_true_once_per_multiple_and_name():
    env = TrainMonitor(Countdown(100))
    env.reset()
    true_at = {"a": [], "b": []}
    for _ in range(20):
        env.step(0)
        for name, period in (("a", 5), ("b", 7)):
            for _ in range(2):
                if env.period(name, T_period=period):
                    true_at[name].append(env.T)
    assert true_at == {"a": [5, 10, 15, 20], "b": [7, 14]}


def test_period_asked_rarely_does_not_catch_up():
    env = TrainMonitor(Countdown(100))
    env.reset()
    for _ in range(23):
        env.step(0)
    assert [env.period("a", T_period=5) for _ in range(3)] == [True, False, False]
    env.step(0)
    assert not env.period("a", T_period=5)
    env.step(0)
    assert env.period("a", T_period=5)  # T = 25


def test_period_counts_episodes_and_takes_both():
    env = TrainMonitor(Countdown(4))
    true_at = []
    for _ in range(6):
        play(env)
        if env.period("a", ep_period=3):
            true_at.append(env.ep)
    assert true_at == [3, 6]
    # T = 24, ep = 6: both multiples are passed at once, so neither is left for the next call
    assert [env.period("both", T_period=10, ep_period=2) for _ in range(2)] == [True, False]


def test_period_refuses_nothing_and_zero():
    env = TrainMonitor(Countdown())
    with pytest.raises(ValueError, match="give T_period, ep_period or both"):
        env.period("a")
    with pytest.raises(ValueError, match="at least 1, got 0"):
        env.period("a", T_period=0)


def test_counters_survive_json(tmp_path):  # F79
    env = TrainMonitor(Countdown(5), smoothing=4)
    for _ in range(3):
        play(env)
    play(env, steps=2)
    env.record_metrics({"a/loss": jnp.float32(1.0), "b": math.inf})
    env.record_metrics({"a/loss": jnp.float32(4.0)})
    assert env.period("p", T_period=6)
    env.save_counters(tmp_path / "counters.json")
    json.loads((tmp_path / "counters.json").read_text(), parse_constant=lambda c: pytest.fail(c))

    other = TrainMonitor(Countdown(5), smoothing=4)
    other.load_counters(tmp_path / "counters.json")
    for name in ("T", "ep", "t", "G", "avg_G"):
        assert getattr(other, name) == getattr(env, name)
    assert other.get_metrics() == env.get_metrics() == {"a/loss": 2.5, "b": math.inf}
    assert not other.period("p", T_period=6)
    assert other.dt_ms == pytest.approx(env.dt_ms, rel=0.5, abs=50)
    for monitor in (env, other):
        monitor.reset()
    assert other.avg_G == env.avg_G


def test_a_restored_episode_that_was_over_is_not_averaged_twice():
    env, other = TrainMonitor(Countdown()), TrainMonitor(Countdown())
    play(env)
    other.set_counters(env.get_counters())
    other.reset()
    play(other, steps=1)
    other.reset()
    assert other.avg_G == np.mean([6.0, 1.0])


@pytest.mark.parametrize("change", [{"more": 1}, {"T": None}])
def test_counters_with_other_keys_are_refused_and_change_nothing(unchecked, change):
    env = TrainMonitor(Countdown())
    play(env)
    counters = env.get_counters() | change
    if change.get("T", 0) is None:
        del counters["T"]
    with pytest.raises(TypeError, match="expected the keys"):
        env.set_counters(counters)
    with pytest.raises(TypeError, match="got list"):
        env.set_counters([1])
    assert env.T == 3


def test_reset_global_is_a_new_monitor():
    env = TrainMonitor(Countdown())
    play(env)
    env.record_metrics({"a": 1.0})
    env.period("p", T_period=1)
    env.reset_global()
    fresh = TrainMonitor(Countdown()).get_counters()
    assert env.get_counters() | {"seconds": 0} == fresh | {"seconds": 0}


@pytest.mark.parametrize("metrics", [[("a", 1)], 3.0, {"a": np.zeros(2)}, {"a": "text"}, {"a": None}])
def test_metrics_that_are_no_mapping_to_scalars_are_refused(unchecked, metrics):
    env = TrainMonitor(Countdown())
    with pytest.raises(TypeError, match="record_metrics: "):
        env.record_metrics(metrics)
    assert env.get_metrics() == {}


def test_an_uncounted_monitor_passes_everything_through():
    env = TrainMonitor(Countdown())
    play(env)
    before = env.get_counters()
    env.counting = False
    env.reset(seed=3)
    *_, info = env.step(0)
    assert "monitor" not in info
    assert env.get_counters() | {"seconds": 0} == before | {"seconds": 0}
    assert env.unwrapped.resets[-1] == (3, None)


def test_tensorboard_gets_episodes_metrics_and_actions(tmp_path):
    env = TrainMonitor(Countdown(), tensorboard_dir=tmp_path)
    play(env)
    env.record_metrics({"a": 1.0})
    env.record_metrics({"a": 2.0})
    play(env)
    env.close()
    (folder,) = tmp_path.iterdir()
    assert len(folder.name) == len("YYYYmmdd_HHMMSS")
    values, events = scalars(folder)
    assert values["episode/return"] == [(3, 6.0), (6, 6.0)]
    assert values["episode/episode"] == [(3, 1.0), (6, 2.0)]
    assert values["episode/steps"] == [(3, 3.0), (6, 3.0)]
    assert values["episode/avg_reward"] == [(3, 2.0), (6, 2.0)]
    assert values["a"] == [(3, 1.5)]
    assert values["episode/avg_step_duration_ms"][0][1] > 0
    assert [(h.step, h.histogram_value.num) for h in events.Histograms("actions")] == [(3, 3), (6, 3)]


def test_tensorboard_write_all_writes_each_value_and_no_averages(tmp_path):
    env = TrainMonitor(Countdown(), tensorboard_dir=tmp_path / "20240102_030405", tensorboard_write_all=True)
    env.reset()
    for value in (1.0, 2.0):
        env.step(0)
        env.record_metrics({"a": jnp.float32(value)})
    env.close()
    values, _ = scalars(tmp_path / "20240102_030405")
    assert values["a"] == [(1, 1.0), (2, 2.0)]


def test_composite_actions_have_a_histogram_per_leaf(tmp_path):
    space = gymnasium.spaces.Dict(
        {
            "move": gymnasium.spaces.Box(-1, 1, (2,)),
            "say": gymnasium.spaces.Text(3),
            "go": gymnasium.spaces.MultiBinary(2),
        }
    )
    env = TrainMonitor(Countdown(4, action_space=space), tensorboard_dir=tmp_path / "20240102_030405")
    play(env)
    env.close()
    _, events = scalars(tmp_path / "20240102_030405")
    assert sorted(events.Tags()["histograms"]) == ["actions/go", "actions/move"]
    assert events.Histograms("actions/move")[0].histogram_value.num == 8


def test_restored_counters_go_on_in_the_same_tensorboard_folder(tmp_path):
    env = TrainMonitor(Countdown(), tensorboard_dir=tmp_path / "a")
    play(env)
    counters = env.get_counters()
    env.close()
    other = TrainMonitor(Countdown())
    other.set_counters(counters)
    play(other)
    other.close()
    values, _ = scalars(counters["tensorboard_dir"])
    assert [step for step, _ in values["episode/steps"]] == [3, 3, 6]  # the first was restored unlogged


def test_without_a_folder_there_is_no_writer():
    assert TrainMonitor(Countdown()).tensorboard is None


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_have_no_writer_and_go_on_counting(tmp_path, duplicate):
    env = TrainMonitor(Countdown(), tensorboard_dir=tmp_path)
    play(env)
    env.record_metrics({"a": jnp.float32(3.0)})
    assert env.tensorboard is not None
    again = duplicate(env)
    assert again.__dict__["_writer"] is None
    assert again.get_metrics() == {"a": 3.0}
    play(again)
    assert (again.T, env.T) == (6, 3)
    env.close()


def test_steps_after_the_end_of_an_episode_are_not_counted():
    class Endless(gymnasium.Env):
        observation_space = action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def step(self, action):
            return 0, 1.0, True, False, {}

    env = TrainMonitor(Endless())
    env.reset()
    env.step(0)
    for _ in range(2):
        with pytest.warns(UserWarning, match="came after the end of its episode and is not counted"):
            env.step(0)
    assert (env.T, env.t, env.G, env.avg_G) == (1, 1, 1.0, 1.0)
    env.reset()
    env.step(0)
    assert (env.T, env.ep, env.t, env.G) == (2, 2, 1, 1.0)


def test_it_prints_its_counters_and_its_environment():
    env = TrainMonitor(Countdown())
    env.reset()
    for _ in range(3):
        env.step(0)
    assert re.fullmatch(r"<TrainMonitor\(T=3, ep=1, avg_G=6\)<Countdown.*>>", str(env))
    assert repr(env) == str(env)
