import jax
import jax.numpy as jnp
import numpy as np

from triax.reward_tracing import Trajectory


def rollout(T=5, B=3):
    def step(carry, t):
        row = Trajectory(
            S=carry,
            A=jnp.zeros(B, int),
            logP=jnp.zeros(B),
            R=jnp.ones(B),
            terminated=t == jnp.arange(B),
            truncated=t == jnp.full(B, T - 1),
            S_next=carry + 1,
        )
        return carry + 1, row

    return jax.lax.scan(step, jnp.zeros(B), jnp.arange(T))[1]


def test_a_scan_stacks_steps_into_a_trajectory():
    trajectory = rollout()
    assert (trajectory.num_steps, trajectory.batch_size) == (5, 3)
    np.testing.assert_array_equal(trajectory.S[:, 0], range(5))
    assert trajectory.carry == ()
    assert trajectory.W is None


def test_an_episode_ends_for_either_reason():
    expected = np.zeros((5, 3), bool)
    expected[[0, 1, 2], [0, 1, 2]] = True
    expected[4] = True
    np.testing.assert_array_equal(rollout().done, expected)


def test_the_carry_is_a_leaf_without_time():
    trajectory = jax.tree.map(lambda leaf: leaf, rollout())
    with_carry = Trajectory(**{**vars(trajectory), "carry": {"h": jnp.zeros((3, 8))}})
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(with_carry)]
    assert paths == [".S", ".A", ".logP", ".R", ".terminated", ".truncated", ".S_next", ".carry['h']"]


def test_a_trajectory_prints_shapes_instead_of_numbers():
    row = np.zeros((7, 3), np.float32)
    text = repr(Trajectory(np.zeros((7, 3, 5), np.float32), row, row, row, row > 0, row > 0, np.zeros((7, 3, 5))))
    assert "S=array(shape=(7, 3, 5), dtype=float32" in text
    assert "gamma=0.99" in text
    assert len(text) < 1000
