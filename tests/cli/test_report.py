from .running import run


def test_a_run_is_put_on_one_page(strips, tmp_path, capsys):
    out = tmp_path / "new" / "page.html"
    assert run("report", strips / "b", "--out", out) == 0
    said = capsys.readouterr().out
    assert f"Report: {out}" in said
    assert f"triax video {strips / 'b'}" in said
    page = out.read_text()
    assert "dqn on cli.envs:Strip-v0" in page
    assert "<td>agent.gamma</td><td>0.5</td>" in page


def test_the_page_is_put_into_the_run_with_its_video(strips, capsys):
    assert run("video", strips / "a" / "0", "--out", strips / "a" / "0" / "video.gif") == 0
    assert run("report", strips / "a" / "0") == 0
    assert "Without a video" not in capsys.readouterr().out
    assert "data:image/gif;base64," in (strips / "a" / "0" / "report.html").read_text()


def test_what_is_no_run_is_said(tmp_path, capsys):
    assert run("report", tmp_path) == 1
    assert "holds no run" in capsys.readouterr().err
