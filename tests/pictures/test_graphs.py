import numpy as np
import pytest
from flax import nnx
from matplotlib.colors import same_color
from matplotlib.patches import FancyArrowPatch

from triax.networks import PopulationGraph
from triax.pictures import draw_graph, new_axes
from triax.pictures.graphs import lay_out


@pytest.fixture
def brain():
    graph = PopulationGraph(nnx.Rngs(0))
    graph.add_input("eye", 3)
    graph.add_population("v1", 8, activation=nnx.tanh)
    graph.add_population("cortex", 16)
    graph.add_output("hand", 2)
    graph.connect("eye", "v1")
    graph.connect("v1", "cortex")
    graph.connect("cortex", "v1", delay=2)
    graph.connect("cortex", "cortex", delay=1)
    graph.connect("cortex", "hand")
    graph.connect("cortex", "hand", delay=1)
    graph.finalize()
    return graph


def test_connections_lead_to_the_right_save_those_that_close_a_loop(brain):
    places = lay_out(brain)
    assert list(places) == ["eye", "v1", "cortex", "hand"]
    back = {edge.name for edge in brain.edges if places[edge.dst][0] <= places[edge.src][0]}
    assert back == {"cortex->v1@2", "cortex->cortex@1"}
    assert len(set(places.values())) == 4


def test_populations_of_one_column_stand_apart_and_the_outputs_stand_last():
    graph = PopulationGraph(nnx.Rngs(0))
    for name in "abc":
        graph.add_input(name, 2)
    graph.add_population("d", 2)
    graph.add_output("far", 2)
    graph.add_output("near", 2)
    graph.connect("a", "d")
    graph.connect("d", "far")
    graph.connect("a", "near")
    graph.finalize()
    places = lay_out(graph)
    assert len(set(places.values())) == 6
    assert places["near"][0] == places["far"][0] == max(x for x, _ in places.values())
    assert {places[name][0] for name in "abc"} == {0.0}


def test_each_population_and_each_connection_is_drawn(brain):
    axes = new_axes()
    draw_graph(axes, brain, title="brain")
    boxes = {text.get_gid(): text for text in axes.texts}
    assert boxes["eye"].get_text() == "eye\n3 linear"
    assert boxes["v1"].get_text() == "v1\n8 tanh"
    assert boxes["hand"].get_text() == "hand\n2 linear"
    assert {name: boxes[name].get_position() for name in ("eye", "v1", "cortex", "hand")} == lay_out(brain)
    colours = [boxes[name].get_bbox_patch().get_edgecolor() for name in ("eye", "hand", "v1", "cortex")]
    assert same_color(colours[2], colours[3]) and len({tuple(colour) for colour in colours}) == 3
    arrows = {arrow.get_gid(): arrow for arrow in axes.patches if isinstance(arrow, FancyArrowPatch)}
    assert set(arrows) == {edge.name for edge in brain.edges}
    for edge in brain.edges:
        dashed = arrows[edge.name].get_linestyle() == "--"
        assert dashed == (edge.delay > 0)
        delay = boxes.get(f"delay of {edge.name}")
        assert (delay is None) == (edge.delay == 0)
    assert boxes["delay of cortex->v1@2"].get_text() == "2 steps"
    assert boxes["delay of cortex->cortex@1"].get_text() == "1 step"
    assert axes.get_title(loc="left") == "brain"


def test_arrows_begin_and_end_at_their_populations_and_twins_do_not_cover_each_other(brain):
    axes = new_axes()
    draw_graph(axes, brain)
    places = lay_out(brain)
    arrows = {arrow.get_gid(): arrow for arrow in axes.patches}
    for edge in brain.edges:
        start, end = arrows[edge.name]._posA_posB
        np.testing.assert_allclose([start, end], [places[edge.src], places[edge.dst]], atol=0.45)
        assert start[0] < end[0] or edge.name == "cortex->v1@2"
    bends = [arrows[name].get_connectionstyle().rad for name in ("cortex->hand", "cortex->hand@1")]
    assert bends[0] != bends[1]
