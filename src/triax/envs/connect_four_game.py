"""The rules of Connect Four, and games as strings."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

NUM_ROWS, NUM_COLS = 6, 7

LINES: Int[np.ndarray, "10 4 4"] = np.stack(
    [np.eye(4, dtype=np.int8)[[row] * 4].T for row in range(4)]
    + [np.eye(4, dtype=np.int8)[[column] * 4] for column in range(4)]
    + [np.eye(4, dtype=np.int8), np.eye(4, dtype=np.int8)[::-1]]
)
"""The ten lines of four in a window of 4 x 4: rows, columns, diagonals."""

_NO_COLUMN = 7
_BOARDS = 3 ** (NUM_ROWS * NUM_COLS)
_DIGITS = 20


class Game(NamedTuple):
    """A position, as a value."""

    player: int
    """Who moves next: 1, who began, or 2."""
    done: bool
    """Whether someone has connected four, or the board is full."""
    last_column: int | None
    """Where the last token fell; ``None`` before the first."""
    board: Int[np.ndarray, "6 7"]
    """0: free, 1 and 2: that player's token. The top row comes first."""


def new_game() -> Game:
    """The empty board, player 1 to move."""
    return Game(1, False, None, np.zeros((NUM_ROWS, NUM_COLS), np.int8))


def free_columns(board: Int[np.ndarray, "6 7"]) -> Bool[np.ndarray, " 7"]:
    """Which columns take another token."""
    return board[0] == 0


def play(game: Game, column: int) -> Game:
    """The game after the player to move drops a token into a free column."""
    board = game.board.copy()
    row = np.flatnonzero(board[:, column] == 0)[-1]
    board[row, column] = game.player
    done = has_four(board, game.player) or not free_columns(board).any()
    return Game(3 - game.player, done, column, board)


def has_four(board: Int[np.ndarray, "6 7"], player: int) -> bool:
    """Whether the player has four tokens in a line."""
    windows = np.lib.stride_tricks.sliding_window_view(board == player, (4, 4)).reshape(-1, 16)
    return bool((windows @ LINES.reshape(-1, 16).T == 4).any())


def encode_game(game: Game) -> str:
    """The game as 20 hexadecimal digits: player, done and last column in front of the board in base 3."""
    column = _NO_COLUMN if game.last_column is None else game.last_column
    head = ((game.player - 1) * 2 + int(game.done)) * 8 + column
    return f"{head * _BOARDS + int(''.join(map(str, game.board.ravel().tolist())), 3):0{_DIGITS}x}"


def decode_game(state_id: str) -> Game:
    """The game of a string of :func:`encode_game`; ``ValueError`` unless it can be reached by playing."""
    digits = isinstance(state_id, str) and len(state_id) == _DIGITS and all(c in "0123456789abcdef" for c in state_id)
    if not digits:
        raise ValueError(f"state_id: expected {_DIGITS} hexadecimal digits in lower case; got {state_id!r}.")
    head, tokens = divmod(int(state_id, 16), _BOARDS)
    cells = [tokens // 3**place % 3 for place in reversed(range(NUM_ROWS * NUM_COLS))]
    board = np.array(cells, np.int8).reshape(NUM_ROWS, NUM_COLS)
    column = head % 8
    game = Game(1 + head // 16, bool(head // 8 % 2), None if column == _NO_COLUMN else column, board)
    problem = _problem(game)
    if problem is not None:
        raise ValueError(f"state_id: {state_id!r} is no position of a game: {problem}.")
    return game


def _problem(game: Game) -> str | None:
    """Why the game cannot be reached, or ``None``."""
    board, last_player = game.board, 3 - game.player
    occupied = board > 0
    surplus = int((board == 1).sum()) - int((board == 2).sum())
    if game.player not in (1, 2) or surplus != game.player - 1:
        return f"player {game.player} is to move, but player 1 has {surplus} tokens more than player 2"
    if (occupied[:-1] & ~occupied[1:]).any():
        return "a token floats above a free cell"
    if has_four(board, game.player):
        return f"player {game.player} is to move, but has connected four before"
    if game.done != (has_four(board, last_player) or bool(occupied.all())):
        return f"done is {game.done}, which the board denies"
    return _problem_of_last_column(game, occupied, last_player)


def _problem_of_last_column(game: Game, occupied: Bool[np.ndarray, "6 7"], last_player: int) -> str | None:
    if game.last_column is None:
        return "it has tokens, but no last column" if occupied.any() else None
    tokens = game.board[:, game.last_column][occupied[:, game.last_column]]
    if not tokens.size or tokens[0] != last_player:
        return f"player {last_player} moved last, but has no token on top of column {game.last_column}"
    before = game.board.copy()
    before[NUM_ROWS - tokens.size, game.last_column] = 0
    return "it was over before the last move" if has_four(before, last_player) else None
