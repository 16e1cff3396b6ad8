import gymnasium
import jaxtyping
import numpy as np
import pytest
from PIL import Image

from triax.envs import generate_gif, render_episode
from triax.wrappers import TrainMonitor


@pytest.fixture
def unchecked(monkeypatch):
    """Without beartype, as users run: shows the library's own errors for wrong types."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


class Shades(gymnasium.Env):
    """Ends after ``length`` steps; the picture at step t is grey with brightness 10 t."""

    metadata = {"render_modes": ["rgb_array", "ansi", "human"]}
    observation_space = gymnasium.spaces.Discrete(1000)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length, ends="terminated", render_mode="rgb_array"):
        self.length, self.ends, self.render_mode = length, ends, render_mode
        self.rendered, self.actions, self.closed = [], [], False

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return 0, {}

    def step(self, action):
        self.actions.append(action)
        self.t += 1
        over = self.t == self.length
        return self.t, 1.0, over and self.ends == "terminated", over and self.ends == "truncated", {}

    def render(self):
        self.rendered.append(self.t)
        if self.render_mode == "ansi":
            return f"step {self.t}"
        return np.full((16, 24, 3), 10 * self.t, np.uint8) if self.render_mode == "rgb_array" else None

    def close(self):
        self.closed = True


def brightness(path):
    with Image.open(path) as picture:
        return [
            int(np.asarray(frame.convert("RGB")).mean())
            for index in range(picture.n_frames)
            for frame in [picture.seek(index) or picture]
        ]


@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_gif_has_every_frame_once(tmp_path, ends):  # F83
    env = Shades(5, ends)
    generate_gif(env, tmp_path / "new" / "folder" / "a.gif")
    assert brightness(tmp_path / "new" / "folder" / "a.gif") == [0, 10, 20, 30, 40, 50]
    assert env.rendered == [0, 1, 2, 3, 4, 5]
    assert not env.closed
    assert [file.name for file in (tmp_path / "new" / "folder").iterdir()] == ["a.gif"]


def test_gif_of_collected_frames_has_every_frame_once(tmp_path):
    env = gymnasium.wrappers.RenderCollection(Shades(3))
    assert env.render_mode == "rgb_array_list"
    generate_gif(env, tmp_path / "a.gif")
    assert brightness(tmp_path / "a.gif") == [0, 10, 20, 30]


def test_gif_follows_the_policy_size_and_duration(tmp_path):
    env = Shades(4)
    generate_gif(env, str(tmp_path / "a.gif"), policy=lambda s: s % 2, resize_to=(12, 8), duration=70)
    assert env.actions == [0, 1, 0, 1]
    with Image.open(tmp_path / "a.gif") as picture:
        assert picture.size == (12, 8)
        assert picture.info["duration"] == 70
        assert picture.info["loop"] == 0


def test_gif_stops_at_the_given_length_or_that_of_the_spec(tmp_path):
    env = Shades(10**9)
    generate_gif(env, tmp_path / "a.gif", max_episode_steps=3)
    assert env.rendered == [0, 1, 2, 3]
    env = Shades(10**9)
    env.spec = gymnasium.envs.registration.EnvSpec("Shades-v0", max_episode_steps=4)
    generate_gif(env, tmp_path / "a.gif")
    assert env.rendered == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("wrap", [lambda env: env, lambda env: gymnasium.wrappers.TransformReward(env, lambda r: r)])
def test_monitored_episodes_do_not_count_wherever_the_monitor_is(tmp_path, wrap):
    monitor = TrainMonitor(Shades(3))
    env = wrap(monitor)
    monitor.reset()
    monitor.step(0)
    before = monitor.get_counters() | {"seconds": 0}
    generate_gif(env, tmp_path / "a.gif")
    assert monitor.get_counters() | {"seconds": 0} == before
    assert monitor.counting


def test_monitor_counts_again_after_a_failure(tmp_path):
    def fail(s):
        raise ZeroDivisionError

    monitor = TrainMonitor(Shades(3))
    with pytest.raises(ZeroDivisionError):
        generate_gif(monitor, tmp_path / "a.gif", policy=fail)
    assert monitor.counting
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("resize_to", [(3,), (3, 4, 5), (0, 4), (3.5, 4), "ab", 7])
def test_gif_refuses_a_bad_size_before_playing(unchecked, tmp_path, resize_to):
    env = Shades(3)
    with pytest.raises(TypeError, match="two positive ints; got"):
        generate_gif(env, tmp_path / "a.gif", resize_to=resize_to)
    assert env.actions == []


def test_without_render_mode_there_is_a_clear_error(tmp_path):
    env = Shades(3, render_mode=None)
    with pytest.raises(RuntimeError, match=r"render_mode None.*render_mode='rgb_array'"):
        generate_gif(env, tmp_path / "a.gif")
    with pytest.raises(RuntimeError, match=r"render_mode None.*render_mode='human'"):
        render_episode(env)
    assert env.actions == []


@pytest.mark.parametrize("mode", ["ansi", "human"])
def test_gif_refuses_what_is_no_array(tmp_path, mode):
    with pytest.raises(RuntimeError, match=f"mode '{mode}' it rendered (str|NoneType)"):
        generate_gif(Shades(3, render_mode=mode), tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


def test_render_episode_shows_every_state_once(capsys):  # F83
    env = Shades(3, "truncated", render_mode="ansi")
    render_episode(env, policy=lambda s: 1)
    assert capsys.readouterr().out.split("\n") == ["step 0", "step 1", "step 2", "step 3", ""]
    assert env.actions == [1, 1, 1]


def test_render_episode_leaves_rendering_to_human_mode():
    env = Shades(3, render_mode="human")
    render_episode(env)
    assert (env.t, env.rendered) == (3, [])


def test_render_episode_pauses_after_each_step_and_five_times_at_the_end(monkeypatch):
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
    render_episode(Shades(3), step_delay_ms=20)
    assert sum(slept) == pytest.approx(0.02 * (3 + 5))  # after the reset and two steps, and five at the end


def test_render_episode_does_not_count():
    monitor = TrainMonitor(Shades(3))
    render_episode(monitor)
    assert (monitor.T, monitor.ep) == (0, 0)
