import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.envs.connect_four_game import decode_game, encode_game, free_columns, has_four, new_game, play

DRAW = [5, 5, 5, 0, 5, 4, 4, 6, 6, 3, 5, 1, 3, 5, 2, 1, 2, 3, 0, 4, 1]
DRAW += [4, 3, 0, 2, 2, 2, 1, 0, 0, 0, 2, 1, 6, 1, 3, 4, 4, 3, 6, 6, 6]


def play_all(columns):
    game = new_game()
    for column in columns:
        game = play(game, column)
    return game


def random_game(seed, most_moves=42):
    rng = np.random.default_rng(seed)
    game = new_game()
    for _ in range(rng.integers(most_moves + 1)):
        if game.done:
            break
        game = play(game, int(rng.choice(np.flatnonzero(free_columns(game.board)))))
    return game


def has_four_by_search(board, player):
    """From each cell, walk in each direction."""
    rows, columns = board.shape
    for row in range(rows):
        for column in range(columns):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                cells = [(row + k * down, column + k * right) for k in range(4)]
                inside = all(0 <= i < rows and 0 <= j < columns for i, j in cells)
                if inside and all(board[cell] == player for cell in cells):
                    return True
    return False


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 0.5, 0.7]))
def test_four_are_found_wherever_a_search_finds_them(seed, density):
    board = (np.random.default_rng(seed).random((6, 7)) < density).astype(np.int8)
    assert has_four(board, 1) == has_four_by_search(board, 1)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_games_come_back_from_their_strings(seed):
    game = random_game(seed)
    state_id = encode_game(game)
    again = decode_game(state_id)
    assert len(state_id) == 20 and again[:3] == game[:3]
    np.testing.assert_array_equal(again.board, game.board)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_playing_keeps_the_rules(seed):
    game = random_game(seed, most_moves=30)
    if game.done:
        return
    for column in np.flatnonzero(free_columns(game.board)):
        after = play(game, int(column))
        (row,) = np.flatnonzero(after.board[:, column] != game.board[:, column])
        assert after.board[row, column] == game.player
        assert (after.board[row + 1 :, column] > 0).all() and not after.board[:row, column].any()
        assert after.player == 3 - game.player and after.last_column == column
        assert after.done == has_four_by_search(after.board, game.player) or after.board.all()


def test_a_full_board_without_four_is_over():
    assert not play_all(DRAW[:-1]).done
    last = play_all(DRAW)
    assert last.done and last.board.all() and not has_four(last.board, 1) and not has_four(last.board, 2)


def forged(**changes):
    return encode_game(play_all([3, 3, 4])._replace(**changes))


def board_with(**cells):
    board = play_all([3, 3, 4]).board.copy()
    for name, token in cells.items():
        board[int(name[1]), int(name[2])] = token
    return board


@pytest.mark.parametrize(
    ("state_id", "why"),
    [
        ("", "20 hexadecimal digits"),
        ("X" * 20, "20 hexadecimal digits"),
        ("0" * 19, "20 hexadecimal digits"),
        ("f" * 20, "tokens more"),
        (forged(player=1), "player 1 is to move, but player 1 has 1 tokens more"),
        (forged(done=True), "done is True, which the board denies"),
        (forged(last_column=None), "it has tokens, but no last column"),
        (forged(last_column=0), "player 1 moved last, but has no token on top of column 0"),
        (forged(last_column=3), "player 1 moved last, but has no token on top of column 3"),
        (forged(board=board_with(c54=0, c04=1)), "floats"),
        (encode_game(play_all([0, 1, 0, 1, 0, 1, 0])._replace(done=False)), "done is False"),
        (encode_game(play(play_all([0, 1, 0, 1, 0, 1, 0]), 1)), "has connected four before"),
        (encode_game(play(play(play_all([0, 1, 0, 1, 0, 1, 0]), 2), 0)), "over before the last move"),
    ],
)
def test_what_no_game_reaches_is_refused_with_the_reason(state_id, why):
    with pytest.raises(ValueError, match=why):
        decode_game(state_id)
