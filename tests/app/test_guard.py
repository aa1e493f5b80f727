"""Who may ask: tokens, hosts, origins, and what stands in every answer."""

import pytest
from fastapi import FastAPI
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from regard.app.app import put_behind_guard
from regard.app.security.access import open_to_all, walk_routes, with_token
from regard.app.security.guard import ALWAYS, CONTENT_POLICY, LOOPBACK, AccessPolicy
from regard.errors import RegardError
from regard.models import embedded
from tests.app.served import HOST, POLICY, SENT, opened, said

PATHS = ["/api/models", "/api/traces", "/api/trainings", "/api/traces/0123456789abcdef", "/api/nothing", "/docs"]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A client without a token."""
    with opened(tmp_path_factory.mktemp("kept"), headers={}) as (client, _):
        yield client


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer "},
        {"authorization": "Basic right-token"},
        {"cookie": "regard-8765=wrong"},
        {"cookie": "regard-8766=right-token"},
        {"cookie": "right-token"},
    ],
)
def test_without_the_token_nothing_is_answered_not_even_whether_it_exists(bare, path, headers):
    answer = bare.get(path, headers=headers)
    assert answer.status_code == 401
    assert "needs the token" in said(answer)


def test_a_token_in_the_address_of_a_question_is_none(bare):
    assert bare.get("/api/models?token=right-token").status_code == 401


@pytest.mark.parametrize(
    "headers", [{"authorization": "bearer right-token"}, {"cookie": "a=b; regard-8765=right-token"}]
)
def test_with_the_token_it_is_answered(bare, headers):
    assert bare.get("/api/models", headers=headers).json()[0]["name"] == embedded.names()[0]


def test_the_printed_address_becomes_a_cookie_that_no_script_can_read(bare):
    answer = bare.get("/?token=right-token", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("regard-8765=right-token;")
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
    assert "domain" not in cookie.lower()
    bare.cookies.clear()


def test_a_wrong_token_in_the_printed_address_sets_nothing(bare):
    answer = bare.get("/?token=right-tokem", follow_redirects=False)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_the_front_holds_no_inline_script_and_nothing_of_anybody(bare):
    page = bare.get("/").text
    assert page.count("<script") == 1
    assert '<script type="module" src="/assets/regard.js"></script>' in page
    assert "style=" not in page
    assert "right-token" not in page


HOSTS = [
    "evil.example:8765",
    "evil.example",
    "127.0.0.1",
    "127.0.0.1:8766",
    "127.0.0.1:80",
    "localhost.evil.example:8765",
    "127.0.0.1.nip.io:8765",
    "0.0.0.0:8765",
    "127.1:8765",
    "2130706433:8765",
    "user@127.0.0.1:8765",
    "127.0.0.1:8765.",
    "[::1]",
    "",
]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/", "/api/models", "/assets/regard.js"])
def test_another_host_is_refused_although_the_token_is_right(bare, host, path):
    answer = bare.get(path, headers={**SENT, "host": host, "origin": f"http://{host}"})
    assert answer.status_code == 421
    assert "only under the address that it printed" in said(answer)


@pytest.mark.parametrize("name", LOOPBACK)
def test_each_name_of_this_machine_is_its_own_origin(bare, name):
    host = f"{name}:8765"
    own = {**SENT, "host": host, "origin": f"http://{host}"}
    assert bare.get("/api/models", headers=own).status_code == 200
    other = {**own, "origin": "http://localhost:8765" if name != "localhost" else f"http://{HOST}"}
    assert bare.get("/api/models", headers=other).status_code == 403


ORIGINS = ["http://evil.example", "null", f"https://{HOST}", "http://127.0.0.1:9", f"http://{HOST}.evil.example", ""]


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"])
def test_another_origin_is_refused_whatever_it_asks(bare, origin, method):
    answer = bare.request(method, "/api/traces", headers={**SENT, "origin": origin})
    assert answer.status_code == 403
    assert "another page" in said(answer)


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "PUT", "OPTIONS"])
def test_what_changes_something_needs_an_origin(bare, method):
    assert bare.request(method, "/api/traces", headers={"authorization": SENT["authorization"]}).status_code == 403


def test_two_hosts_or_two_origins_are_refused(bare):
    for name, value in (("origin", "http://evil.example"), ("host", "evil.example")):
        headers = [*SENT.items(), ("host", HOST), (name, value)]
        assert bare.get("/api/models", headers=headers).status_code in (403, 421)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none of those"])
def test_what_a_browser_calls_another_site_is_refused(bare, site):
    headers = {"authorization": SENT["authorization"], "sec-fetch-site": site}
    assert bare.get("/api/models", headers=headers).status_code == 403
    assert bare.get("/assets/regard.js", headers=headers | {"sec-fetch-mode": "no-cors"}).status_code == 403
    framed = headers | {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
    assert bare.get("/", headers=framed).status_code == 403


def test_a_link_on_another_page_may_lead_to_the_front_and_nowhere_else(bare):
    clicked = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert bare.get("/", headers=clicked).status_code == 200
    assert bare.get("/api/models", headers=clicked | {"authorization": SENT["authorization"]}).status_code == 403


def test_a_preflight_gets_no_permission(bare):
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = bare.options("/api/traces", headers=asked)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/api/models", 200), ("/api/nothing", 404), ("/docs", 404)])
def test_every_answer_carries_the_same_protection(bare, path, status):
    answer = bare.get(path, headers=SENT)
    assert answer.status_code == status
    assert {name: answer.headers[name] for name in ALWAYS} == ALWAYS
    assert "access-control-allow-origin" not in answer.headers
    refused = bare.get(path, headers={"host": "evil.example"})
    assert refused.headers["content-security-policy"] == CONTENT_POLICY


def test_the_policy_allows_no_inline_script():
    assert "unsafe" not in CONTENT_POLICY
    assert "default-src 'none'" in CONTENT_POLICY
    assert "frame-ancestors 'none'" in CONTENT_POLICY


WRONG = [
    {"authorization": SENT["authorization"]},
    {**SENT, "origin": "http://evil.example"},
    {**SENT, "origin": "null"},
    {**SENT, "host": "evil.example:8765", "origin": "http://evil.example:8765"},
    {"origin": SENT["origin"]},
    {**SENT, "authorization": "Bearer wrong"},
    {**SENT, "sec-fetch-site": "cross-site"},
]


@pytest.mark.parametrize("headers", WRONG)
def test_a_socket_is_refused_before_it_opens(bare, headers):
    asked = bare.websocket_connect("/api/run", headers={"host": HOST} | headers)
    with pytest.raises((WebSocketDisconnect, WebSocketDenialResponse)):
        asked.__enter__()


def test_a_socket_with_all_of_it_is_answered(bare):
    with bare.websocket_connect("/api/run", headers={"host": HOST} | SENT) as socket:
        socket.send_text("no JSON")
        told = {"code": "sent.odd", "about": {}}
        assert socket.receive_json() == {
            "kind": "failed",
            "text": "what was sent is no JSON; send a JSON object",
            **told,
        }


# Decisions


def plain() -> Response:
    return Response("")


async def socket(websocket) -> None:
    await websocket.close()


def undecided(how):
    app = FastAPI(openapi_url=None)
    how(app)
    return app


UNDECIDED = {
    "a route": lambda app: app.add_api_route("/secret", plain),
    "a socket": lambda app: app.add_api_websocket_route("/secret", socket),
    "a mounted app": lambda app: app.mount("/secret", FastAPI(openapi_url=None)),
    "a mounted function": lambda app: app.mount("/secret", Response("all of it")),
    "a mounted route": lambda app: app.router.routes.append(Mount("/secret", routes=[Route("/inner", plain)])),
}


@pytest.mark.parametrize("how", UNDECIDED.values(), ids=UNDECIDED)
def test_what_says_nothing_about_who_may_ask_fails_when_the_app_is_made(how):
    with pytest.raises(RegardError, match=r"the route '/secret.*' says nothing about who may ask"):
        put_behind_guard(undecided(how), POLICY)


def test_the_documentation_that_a_framework_adds_is_undecided_too():
    with pytest.raises(RegardError, match="says nothing"):
        put_behind_guard(FastAPI(), POLICY)


def test_a_decided_route_is_served_as_it_says():
    app = FastAPI(openapi_url=None)
    app.add_api_route("/all", open_to_all(lambda: {"a": 1}))
    app.add_api_route("/mine", with_token(lambda: {"b": 2}))
    client = TestClient(put_behind_guard(app, POLICY), f"http://{HOST}")
    assert [client.get(path).status_code for path in ("/all", "/mine")] == [200, 401]


def test_all_of_ours_are_decided(tmp_path):
    from regard.app.app import make_app
    from regard.app.studio.studio import Studio

    guard = make_app(Studio(keep=tmp_path), POLICY)
    paths = [path for path, _ in walk_routes(guard.app.routes)]
    print(f"{len(paths)} routes")
    assert len(paths) >= 14
    assert [route.path for route in guard.free] == ["/", "/assets/regard.js"]


def test_a_port_that_browsers_leave_out_is_known_without_it():
    assert "localhost" in AccessPolicy("t", 80).hosts
    assert "localhost" not in AccessPolicy("t", 8080).hosts
