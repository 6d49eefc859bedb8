"""`peers:`, `hosts:` and `routes:`."""

import pytest

from qmsup.config.loading import parse
from qmsup.errors import ConfigError
from qmsup.ids import HostName, ListenerName, ModelId, RouteName
from qmsup.spec import Affinity, FilterSpec, HostSpec, PeerSpec, RouteSpec, SlotsSpec
from qmsup.units import Seconds

_CHAT = 'models: {chat: {cmd: "llama-server -m x --port ${PORT}"}}\n'
_FLEET = """
macros: {key: sk-peer}
peers:
  far:
    proxy: http://10.0.0.2/api/
    apiKey: ${key}
    models: [big, org/huge, big]
    filters: {stripParams: "top_k, model", setParams: {provider: {order: [a]}}}
    timeouts: {connect: 3, responseHeader: 60, keepalive: 30, idleConn: 90}
hosts:
  box1: {url: "http://10.0.0.3:8080", weight: 2, models: {chat: {parallel: 4, queueMax: 8}, 4.10: }}
  box2: {url: "http://[::1]:9000", apiKey: sk}
routes:
  convo: {hosts: [box1, box2], default_model: chat}
  "agent-*": {hosts: [local, box1, box1], affinity: route, queue: false, peers: [far]}
listeners:
  main: {bind: "127.0.0.1:8080"}
  agents: {bind: "127.0.0.1:8081", routes: ["agent-*"]}
"""


def test_all_of_it() -> None:
    spec = parse(_CHAT + _FLEET)

    far, box1, box2 = HostName("far"), HostName("box1"), HostName("box2")
    assert spec.peers == {
        far: PeerSpec(
            name=far,
            upstream="10.0.0.2:80",
            path="/api",
            api_key="sk-peer",
            models=(ModelId("big"), ModelId("org/huge")),
            filters=FilterSpec(strip=("top_k",), put={"provider": '{"order":["a"]}'}),
            connect_timeout=Seconds(3.0),
            answer_timeout=Seconds(60.0),
        )
    }
    models = {ModelId("chat"): SlotsSpec(parallel=4, queue_max=8), ModelId("4.10"): SlotsSpec()}
    assert spec.hosts == {
        box1: HostSpec(name=box1, upstream="10.0.0.3:8080", weight=2.0, models=models),
        box2: HostSpec(name=box2, upstream="[::1]:9000", api_key="sk"),
    }
    convo, agents = RouteName("convo"), RouteName("agent-*")
    assert spec.routes == {
        convo: RouteSpec(name=convo, hosts=(box1, box2), default_model="chat"),
        agents: RouteSpec(
            name=agents,
            hosts=(HostName("local"), box1),
            peers=(far,),
            affinity=Affinity.ROUTE,
            queue=False,
        ),
    }
    assert spec.listeners[ListenerName("main")].routes is None
    assert spec.listeners[ListenerName("agents")].routes == (agents,)


def test_a_template_serves_every_name_that_it_matches_and_a_name_comes_first() -> None:
    spec = parse(_CHAT + "routes: {a-*: {hosts: [local]}, a-1: {hosts: [local], queue: false}}")

    found = {name: spec.route_named(name) for name in ("a-1", "a-2", "b-1")}

    assert {name: route and route.name for name, route in found.items()} == {
        "a-1": "a-1",
        "a-2": "a-*",
        "b-1": None,
    }


def test_over_https_a_handshake_has_its_time_and_the_systems_certificates_count() -> None:
    text = """
hosts: {a: {url: "https://far.example"}, b: {url: "http://far.example"}}
peers: {p: {proxy: "https://far.example:8443/api", models: [m], timeouts: {connect: 2, tlsHandshake: 3}}}
"""
    spec = parse(_CHAT + text)

    host, plain, peer = (
        spec.hosts[HostName("a")],
        spec.hosts[HostName("b")],
        spec.peers[HostName("p")],
    )
    assert (host.upstream, host.trust) == ("far.example:443", "")
    assert (plain.upstream, plain.trust) == ("far.example:80", None)
    assert (peer.upstream, peer.path, peer.trust) == ("far.example:8443", "/api", "")
    assert peer.connect_timeout == Seconds(5.0)


