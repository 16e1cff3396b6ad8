import json
import shutil

import gymnasium
import numpy as np
import pytest
from PIL import Image

from triax.runs import Run

from .running import run


def returns_and_lengths(said):
    lines = [line for line in said.splitlines() if line.startswith("Episode")]
    return [(float(line.split("return ")[1].split(",")[0]), int(line.split(", ")[1].split()[0])) for line in lines]


def test_a_gif_shows_whole_episodes_and_what_they_brought_is_said(strips, tmp_path, capsys):
    path = tmp_path / "a.gif"
    assert run("video", strips / "b", "--out", path, "--episodes", 2, "--seed", 5) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].startswith("cli.envs:Strip-v0, dqn, weights of step")
    assert said.splitlines()[-1] == f"Video: {path}"
    found = returns_and_lengths(said)
    assert [length for _, length in found] == [8, 8]
    with Image.open(path) as image:
        assert getattr(image, "n_frames") == 18  # nine states an episode
        assert image.size == (64, 32)
        assert image.info["duration"] == 100
    assert run("video", strips / "b", "--out", path, "--episodes", 2, "--seed", 5) == 0
    assert returns_and_lengths(capsys.readouterr().out) == found
    assert run("video", strips / "b", "--out", path, "--episodes", 2, "--seed", 6) == 0
    assert returns_and_lengths(capsys.readouterr().out) != found


def test_an_mp4_goes_into_the_run_unless_told_otherwise(strips):
    assert run("video", strips / "b") == 0
    assert (strips / "b" / "video.mp4").read_bytes()[4:8] == b"ftyp"


def test_greedy_actions_of_the_weights_asked_for_are_filmed(strips, tmp_path, capsys):
    """The best weights and the last ones act as told: with a bias that outweighs all, one always gets 1 a step."""
    path = shutil.copytree(strips / "b", tmp_path / "b")
    opened = Run.open(path)
    step = opened.checkpoints.latest_step()
    for store, action in ((opened.checkpoints, 1), (opened.best, 0)):
        arrays = store.load_arrays().tree
        bias = next(name for name in arrays if name.endswith("output/bias"))
        arrays[bias][action] = 1e6
        store.save(store.latest_step(), _nested(arrays), store.load_metadata())
    arguments = ("video", path, "--out", tmp_path / "a.gif")
    assert run(*arguments) == 0
    best = capsys.readouterr().out
    assert run(*arguments, "--last") == 0
    last = capsys.readouterr().out
    assert f"weights of step {step}" in last
    (worse, _), (better, _) = *returns_and_lengths(best), *returns_and_lengths(last)
    assert better - worse == pytest.approx(8)


def _nested(arrays):
    tree = {}
    for path, array in arrays.items():
        *folders, name = path.split("/")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = array
    return tree


def in_env(strips, tmp_path, name):
    path = shutil.copytree(strips / "b", tmp_path / "run")
    config = json.loads((path / "config.json").read_text())
    config["config"]["env"] = f"cli.envs:{name}"
    (path / "config.json").write_text(json.dumps(config))
    return path


def test_what_cannot_be_filmed_is_said_in_a_line_and_leaves_no_file(strips, tmp_path, capsys):
    unseen = in_env(strips, tmp_path / "unseen", "Unseen-v0")
    endless = in_env(strips, tmp_path / "endless", "Endless-v0")
    for path, out, message in (
        (unseen, "a.gif", "cli.envs:Unseen-v0 makes no pictures: a video needs the render mode 'rgb_array', it has"),
        (endless, "a.gif", "must render uint8 pictures [height, width, 3] for a video; got str"),
        (strips / "b", "a.avi", "a video ends in .mp4 or .gif"),
        (tmp_path, "a.gif", "holds no run"),
    ):
        assert run("video", path, "--out", tmp_path / out) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert not list(tmp_path.glob("*.*"))


def test_a_missing_renderer_is_named_with_what_to_install(strips, tmp_path, capsys, monkeypatch):
    from cli.envs import Strip

    def render(self):
        raise gymnasium.error.DependencyNotInstalled('pygame: pip install "gymnasium[classic-control]"')

    monkeypatch.setattr(Strip, "render", render)
    assert run("video", strips / "b", "--out", tmp_path / "a.gif") == 1
    assert capsys.readouterr().err == 'triax: pygame: pip install "gymnasium[classic-control]"\n'


def test_long_episodes_are_cut_off(strips, tmp_path, capsys):
    assert run("video", strips / "b", "--out", tmp_path / "a.gif", "--max-steps", 3) == 0
    assert "3 steps, cut off" in capsys.readouterr().out
    with Image.open(tmp_path / "a.gif") as image:
        assert getattr(image, "n_frames") == 4


@pytest.mark.parametrize("option", ["--episodes", "--max-steps"])
def test_numbers_that_make_no_sense_are_wrong_usage(option, strips):
    assert run("video", strips / "b", option, 0) == 2


def test_colours_are_those_rendered(strips, tmp_path):
    assert run("video", strips / "b", "--out", tmp_path / "a.gif", "--max-steps", 1) == 0
    with Image.open(tmp_path / "a.gif") as image:
        image.seek(1)
        pixels = np.asarray(image.convert("RGB")).astype(int)
    np.testing.assert_allclose(pixels[16, [4, 40]], [[250, 20, 20], [0, 0, 0]], atol=12)
