import signal
import subprocess
import sys
from pathlib import Path

from algorithms.killable_ppo import ENDLESS
from algorithms.small import ENV, assert_same, recurrent_net, weights_of
from triax.algorithms import load_checkpoint, train_ppo

SCRIPT = Path(__file__).with_name("killable_ppo.py")


def test_a_training_killed_in_mid_run_goes_on_bit_for_bit(tmp_path):
    """SIGKILL some time after the second checkpoint; a fresh network and process go on from what is whole."""
    process = subprocess.Popen([sys.executable, str(SCRIPT), str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["0\n", "40\n"]
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    checkpoint = load_checkpoint(tmp_path)
    assert checkpoint["step"] >= 40
    total = checkpoint["step"] + 60
    resumed, unbroken = recurrent_net(7), recurrent_net()
    found = train_ppo(ENV, resumed, ENDLESS, total_steps=total, initial_state=checkpoint["training_state"])
    expected = train_ppo(ENV, unbroken, ENDLESS, total_steps=total)
    assert_same(found.training_state.loop, expected.training_state.loop)
    assert_same(weights_of(resumed), weights_of(unbroken))
    assert found.total_iterations == expected.total_iterations
