"""Connect Four as a Gymnasium environment, for two players or against an opponent."""

import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Bool, Int

from triax.core.errors import EpisodeDoneError, UnavailableActionError
from triax.envs.connect_four_game import (
    LINES,
    NUM_COLS,
    NUM_ROWS,
    decode_game,
    encode_game,
    free_columns,
    has_four,
    new_game,
    play,
)

_TOKENS = np.array([" ", "●", "○"])


class ConnectFourEnv(gymnasium.Env):
    """Drop tokens into seven columns of six; four in a line win.

    An action is a column, 0 to 6. An observation is ``int64[7, 7, 2]`` of zeros and ones: in row 0 the
    columns that take another token, twice; in rows 1 to 6 the board from the top, the tokens of the player to
    move in layer 0 and those of the other in layer 1. After each move the layers swap. No policy knows the
    mask by itself: let ``func`` add large negative logits where ``S[:, 0, :, 0]`` is 0, and give the function of it
    ``observation_preprocessor=lambda rng, s: ...`` that keeps ``[batch, 7, 7, 2]``; by default it gets one-hots.

    Args:
        opponent: ``None``: two players alternate through ``step``, and the reward is the mover's. Otherwise
            the answer to each of your moves: ``column = opponent(s)``, with ``s`` from its own side, or
            ``"random"`` for any free column, drawn by the seed of ``reset``. The reward is then yours.
        opponent_starts: the opponent moves first in every game.
        render_mode: ``"ansi"``: ``render`` returns the board as text; ``"human"``: it is written to the
            standard output after each reset and step.

    The reward is ``win_reward`` for connecting four, ``draw_reward`` when the board is full, ``loss_reward``
    when the opponent connects four, else 0. ``info["state_id"]`` is the position for :meth:`set_state`.
    ``step`` raises ``EpisodeDoneError`` when the game is over, ``ValueError`` for what is no column and
    ``UnavailableActionError`` for a full one; the game stays as it was.
    """

    metadata = {"render_modes": ["ansi", "human"], "render_fps": 1}
    action_space: gymnasium.Space
    observation_space: gymnasium.Space

    num_rows = NUM_ROWS
    num_cols = NUM_COLS
    num_players = 2
    max_time_steps = NUM_ROWS * NUM_COLS
    win_reward = 1.0
    loss_reward = -1.0
    draw_reward = 0.0
    filters = LINES
    """The lines of four in a window of 4 x 4, ``int8[10, 4, 4]``."""

    def __init__(
        self,
        opponent: Callable[[Any], Any] | str | None = None,
        *,
        opponent_starts: bool = False,
        render_mode: str | None = None,
    ):
        if not (opponent is None or opponent == "random" or callable(opponent)):
            raise TypeError(f"ConnectFourEnv: opponent must be None, 'random' or a callable; got {opponent!r}.")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(
                f"ConnectFourEnv: render_mode must be None or one of {self.metadata['render_modes']}; "
                f"got {render_mode!r}."
            )
        if opponent_starts and opponent is None:
            raise ValueError("ConnectFourEnv: opponent_starts needs an opponent. Try opponent='random'.")
        self.action_space = gymnasium.spaces.Discrete(NUM_COLS)
        self.observation_space = gymnasium.spaces.MultiDiscrete(np.full((1 + NUM_ROWS, NUM_COLS, 2), 2))
        self.opponent = opponent
        self.opponent_starts = opponent_starts
        self.render_mode = render_mode
        self._game = new_game()

    @property
    def state(self) -> Int[np.ndarray, "7 7 2"]:
        """The present observation."""
        return _observe(self._game)

    @property
    def state_id(self) -> str:
        """The position as 20 hexadecimal digits."""
        return encode_game(self._game)

    @property
    def available_actions(self) -> Int[np.ndarray, " n"]:
        """The columns that take another token."""
        return np.flatnonzero(self.available_actions_mask)

    @property
    def available_actions_mask(self) -> Bool[np.ndarray, " 7"]:
        """Which columns take another token."""
        return free_columns(self._game.board)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """An empty board, or with ``opponent_starts`` one token on it; ``options`` has no use here."""
        super().reset(seed=seed)
        game = new_game()
        self._game = play(game, self._answer(game)) if self.opponent_starts else game
        return self._present()

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]: `a` is the name of an action in triax
        self, a: Any
    ) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Your move, and the opponent's if there is one; never truncated."""
        if self._game.done:
            raise EpisodeDoneError("ConnectFourEnv: the game is over. Try reset().")
        game = play(self._game, _checked(self._game, a, "an action"))
        reward = self._reward(game, self.win_reward)
        if self.opponent is not None and not game.done:
            game = play(game, self._answer(game))
            reward = self._reward(game, self.loss_reward)
        self._game = game
        s_next, info = self._present()
        return s_next, reward, game.done, False, info

    def set_state(self, state_id: str) -> None:
        """Goes to a position; ``ValueError`` unless it can be reached by playing. You are to move."""
        self._game = decode_game(state_id)

    def render(self, *args: Any, **kwargs: Any) -> str | None:
        """The board as text in mode ``"ansi"``; otherwise written to the standard output."""
        text = _draw(self._game)
        if self.render_mode == "ansi":
            return text
        sys.stdout.write(text + "\n")
        return None

    def _present(self) -> tuple[Any, dict[str, Any]]:
        if self.render_mode == "human":
            self.render()
        return self.state, {"state_id": self.state_id}

    def _reward(self, game: Any, for_four: float) -> float:
        """Of the move that led to ``game``: ``for_four`` if it connected four."""
        if has_four(game.board, 3 - game.player):
            return float(for_four)
        return float(self.draw_reward) if game.done else 0.0

    def _answer(self, game: Any) -> int:
        """The opponent's move."""
        if callable(self.opponent):
            return _checked(game, self.opponent(_observe(game)), "the opponent's action")
        return int(self.np_random.choice(np.flatnonzero(free_columns(game.board))))


def _observe(game: Any) -> Int[np.ndarray, "7 7 2"]:
    mask = np.repeat(free_columns(game.board)[None, :, None], 2, axis=2)
    tokens = np.stack([game.board == game.player, game.board == 3 - game.player], axis=2)
    return np.concatenate([mask, tokens]).astype(np.int64)


def _checked(game: Any, action: Any, what: str) -> int:
    """The action as an int."""
    if not gymnasium.spaces.Discrete(NUM_COLS).contains(action):
        raise ValueError(f"ConnectFourEnv: {what} must be an int from 0 to {NUM_COLS - 1}; got {action!r}.")
    free = free_columns(game.board)
    if not free[int(action)]:
        raise UnavailableActionError(
            f"ConnectFourEnv: {what} must be one of the columns {np.flatnonzero(free).tolist()} that are not full; "
            f"got {int(action)}."
        )
    return int(action)


def _draw(game: Any) -> str:
    """A marker above the last column, the board, the numbers of the columns, and who is to move."""
    marker = "  " * NUM_COLS if game.last_column is None else "  " * game.last_column + " ▾"
    rows = ["|" + "|".join(row) + "|" for row in _TOKENS[game.board].tolist()]
    numbers = " " + " ".join(map(str, range(NUM_COLS)))
    turn = "game over" if game.done else f"{_TOKENS[game.player]} to move"
    return "\n".join([marker.rstrip(), *rows, numbers, turn])
