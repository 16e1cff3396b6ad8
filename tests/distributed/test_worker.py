"""The base class for agents of one's own, in threads and in Ray."""

import threading

import gymnasium
import jax
import numpy as np
import pytest
import ray

from triax.distributed import Worker
from triax.experience_replay import SimpleReplayBuffer
from triax.wrappers import TrainMonitor

from .batches import numbered
from .workers import QWorker


class Counting(Worker):
    """Remembers what it was told; its state is one number."""

    def __init__(self, env="CartPole-v1", **options):
        super().__init__(env, pi=self.act, **options)
        self.state, self.set, self.given, self.traced = np.zeros(1), 0, 0, []

    def act(self, s, return_logp=False):
        return 1, -0.5

    def get_state(self):
        self.given += 1
        return self.state

    def set_state(self, state):
        self.set += 1
        self.state = state

    def trace(self, s, a, r, done, logp=0.0, w=1.0):
        self.traced.append((r, done, logp))

    def learn(self, transition_batch):
        self.state = self.state + 1
        return {"loss": 1.0}


class Telling(Counting):
    def trace(self, s, a, r, done, logp=0.0, w=1.0, *, truncated=False, s_next=None):
        self.traced.append((done, truncated, s_next))


def test_weights_travel_once_for_each_version():
    store = Counting()
    one, other = Counting(param_store=store), Counting(param_store=store)
    for _ in range(3):
        one.pull_state()
    assert (one.set, store.given) == (1, 1)
    one.state = np.full(1, 7.0)
    one.push_state()
    for _ in range(3):
        one.pull_state()
        other.pull_state()
    assert (one.set, other.set) == (1, 1)  # its own version does not come back
    assert other.state == store.state == 7.0