def test_no_key_is_shown() -> None:
    assert "sk" not in repr(parse(_CHAT + _FLEET.replace("${key}", "sk-peer")).peers)
    assert "api_key" not in repr(parse(_CHAT + _FLEET).hosts)


_ADDRESS = "write http://HOST:PORT, for example http://10.0.0.2:8080"
WRONG = {
    "routes: {convo: {hosts: [local], affinity: sometimes}}": (
        'routes.convo.affinity: must be "conversation" or "route", not "sometimes"'
    ),
    "routes: {convo: {}}": "routes.convo.hosts: names no host; list those it may choose from",
    "routes: {convo: {hosts: [lokal]}}": (
        "routes.convo.hosts[0]: there is no host lokal; did you mean local?"
    ),
    "routes: {convo: {hosts: [local], peers: [far]}}": (
        "routes.convo.peers[0]: there is no peer far; add it under peers, or remove it here"
    ),
    "routes: {a b: {hosts: [local]}}": (
        'routes."a b": a route\'s name is letters, digits, - _ or ., and * ? [ ] in a template;'
        " rename it"
    ),
    "routes: {convo: {hosts: [local], que: false}}": (
        "routes.convo.que: unknown key; did you mean queue?"
    ),
    "listeners: {main: {routes: [convo]}}": (
        "listeners.main.routes[0]: there is no route convo; add it under routes, or remove it here"
    ),
    "hosts: {local: {url: http://x}}": (
        "hosts.local: local is this box, and needs no entry; rename it"
    ),
    "hosts: {a/b: {url: http://x}}": (
        "hosts.a/b: a name here is letters, digits, - _ or . (at most 64); rename it"
    ),
    "hosts: {a: }": f"hosts.a.url: is missing; {_ADDRESS}",
    "hosts: {a: {url: http://x/y}}": f"hosts.a.url: holds more than host and port; {_ADDRESS}",
    "hosts: {a: {url: ftp://x}}": "hosts.a.url: is not a plain http address",
    "hosts: {a: {url: http://127.0.0.1:8080}}": (
        "hosts.a.url: is where listener main listens; this box is called local;"
        " write another address"
    ),
    "hosts: {a: {url: http://x, apiKey: a b}}": (
        "hosts.a.apiKey: a key is plain characters without blanks"
    ),
    "hosts: {a: {url: http://x, weight: 0}}": "hosts.a.weight: must be more than 0, not 0",
    "hosts: {a: {url: http://x, models: {m: {paralel: 1}}}}": (
        "hosts.a.models.m.paralel: unknown key; did you mean parallel?"
    ),
    "hosts: {a: {url: http://x}}\npeers: {a: {proxy: http://x, models: [b]}}": (
        "hosts.a: is the name of a peer too; rename one of them, X-QM-Host tells them apart"
    ),
    "peers: {local: {proxy: http://x, models: [b]}}": "peers.local: local is this box; rename it",
    "peers: {far: {proxy: http://x}}": "names no model; list those that the peer is asked for",
    "peers: {far: {proxy: http://x, models: ['']}}": (
        "peers.far.models[0]: a model's name has no line breaks or blanks at its ends,"
        " and is not empty"
    ),
    "peers: {far: {proxy: 'http://x/a?b', models: [b]}}": (
        "peers.far.proxy: holds more than host, port and path"
    ),
    "peers: {far: {proxy: http://127.0.0.1:8080, models: [b]}}": (
        "peers.far.proxy: is where listener main listens; write another address"
    ),
    "peers: {far: {proxy: http://x, models: [b]}, near: {proxy: http://y, models: [b]}}": (
        "peers.near.models[0]: peer far lists b already; keep one"
    ),
    "peers: {far: {proxy: http://x, models: [b], filters: {setParams: {model: x}}}}": (
        "peers.far.filters.setParams.model: cannot be set: it is what the peer is asked for"
    ),
    "peers: {far: {proxy: http://x, models: [b], timeouts: {conect: 1}}}": (
        "peers.far.timeouts.conect: unknown key; did you mean connect?"
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_its_key(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(_CHAT + text, name="f")

    assert WRONG[text] in str(caught.value)
