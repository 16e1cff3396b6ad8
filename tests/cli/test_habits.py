"""What any command line tool is expected to do: help, completion, codes, output that others can read."""

import ast
import os
import re
import subprocess
import sys

import pytest

from .running import run

COMMANDS = ["train", "resume", "evaluate", "video", "plot", "report", "list"]
ALGORITHMS = ["dqn", "q-learning", "qr-dqn", "c51", "sac", "td3", "ddpg", "ppo", "a2c", "reinforce"]


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def options_of(help_text):
    """What is said of each option: its lines, without borders."""
    entries = []
    for line in plain(help_text).splitlines():
        line = line.strip("│ ")
        if re.match(r"--?\w", line):
            entries.append(line)
        elif entries and line and not re.match(r"[╭╰─]", line):
            entries[-1] += f" {line}"
    return entries


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS), *(["train", name] for name in ALGORITHMS)])
def test_help_explains_each_option_and_exits_with_0(arguments, capsys):
    assert run(*arguments, "--help") == 0
    out = plain(capsys.readouterr().out)
    assert out.startswith(f"usage: {' '.join(['triax', *arguments])} ")
    options = options_of(out)
    assert any(option.startswith("-h, --help") for option in options)
    for option in options:
        said = re.sub(r"\{.*?\}|\(default.*", "", option)
        assert re.search(r"[a-z]{2,},? \w", said), f"{option!r} is not explained"


def test_all_commands_and_algorithms_are_in_the_help(capsys):
    for arguments, names in (([], COMMANDS), (["train"], ALGORITHMS)):
        run(*arguments, "--help")
        out = plain(capsys.readouterr().out)
        assert [name for name in names if not re.search(rf"• {name} ", out)] == []


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["tr"], ["train"]),
        (["re"], ["report", "resume"]),
        (["train", "d"], ["ddpg", "dqn"]),
        (["train", "dqn", "CartPole-v1", "--total"], ["--total-steps"]),
        (["train", "sac", "CartPole-v1", "--wor"], ["--workers"]),
        (["train", "sac", "CartPole-v1", "--alg"], []),
        (["plot", "--spread", ""], ["bootstrap", "std", "range"]),
        (["resume", "runs/fir"], ["runs/first"]),
    ],
)
def test_bash_completes_commands_algorithms_options_values_and_runs(typed, offered, completion, tmp_path):
    (tmp_path / "runs" / "first").mkdir(parents=True)
    words = " ".join(["triax", *(word or "''" for word in typed)])
    script = f"""source {completion}
COMP_WORDS=({words}); COMP_CWORD={len(typed)}
$(complete -p triax | sed 's/.*-F \\([^ ]*\\).*/\\1/')
echo "${{COMPREPLY[*]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == offered


@pytest.fixture(scope="module")
def completion(tmp_path_factory):
    """The file that the README says to write."""
    path = tmp_path_factory.mktemp("completion") / "triax"
    assert not run("--tyro-write-completion", "bash", path)
    return path


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_tells_each_option_that_the_help_has_in_one_line_and_no_other(shell, capsys):
    assert not run("--tyro-print-completion", shell)
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("COMPLETION_SPEC"))
    spec = ast.literal_eval(line.partition(" = ")[2])
    assert set(spec["subcommands"]) == set(COMMANDS)
    for name, command in (spec["subcommands"] | spec["subcommands"]["train"]["subcommands"]).items():
        run(*(() if name in COMMANDS else ("train",)), name, "--help")
        helped = set(re.findall(r"--[a-z][\w-]*", plain(capsys.readouterr().out)))
        offered = {flag for option in command["options"] for flag in option["flags"] if flag != "-h"}
        assert offered <= helped
        told = [command["description"], *(option["description"] for option in command["options"])]
        assert [text for text in told if not text or text == name or re.search(r"\s\s|\n|%%|``", text)] == []


def test_completion_of_an_unknown_shell_is_refused_with_those_that_are_known(capsys):
    assert run("--tyro-print-completion", "ksh") == 2
    assert capsys.readouterr().err == "triax --tyro-print-completion: expected one of bash, zsh, fish; got 'ksh'.\n"


def test_help_that_is_cut_off_by_its_reader_ends_without_a_traceback():
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "triax_command", "train", "dqn", "--help"]
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_value_that_is_refused_is_told_once(capsys):
    assert run("train", "dqn", "CartPole-v1", "--gamma", "2") == 2
    assert plain(capsys.readouterr().err).count("gamma must be in [0, 1]; got 2.0") == 1


def test_a_missing_extra_is_told_with_pip_and_not_with_a_folder(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "gymnax", None)
    assert run("train", "ppo", "gymnax:CartPole-v1", "--run-dir", tmp_path / "a") == 1
    said = capsys.readouterr().err
    assert "pip install 'triax[gymnax]'" in said and "PYTHONPATH" not in said


@pytest.mark.parametrize(
    ("arguments", "code"),
    [((), 2), (("train",), 2), (("train", "dqn", "X-v0", "--seed", "-1"), 2), (("report", "/nowhere"), 1)],
)
def test_exit_codes_are_those_of_the_readme_and_errors_go_to_stderr(arguments, code, capsys):
    assert run(*arguments) == code
    said = capsys.readouterr()
    assert said.out == "" and said.err and "Traceback" not in said.err


def test_what_is_piped_has_no_colours_bars_or_control_characters(tmp_path, capsys):
    arguments = ["train", "dqn", "cli.envs:Strip-v0", "--hidden", "4", "--total-steps", "80", "--eval-every", "40"]
    assert run(*arguments, "--eval-episodes", "2", "--learning-starts", "200", "--run-dir", tmp_path / "a") == 0
    out = capsys.readouterr().out
    assert re.findall(r"[\x00-\x09\x0b-\x1f]|━", out) == []
    assert len([line for line in out.splitlines() if "steps/s" in line]) == 1