def test_steps_of_many_threads_are_all_counted():
    store = Counting()
    workers = [Counting(param_store=store) for _ in range(8)]
    threads = [threading.Thread(target=lambda w=w: [w._store.ask("progress", 1) for _ in range(500)]) for w in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.env.T == store.pull_getattr("env.T") == 4_000


def test_a_rollout_is_an_episode_and_a_trace_that_knows_one_flag_is_told_of_its_end():
    store = Counting()
    worker = Counting(param_store=store)
    worker.rollout()
    assert len(worker.traced) == worker.env.T
    assert [done for _, done, _ in worker.traced] == [False] * (len(worker.traced) - 1) + [True]
    assert {logp for _, _, logp in worker.traced} == {-0.5}


def test_termination_and_truncation_are_told_apart_to_a_trace_that_asks():
    fallen, cut = Telling(), Telling(gymnasium.make("CartPole-v1", max_episode_steps=3))
    for worker in (fallen, cut):
        worker.rollout()
    assert fallen.traced[-1][:2] == (True, False)
    assert [step[:2] for step in cut.traced] == [(False, False), (False, False), (False, True)]
    assert cut.traced[0][2].shape == (4,)


def test_loops_end_at_the_limit_of_all_workers_together_at_the_threshold_or_when_stopped():
    store = Counting()
    first, second = Counting(param_store=store), Counting(param_store=store)
    first.rollout_loop(50, reward_threshold=np.inf)
    assert 50 <= store.env.T == first.env.T < 70
    second.rollout_loop(50)
    assert second.env.T == 0
    second.rollout_loop(10_000, reward_threshold=1.0)
    assert second.env.ep == 1
    store.stop()
    second.rollout_loop(10_000, reward_threshold=np.inf)
    assert second.env.ep == 1


def test_a_threshold_below_zero_is_not_met_before_an_episode():
    worker = Counting(param_store=Counting())
    worker.rollout_loop(10_000, reward_threshold=-100.0)
    assert worker.env.ep == 1


def test_a_learner_that_fails_stops_the_workers_and_one_without_enough_waits_until_it_is_stopped():
    class Broken(Counting):
        def learn(self, transition_batch):
            raise ArithmeticError("diverged")

    store = QWorker()
    filler = QWorker(param_store=store)
    waiting = threading.Thread(target=filler.learn_loop, args=(10_000,))
    waiting.start()
    while store.buffer_len() < 50:
        filler.rollout()
    store.stop()
    waiting.join(30)
    assert not waiting.is_alive()
    store._stopped = False
    with pytest.raises(ArithmeticError, match="diverged"):
        Broken(param_store=store).learn_loop(10_000)
    assert store.progress(0)[1]


def test_a_worker_that_fails_stops_the_learner_that_would_wait_for_its_steps():
    class Broken(QWorker):
        def trace(self, *args, **options):
            raise ArithmeticError("fell over")

    store = QWorker()
    learner, actor = QWorker(param_store=store), Broken(param_store=store)
    waiting = threading.Thread(target=learner.learn_loop, args=(10_000,))
    waiting.start()
    with pytest.raises(ArithmeticError, match="fell over"):
        actor.rollout_loop(10_000)
    waiting.join(30)
    assert not waiting.is_alive()


def test_what_is_missing_or_cannot_be_is_named_before_anything_is_waited_for():
    worker = Counting(param_store=Counting())
    for call in (
        worker.buffer_len,
        lambda: worker.buffer_add(None),
        lambda: worker.buffer_update([0], [1.0]),
        lambda: worker.learn_loop(10),
        worker.buffer_sample,
    ):
        with pytest.raises(ValueError, match="the parameter store has no buffer"):
            call()
    worker.pi = None
    with pytest.raises(ValueError, match="no pi to act with"):
        worker.rollout()
    with pytest.raises(ValueError, match="batch_size must be at least 1; got 0"):
        QWorker(param_store=QWorker()).buffer_sample(0)
    with pytest.raises(TypeError, match="metric 'loss' must be a scalar"):
        worker.push_metrics({"loss": np.zeros(3)})


@pytest.mark.parametrize("returned", [None, {"loss": np.zeros(3)}])
def test_what_learn_returns_is_a_dict_of_scalars(returned):
    store = Counting(buffer=SimpleReplayBuffer(10, random_seed=0))
    store.buffer.add(numbered(0, 8))
    learner = Counting(param_store=store)
    learner.learn = lambda batch: returned
    with pytest.raises(TypeError, match=r"Worker\.learn: .* scalar"):
        learner.learn_loop(10_000, batch_size=4)


def test_acting_and_learning_side_by_side_in_threads():
    store = QWorker()
    actor, learner = QWorker(param_store=store), QWorker(param_store=store)
    thread = threading.Thread(target=learner.learn_loop, args=(1200, 16))
    thread.start()
    actor.rollout_loop(1200, reward_threshold=np.inf)
    thread.join(60)
    assert not thread.is_alive()
    assert store.buffer_len() == store.env.T == actor.env.T >= 1200
    assert learner.updates > 0
    assert store.buffer.beta == 0.5
    assert "throughput/learn_loop" in store.pull_metrics()
    actor.pull_state()
    for own, learned in zip(jax.tree.leaves(actor.q.params), jax.tree.leaves(learner.q.params), strict=True):
        np.testing.assert_array_equal(own, learned)


def test_the_stores_buffer_gets_errors_only_if_it_takes_them():
    store = Counting()
    store.buffer = SimpleReplayBuffer(10, random_seed=0)
    donor = QWorker()
    donor.rollout()
    worker = Counting(param_store=store)
    batch = donor.buffer.sample(4)
    worker.buffer_add(batch, Adv=np.ones(4))
    assert worker.buffer_len() == 4
    assert worker.buffer_sample(batch_size=2).batch_size == 2


def test_attributes_of_the_store_by_dotted_names():
    worker = Counting(param_store=Counting(name="s"))
    worker.push_setattr("env.smoothing", 3)
    assert worker.pull_getattr("env.smoothing") == 3
    assert worker.pull_getattr("buffer.beta", 0.25) == 0.25
    with pytest.raises(AttributeError):
        worker.pull_getattr("buffer.beta")


def test_what_cannot_be_a_worker_is_refused():
    with pytest.raises(TypeError, match="env must be"):
        Counting(3)
    with pytest.raises(ValueError, match="max_episode_steps"):
        Counting(gymnasium.envs.classic_control.CartPoleEnv())
    with pytest.raises(TypeError, match="param_store must be"):
        Counting(param_store="store")
    with pytest.raises(AssertionError, match="nobody to pull from"):
        Counting().pull_state()
    with pytest.raises(AssertionError, match="nobody to push to"):
        Counting().push_state()
    monitored = TrainMonitor(gymnasium.make("CartPole-v1"))
    assert Counting(monitored).env is monitored
    assert isinstance(Counting(lambda: gymnasium.make("CartPole-v1")).env, TrainMonitor)


@pytest.mark.usefixtures("cluster")
def test_ray_actors_play_the_same_roles_until_the_store_is_stopped():
    remote = ray.remote(num_cpus=1)(QWorker)
    store = remote.remote()
    learner, actor = remote.remote("CartPole-v1", store), remote.remote("CartPole-v1", store)
    loops = [learner.learn_loop.remote(10**9, 16), actor.rollout_loop.remote(10**9, np.inf)]
    while "throughput/learn_loop" not in ray.get(store.pull_metrics.remote()):
        assert not ray.wait(loops, timeout=0.05)[0]
    ray.get([store.stop.remote(), *loops])
    counted, own = ray.get([store.pull_getattr.remote("env.T"), actor.pull_getattr.remote("env.T")])
    assert counted == own >= 50
    assert ray.get(store.buffer_len.remote()) == min(counted, 10_000)
    assert ray.get(store.pull_getattr.remote("buffer.beta")) == 0.5
    learned, kept = ray.get([learner.state_numbers.remote(), store.state_numbers.remote()])
    for ours, theirs in zip(learned, kept, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for handle in (store, learner, actor):
        ray.kill(handle)
