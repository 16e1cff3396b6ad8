"""A command that SIGKILL strikes: ``python killable_run.py in-step STEP ARGUMENT...``, or ``while-writing COUNT``.

``in-step``: inside that step of the agent; ``while-writing``: where the state of that number, from 1, is complete but
for its name. States are written at each episode end.
"""

import os
import signal
import sys


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def strike_in_step(step):
    from triax.agents import DQN

    observe = DQN.observe

    def observed(self, *arguments):
        result = observe(self, *arguments)
        if self.step == step:
            kill()
        return result

    DQN.observe = observed


def strike_while_writing(count):
    from triax.runs import checkpoints

    rename, written = checkpoints.os.rename, 0

    def renamed(source, target):
        nonlocal written
        written += "/states/." in str(source) and str(source).endswith(".tmp")
        if written == count:
            kill()
        rename(source, target)

    checkpoints.os.rename = renamed


def main(where, number, arguments):
    from triax.cli import main
    from triax.runs import states

    states.WRITING_SHARE = 1e9
    {"in-step": strike_in_step, "while-writing": strike_while_writing}[where](number)
    main(arguments)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
