"""TD learning: rules that train value functions towards bootstrapped targets."""

from triax.td_learning.base import TDRule
from triax.td_learning.clipped_double_q_learning import ClippedDoubleQLearning, SoftClippedDoubleQLearning
from triax.td_learning.q_learning import DoubleQLearning, QLearning, SoftQLearning
from triax.td_learning.sarsa import ExpectedSarsa, Sarsa
from triax.td_learning.simple_td import SimpleTD

__all__ = [
    "ClippedDoubleQLearning",
    "DoubleQLearning",
    "ExpectedSarsa",
    "QLearning",
    "Sarsa",
    "SimpleTD",
    "SoftClippedDoubleQLearning",
    "SoftQLearning",
    "TDRule",
]
