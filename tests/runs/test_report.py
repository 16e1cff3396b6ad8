import base64
import dataclasses
import io
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from triax.runs import Run, installed_versions, write_report, write_video

from .browser import needs_chromium, open_page


@dataclass(frozen=True)
class Agent:
    gamma: float = 0.97
    hidden: tuple[int, ...] = (8, 16)


@dataclass(frozen=True)
class Config:
    env: str = "<Maze> & more"
    algorithm: str = "dqn"
    seed: int = 4
    agent: Agent = dataclasses.field(default_factory=Agent)


class Page(HTMLParser):
    """Texts, tables and what is loaded of a page; an element that is not closed is an error."""

    VOID = {"meta", "img", "br", "link"}

    def __init__(self, path):
        super().__init__()
        self.texts, self.rows, self.loaded, self.attributes, self._open = [], [], [], [], []
        self.feed(path.read_text(encoding="utf-8"))
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.loaded += [(tag, value) for name, value in attrs if name in ("src", "href", "srcset", "data", "poster")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        self.texts.append(data)

    def files(self, tag):
        """Media type and content of what elements of this name show."""
        found = [value for name, value in self.loaded if name == tag]
        return [(uri[5:].split(";")[0], base64.b64decode(uri.split("base64,")[1])) for uri in found]


def frames(count=8):
    for i in range(count):
        picture = np.zeros((32, 48, 3), np.uint8)
        picture[:, : 4 * i] = (250, 20, 20)
        yield picture


def log_training(run, offset=0.0):
    for step in range(10, 210, 10):
        run.log(step, {"episode/return": offset + step / 10, "loss": 1 / step})
        if step % 50 == 0:
            run.log(step, {"eval/episode_reward/mean": 1.0 - abs(step - 150), "eval/episode_reward/std": step / 100})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "a"
    with Run.create(path, Config(), tensorboard=False) as run:
        run.begin_session(0, 300, 12.5)
        log_training(run)
        run.record_progress(200, "stopped")
    write_video(path / "video.mp4", frames(), fps=10)
    return Run.open(path)


@pytest.fixture(scope="module")
def page(run):
    assert write_report(run) == run.path / "report.html"
    return Page(run.path / "report.html")


def test_it_says_what_the_run_was_and_how_far_it_came(page):
    assert "dqn on <Maze> & more" in page.texts
    assert any(text.startswith("Stopped after 200 of 300 steps") for text in page.texts)
    for row in (["env", "<Maze> & more"], ["seed", "4"], ["agent.gamma", "0.97"], ["agent.hidden", "8, 16"]):
        assert row in page.rows
    assert any(row[:3] == ["0", "300", "12.5"] for row in page.rows)


def test_it_has_the_versions_and_all_evaluations(page):
    for name, version in installed_versions().items():
        assert [name, version] in page.rows
    evaluations = [[str(step), f"{1.0 - abs(step - 150):.2f}", f"{step / 100:.2f}"] for step in (50, 100, 150, 200)]
    begin = page.rows.index(["step", "mean return", "deviation"]) + 1
    assert page.rows[begin : begin + 4] == evaluations
    assert "Best mean return 1.00 at step 150; last -49.00." in page.texts


def test_it_needs_nothing_from_elsewhere(page):
    assert page.loaded and all(value.startswith("data:") for _, value in page.loaded)
    policy = [value for tag, _, value in page.attributes if tag == "meta" and value.startswith("default-src")]
    assert policy == ["default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"]
    assert not re.search(r"url\(|@import|<script", " ".join(page.texts))


def test_its_pictures_and_its_video_are_whole(page, run):
    pictures = page.files("img")
    assert [kind for kind, _ in pictures] == ["image/svg+xml"] * 2
    for _, content in pictures:
        assert ElementTree.fromstring(content).tag.endswith("svg")
    assert page.files("video") == [("video/mp4", (run.path / "video.mp4").read_bytes())]


def test_the_curve_is_that_of_the_metrics(run, monkeypatch):
    from matplotlib.figure import Figure

    figures, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **kw: (figures.append(self), save(self, *args, **kw)))
    write_report(run, run.path / "other" / "name.html")
    assert (run.path / "other" / "name.html").exists()
    curve, others = figures
    episodes = curve.axes[0].collections[0].get_offsets()
    np.testing.assert_allclose(episodes, [[step, step / 10] for step in range(10, 210, 10)])
    drawn = {axes.get_title(loc="left"): axes.lines[0].get_xydata() for axes in others.axes if axes.lines}
    assert list(drawn) == ["loss"]
    np.testing.assert_allclose(drawn["loss"], [[step, 1 / step] for step in range(10, 210, 10)])


