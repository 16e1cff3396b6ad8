"""A training with PPO, to be killed: ``python killable_ppo.py DIRECTORY``; it prints the step of each checkpoint."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from dataclasses import replace

from algorithms.small import CONFIG, ENV, recurrent_net
from triax.algorithms import EvalConfig, make_checkpoint_fn, train_ppo

ENDLESS = replace(
    CONFIG, ppo=replace(CONFIG.ppo, total_steps=10**9), eval=EvalConfig(enabled=False), checkpoint_every_steps=40
)


def main(directory):
    save = make_checkpoint_fn(directory, keep=3)

    def checkpoint(state, step):
        save(state, step)
        print(step, flush=True)

    train_ppo(ENV, recurrent_net(), ENDLESS, checkpoint_fn=checkpoint)


if __name__ == "__main__":
    main(sys.argv[1])
