"""Once made, an object takes no new public attributes; its classes may set what they like before."""

import pytest

from triax.core.sealed import Sealed


class Base(Sealed):
    made_of = frozenset({"compiled"})

    def __init__(self):
        self.plain, self.compiled = 1, 2

    @property
    def read_only(self):
        return 1

    @property
    def checked(self):
        return self._checked

    @checked.setter
    def checked(self, value):
        self._checked = value


class Derived(Base):
    def __init__(self):
        super().__init__()
        self.own = 2


def test_a_new_public_attribute_is_refused_and_the_right_ones_are_named():
    made = Derived()
    with pytest.raises(AttributeError, match=r"Derived has no attribute 'chekced'.*: checked, own, plain\."):
        made.chekced = 1
    assert not hasattr(made, "chekced")


def test_attributes_that_it_has_and_private_ones_may_be_assigned():
    made = Derived()
    made.plain, made.own, made.checked, made._anything = 5, 6, 7, 8
    assert (made.plain, made.own, made.checked, made._anything) == (5, 6, 7, 8)
    with pytest.raises(AttributeError):
        made.read_only = 1


def test_what_it_is_made_of_stays():
    made = Derived()
    with pytest.raises(AttributeError, match=r"Derived\.compiled stays as it was made.*: checked, own, plain\."):
        made.compiled = 1
    assert made.compiled == 2