def test_the_same_run_gives_the_same_page(run, tmp_path, monkeypatch):
    monkeypatch.setattr("time.strftime", lambda *args: "today")
    pages = [write_report(run, tmp_path / name).read_text() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]


def test_of_several_seeds_it_has_one_curve_with_its_spread(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    figures, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **kw: (figures.append(self), save(self, *args, **kw)))
    with Run.create(tmp_path / "a", Config(), tensorboard=False) as whole:
        log_training(whole)
        for seed, path in enumerate(whole.seed_paths([0, 1, 2])):
            with Run.create(path, Config(seed=seed), tensorboard=False) as part:
                part.log(10, {"eval/episode_reward/mean": float(seed)})
                part.log(20, {"eval/episode_reward/mean": 10.0 + seed})
    write_report(Run.open(tmp_path / "a"))
    lines = {line.get_label(): line.get_xydata().tolist() for line in figures[0].axes[0].lines}
    assert lines["mean over seeds (3 runs)"] == [[10, 1], [20, 11]]


def test_a_run_that_measured_nothing_yet_and_has_no_video_is_told(tmp_path):
    with Run.create(tmp_path / "a", Config(), tensorboard=False) as run:
        page = Page(write_report(run))
    assert "No episode has ended, and nothing was evaluated." in page.texts
    assert page.loaded == []
    assert ["jax", installed_versions()["jax"]] in page.rows


def test_a_run_that_is_begun_anew_loses_the_video_and_the_report_of_the_old_one(tmp_path):
    path = tmp_path / "a"
    with Run.create(path, Config(), tensorboard=False) as run:
        write_video(path / "video.gif", frames(), fps=10)
        assert Page(write_report(run)).files("img")[0][0] == "image/gif"
    with Run.create(path, Config(), tensorboard=False, overwrite=True) as run:
        assert run.video is None
        assert not (path / "report.html").exists()


@needs_chromium
def test_chromium_shows_the_pictures_and_plays_the_video(run, tmp_path):
    """The page itself forbids scripts; a copy without that rule has one that says what the browser made of it."""
    path = write_report(run)
    text, found = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", path.read_text())
    assert found == 1
    script = """<script>
    addEventListener("load", async () => {
        const video = document.querySelector("video");
        if (video.readyState < 1)
            await new Promise(go => { video.onloadedmetadata = video.onerror = go; video.load(); });
        const widths = [...document.images].map(image => image.complete && image.naturalWidth > 0);
        document.body.append(`saw ${JSON.stringify({widths, seconds: video.duration, width: video.videoWidth})}`);
    });</script></html>"""
    (tmp_path / "copy.html").write_text(text.replace("</html>", script))
    seen = open_page(tmp_path / "copy.html", tmp_path / "profile", "--dump-dom")
    assert 'saw {"widths":[true,true],"seconds":0.8,"width":48}' in seen


@needs_chromium
def test_chromium_draws_the_page_as_it_is(run, tmp_path):
    shot = tmp_path / "shot.png"
    open_page(write_report(run), tmp_path / "profile", "--window-size=900,1400", f"--screenshot={shot}")
    pixels = np.asarray(Image.open(io.BytesIO(shot.read_bytes())).convert("RGB")).astype(int)
    for colour in ((0x25, 0x63, 0xA8), (0xD9, 0x48, 0x0F), (0x1F, 0x29, 0x33)):  # episodes, evaluations, text
        assert (np.abs(pixels - colour).max(axis=-1) <= 3).sum() > 50
