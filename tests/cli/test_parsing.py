"""What is misspelt is told with what was meant, of the command that was called."""

import re

import pytest

from triax.cli import parsing
from triax.cli.commands import Arguments, Train

from .running import run

COMMANDS = parsing._choices(Arguments, "triax")
ALGORITHMS = parsing._choices(Train, "algorithm")
PROGRAMS = {(name,): command for name, command in COMMANDS.items() if name != "train"}
PROGRAMS |= {("train", name): command for name, command in ALGORITHMS.items()}


def said(capsys, *arguments):
    assert run(*arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["train", "dqn", "CartPole-v1", "--stepps", "3"], "--total-steps or --epsilon-steps"),
        (["train", "ppo", "CartPole-v1", "--total-stps=3"], "--total-steps"),
        (["train", "ppo", "CartPole-v1", "--lr", "1e-3"], "--learning-rate"),
        (["train", "dqn", "CartPole-v1", "--no-dubble"], "--no-double"),
        (["train", "dqn", "CartPole-v1", "-seed", "3"], "--seed"),
        (["train", "dqn", "--gama", "1.0"], "--gamma"),
        (["resume", "a", "--stepps", "3"], "--steps"),
        (["plot", "--metrc", "loss", "runs/a"], "--metric"),
    ],
)
def test_a_misspelt_option_is_told_with_those_of_the_command_that_was_called(typed, meant, capsys):
    assert f"did you mean {meant}? All options: triax {typed[0]}" in said(capsys, *typed)


def test_every_option_of_every_command_with_a_letter_less_is_told_with_itself(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for words, command in PROGRAMS.items():
        options = [option for option in parsing._options_of(command) if len(option) > 5]
        for option in options:
            mistyped = option[:-2] + option[-1]
            meant = parsing._meant(mistyped, options)
            assert option in meant, (words, mistyped, meant)


@pytest.mark.parametrize("columns", ["30", "80", "150", "300"])
def test_the_options_of_a_command_are_found_at_any_width(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    for command in (ALGORITHMS["ppo"], COMMANDS["resume"]):
        found = set(parsing._options_of(command))
        fields = {f"--{name.replace('_', '-')}" for name in vars(command)["__dataclass_fields__"]}
        assert fields - {"--env", "--run", "--agent", "--algorithm"} <= found


def test_an_option_that_resembles_none_is_told_with_no_other(capsys):
    err = said(capsys, "train", "dqn", "CartPole-v1", "--xyzzy", "3", "--stop-at", "-inf")
    assert err == "triax train dqn: unknown option --xyzzy. All options: triax train dqn --help\n"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("pppo", "ppo"), ("PPO", "ppo"), ("qlearning", "q-learning"), ("qrdqn", "qr-dqn"), ("rienforce", "reinforce")],
)
def test_a_misspelt_algorithm_is_told_with_the_one_meant_and_all(typed, meant, capsys):
    err = said(capsys, "train", typed, "CartPole-v1")
    assert err.startswith(f"triax train: unknown algorithm {typed!r}: did you mean {meant}? Algorithms are dqn, ")
    assert all(re.search(rf"\b{name}\b", err) for name in ALGORITHMS)


@pytest.mark.parametrize(
    ("typed", "meant"), [("trian", "train"), ("tr", "train"), ("lst", "list"), ("evalute", "evaluate")]
)
def test_a_misspelt_command_is_told_with_the_one_meant_and_all(typed, meant, capsys):
    err = said(capsys, typed, "ppo", "CartPole-v1")
    assert err.startswith(f"triax: unknown command {typed!r}: did you mean {meant}? Commands are train, resume, ")
    assert all(re.search(rf"\b{name}\b", err) for name in COMMANDS)


def test_an_option_before_the_command_or_algorithm_is_told_to_stand_behind_it(capsys):
    assert "triax: expected a command before --seed. Commands are" in said(capsys, "--seed", "3", "train", "ppo")
    assert "triax train: expected an algorithm before --seed. " in said(capsys, "train", "--seed", "3", "ppo")
