import copy
import inspect

import gymnasium
import jaxtyping
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from triax.core import EpisodeDoneError, UnavailableActionError
from triax.envs import ConnectFourEnv

DRAW = [5, 5, 5, 0, 5, 4, 4, 6, 6, 3, 5, 1, 3, 5, 2, 1, 2, 3, 0, 4, 1]
DRAW += [4, 3, 0, 2, 2, 2, 1, 0, 0, 0, 2, 1, 6, 1, 3, 4, 4, 3, 6, 6, 6]
FIRST_WINS = [0, 1, 0, 1, 0, 1, 0]


@pytest.fixture
def unchecked(monkeypatch):
    """Without beartype, as users run: shows the library's own errors for wrong types."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def played(columns, env=None):
    """The environment and what each step returned."""
    env = env or ConnectFourEnv()
    env.reset(seed=0)
    return env, [env.step(column) for column in columns]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "env", [ConnectFourEnv(render_mode="ansi"), ConnectFourEnv("random", opponent_starts=True, render_mode="ansi")]
)
def test_it_follows_gymnasiums_interface(env):  # F84
    env.spec = gymnasium.envs.registration.EnvSpec("ConnectFour-v0", entry_point=ConnectFourEnv)
    check_env(env, skip_close_check=True)


def test_layer_0_holds_the_player_to_move():  # F84
    env, steps = played([3, 4])
    first, second = steps
    assert first[0][6, 3].tolist() == [0, 1]  # the second player sees the first one's token as the other's
    assert second[0][6, 3].tolist() == [1, 0] and second[0][6, 4].tolist() == [0, 1]
    np.testing.assert_array_equal(env.state, second[0])


@pytest.mark.parametrize("seed", range(5))
def test_every_observation_is_a_member_and_its_layers_swap(seed):
    env, rng = ConnectFourEnv(), np.random.default_rng(seed)
    s, info = env.reset(seed=seed)
    done = False
    while not done:
        a = rng.choice(env.available_actions)
        s_next, _, done, truncated, info = env.step(a)
        assert s_next in env.observation_space and not truncated and info == {"state_id": env.state_id}
        gone = s_next[1:] - s[1:, :, ::-1]  # what the same eyes see change: one token of the mover
        assert gone[..., 0].sum() == 0 and gone[..., 1].sum() == 1 and gone[:, a, 1].sum() == 1
        np.testing.assert_array_equal(s_next[0, :, 0], env.available_actions_mask)
        np.testing.assert_array_equal(s_next[0, :, 1], s_next[1].sum(-1) == 0)
        s = s_next


def test_the_mover_is_rewarded_for_four():
    _, steps = played(FIRST_WINS)
    assert [step[1] for step in steps] == [0] * 6 + [1.0]
    assert [step[2] for step in steps] == [False] * 6 + [True]


def test_a_full_board_is_a_draw():
    env, steps = played(DRAW)
    assert len(steps) == env.max_time_steps and steps[-1][1:4] == (0.0, True, False)
    assert not env.available_actions.size


def test_an_opponent_answers_and_sees_the_board_from_its_side():
    seen = []

    def opponent(s):
        seen.append(s)
        return 6

    _, steps = played([3, 3], ConnectFourEnv(opponent))
    assert [s[6, 3].tolist() for s in seen] == [[0, 1], [0, 1]]
    assert seen[1][6, 6].tolist() == [1, 0]
    assert steps[-1][0][6, 3].tolist() == [1, 0] and steps[-1][0][5, 6].tolist() == [0, 1]


def test_losing_winning_and_drawing_against_an_opponent_are_rewarded():  # F84
    _, lost = played([0, 1, 0, 1], ConnectFourEnv(lambda s: 6))
    assert [step[1] for step in lost] == [0, 0, 0, -1.0] and lost[-1][2]
    _, won = played([0, 0, 0, 0], ConnectFourEnv(lambda s: 6))
    assert won[-1][1:3] == (1.0, True)
    replies = iter(DRAW[1::2])
    _, drawn = played(DRAW[::2], ConnectFourEnv(lambda s: next(replies)))
    assert drawn[-1][1:3] == (0.0, True) and len(drawn) == 21


def test_rewards_are_attributes_to_change():
    env = ConnectFourEnv(lambda s: 6)
    env.loss_reward, env.win_reward = -5.0, 7.0
    assert played([0, 1, 0, 1], env)[1][-1][1] == -5.0
    assert played([0, 0, 0, 0], env)[1][-1][1] == 7.0


def test_the_opponent_may_start():
    env = ConnectFourEnv(lambda s: 2, opponent_starts=True)
    s, _ = env.reset()
    assert s[6, 2].tolist() == [0, 1] and s[1:].sum() == 1


def test_a_random_opponent_follows_the_seed_of_reset():
    def game(seed):
        env = ConnectFourEnv("random")
        env.reset(seed=seed)
        return [env.step(column)[4]["state_id"] for column in (0, 1, 2)]

    assert game(1) == game(1)
    assert len({tuple(game(seed)) for seed in range(5)}) > 1


def test_any_position_can_be_set_and_played_on():  # F84
    env, steps = played([3, 3, 4])
    other = ConnectFourEnv()
    other.set_state(env.state_id)
    np.testing.assert_array_equal(other.state, env.state)
    assert other.state_id == steps[-1][4]["state_id"]
    np.testing.assert_array_equal(other.step(0)[0], env.step(0)[0])


def test_a_finished_position_stays_finished():
    env = ConnectFourEnv()
    env.set_state(played(FIRST_WINS)[0].state_id)
    with pytest.raises(EpisodeDoneError, match=r"the game is over. Try reset\(\)"):
        env.step(0)
    env.reset()
    env.step(0)


def test_a_bad_position_leaves_the_game_as_it_was():
    env, _ = played([3])
    before = env.state_id
    with pytest.raises(ValueError, match="state_id"):
        env.set_state("f" * 20)
    assert env.state_id == before


@pytest.mark.parametrize("action", [7, -1, 2.0, "a", None, np.zeros(2, int)])
def test_what_is_no_column_is_refused_by_its_value(action, unchecked):
    env, _ = played([3])
    before = env.state_id
    with pytest.raises(ValueError, match="an action must be an int from 0 to 6; got"):
        env.step(action)
    assert env.state_id == before


def test_a_full_column_is_unavailable_and_the_game_stays():
    env, _ = played([0] * 6)
    before = env.state_id
    with pytest.raises(UnavailableActionError, match=r"one of the columns \[1, 2, 3, 4, 5, 6\].*got 0"):
        env.step(0)
    assert env.state_id == before and env.available_actions.tolist() == [1, 2, 3, 4, 5, 6]


def test_an_opponents_bad_move_leaves_the_game_as_it_was():
    env, _ = played([], ConnectFourEnv(lambda s: 9))
    before = env.state_id
    with pytest.raises(ValueError, match="the opponent's action must be"):
        env.step(0)
    assert env.state_id == before


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"opponent": "minimax"}, TypeError, "'minimax'"),
        ({"opponent": 3}, TypeError, "got 3"),
        ({"render_mode": "rgb_array"}, ValueError, "'rgb_array'"),
        ({"opponent_starts": True}, ValueError, "needs an opponent"),
    ],
)
def test_bad_arguments_are_refused_by_their_values(arguments, error, message, unchecked):
    with pytest.raises(error, match=message):
        ConnectFourEnv(**arguments)


def test_spaces_belong_to_the_instance():  # F84
    one, two = ConnectFourEnv(), ConnectFourEnv()
    assert one.action_space is not two.action_space and one.observation_space is not two.observation_space


def test_rendering_shows_the_board_from_the_top_and_marks_the_last_column():
    env, _ = played([3, 3, 0], ConnectFourEnv(render_mode="ansi"))
    lines = env.render().splitlines()
    assert lines[0] == " ▾"
    assert lines[5:7] == ["| | | |○| | | |", "|●| | |●| | | |"]
    assert lines[7:] == [" 0 1 2 3 4 5 6", "○ to move"]


def test_human_mode_writes_each_state(capsys):
    played([3, 3], ConnectFourEnv(render_mode="human"))
    assert capsys.readouterr().out.count("0 1 2 3 4 5 6") == 3


def test_rendering_without_a_mode_writes_the_board_once_asked(capsys):
    env, _ = played([3])
    assert not capsys.readouterr().out
    assert env.render() is None
    assert capsys.readouterr().out.count("0 1 2 3 4 5 6") == 1


def test_copies_play_on_their_own():
    env, _ = played([3])
    other = copy.deepcopy(env)
    other.step(0)
    assert env.state_id != other.state_id
    assert list(inspect.signature(env.set_state).parameters) == ["state_id"]
