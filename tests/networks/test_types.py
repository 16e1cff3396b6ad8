"""Outputs as pytrees."""

import copy
from dataclasses import FrozenInstanceError, dataclass, field

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.networks import JaxDataclass, StatefulModuleOutput


class Pair(JaxDataclass):
    left: object
    right: object = None


class Triple(Pair):
    last: object = 3.0


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True)
class Decorated(JaxDataclass):
    """As contract section 2 writes them."""

    left: object
    right: object = None
    notes: dict = field(default_factory=dict)


def test_a_class_may_be_decorated_and_registered_by_hand_too():
    leaves, treedef = jax.tree.flatten(Decorated(1.0, [2.0]))
    assert leaves == [1.0, 2.0] and treedef.unflatten(leaves) == Decorated(1.0, [2.0])
    assert Decorated(1.0).notes == {} and Decorated(1.0).notes is not Decorated(1.0).notes
    assert Decorated(1.0).replace(left=3.0) == Decorated(3.0)
    with pytest.raises(FrozenInstanceError):
        Decorated(1.0).left = 2.0  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("cls", [Pair, Decorated])
def test_copies_and_pickles_are_pytrees_too(cls):
    for twin in (copy.deepcopy(cls(1.0, 2.0)), cloudpickle.loads(cloudpickle.dumps(cls(1.0, 2.0)))):
        assert jax.tree.leaves(twin) == [1.0, 2.0]


def test_every_field_is_a_child_with_its_name_in_the_path():  # F58
    leaves, treedef = jax.tree_util.tree_flatten_with_path(Pair({"a": 1.0}, [2.0]))
    assert [jax.tree_util.keystr(path) for path, _ in leaves] == [".left['a']", ".right[0]"]
    assert treedef == jax.tree.structure(Pair({"a": 5}, [6])) != jax.tree.structure(Triple({"a": 5}, [6]))
    out = StatefulModuleOutput((), jnp.ones(2), 0.0, {"m": 1.0})
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(out)]
    assert paths == [".output", ".regularization_loss", ".metrics['m']"]


def test_errors_of_jax_name_the_field():  # F58
    with pytest.raises(ValueError, match=r"\.right"):
        jax.vmap(lambda pair: pair)(Pair(jnp.ones(2), jnp.ones(3)))


def test_what_a_tree_is_besides_its_leaves_hashes():  # F58: static, hence no second compilation
    treedef = jax.tree.structure(Pair(1.0, 2.0))
    assert hash(treedef) == hash(jax.tree.structure(Pair(3.0, 4.0)))
    _, names = Triple(1.0).tree_flatten()
    assert names == ("left", "right", "last") and isinstance(names, tuple)
    traces = []
    double = jax.jit(lambda pair: (traces.append(1), jax.tree.map(lambda x: 2 * x, pair))[1])
    for n in (1.0, 2.0):
        assert double(Pair(jnp.float32(n))).left == 2 * n
    assert len(traces) == 1


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda f: jax.jit(jax.grad(lambda p: f(p).left.sum()))])
def test_passes_through_transformations(transform):
    out = transform(lambda pair: pair.replace(left=pair.left * pair.left))(Triple(jnp.arange(3.0), None, jnp.ones(3)))
    assert type(out) is Triple and out.right is None and out.left.shape == (3,)


def test_is_frozen_and_replaced_by_name():
    pair = Pair(1, 2)
    with pytest.raises(AttributeError):
        pair.left = 5  # pyright: ignore[reportAttributeAccessIssue]
    assert (pair.replace(right=7), pair.right, pair) == (Pair(1, 7), 2, Pair(1, 2))
    with pytest.raises(TypeError, match="middle"):
        pair.replace(middle=3)
    with pytest.raises(TypeError):
        Pair()  # pyright: ignore[reportCallIssue]


def test_is_rebuilt_with_anything_in_its_fields():  # as jax does with placeholders
    treedef = jax.tree.structure(Pair(1.0, (2.0, 3.0)))
    assert treedef.unflatten([None, object, ...]) == Pair(None, (object, ...))
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), Pair(1.0, 2.0), Pair(3.0, 4.0))
    np.testing.assert_array_equal(stacked.right, [2, 4])
