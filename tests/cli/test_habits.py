"""What any command line tool is expected to do: help, completion, codes, output that others can read."""

import re
import subprocess

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
    ],
)
def test_bash_completes_commands_algorithms_and_options(typed, offered, completion):
    words = " ".join(["triax", *typed])
    script = f"""source {completion}
COMP_WORDS=({words}); COMP_CWORD={len(typed)}
$(complete -p triax | sed 's/.*-F \\([^ ]*\\).*/\\1/')
echo "${{COMPREPLY[*]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == offered


@pytest.fixture(scope="module")
def completion(tmp_path_factory):
    """The file that the README says to write."""
    path = tmp_path_factory.mktemp("completion") / "triax"
    assert not run("--tyro-write-completion", "bash", path)
    return path


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
