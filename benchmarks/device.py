"""Whole training runs on the device beside programs written by hand, everything in one run; run it in .venv-extras.

    python benchmarks/device.py

PPO, DQN, SAC and sixteen seeds side by side, each as its own script measures it. The exit status says whether all
budgets are kept.
"""

import device_dqn
import device_ppo
import device_sac
import seeds


def main() -> bool:
    """Measure and tell; whether a budget is missed."""
    missed = [script.main([]) for script in (device_ppo, device_dqn, device_sac, seeds)]
    return any(missed)


if __name__ == "__main__":
    raise SystemExit(main())
