"""Which callers are admitted, and which queue URLs they see."""

from __future__ import annotations

import httpx
import pytest

from tests.edge.conftest import MakeServer
from tests.edge.live import LiveServer
from tests.edge.raw import Raw, request
from tests.edge.sqs.aws import Aws, name_of

TARGET = {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}

OTHER_SITES = [
    {"Origin": "https://elsewhere.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Sec-Fetch-Site": "cross-site"},
]


@pytest.mark.parametrize("headers", OTHER_SITES)
def test_pages_of_other_sites_cannot_act_here(
    http: httpx.Client, aws: Aws, queue: str, headers: dict
) -> None:
    fields = {"Action": "DeleteQueue", "QueueUrl": queue}

    form = http.post("/", data=fields, headers=headers)
    json = http.post("/", content=b"{}", headers={**TARGET, **headers})
    by_get = http.get("/", params=fields, headers=headers)
    on_path = http.get(
        f"/000000000000/{name_of(queue)}", params={"Action": "DeleteQueue"}, headers=headers
    )

    for answer in (form, by_get, on_path):
        assert answer.status_code == 403
        assert "<Code>AccessDenied</Code>" in answer.text
    assert json.status_code == 403
    assert json.headers["x-amzn-query-error"] == "AccessDenied;Sender"
    aws.send(queue)  # it exists


def test_a_head_request_changes_nothing(http: httpx.Client, aws: Aws, queue: str) -> None:
    """HEAD is GET without the body of the response, for link checkers."""
    params = {"Action": "DeleteQueue", "QueueUrl": queue}

    answers = [
        http.head("/", params=params),
        http.head(f"/000000000000/{name_of(queue)}", params={"Action": "DeleteQueue"}),
    ]

    assert [answer.status_code for answer in answers] == [405, 405]
    aws.send(queue)  # it exists
    assert http.head("/").status_code == http.get("/").status_code


def test_a_slash_too_many_makes_no_difference(http: httpx.Client, queue: str) -> None:
    path = f"/000000000000/{name_of(queue)}/"

    by_form = http.post(path, data={"Action": "SendMessage", "MessageBody": "a"})
    by_json = http.post(
        path,
        json={"QueueUrl": queue, "MessageBody": "b"},
        headers={**TARGET, "X-Amz-Target": "AmazonSQS.SendMessage"},
    )

    assert "<SendMessageResult>" in by_form.text
    assert "MessageId" in by_json.json()


def test_a_path_with_two_slashes_is_not_a_queue(server: LiveServer, queue: str) -> None:
    with Raw(server.port) as wire:  # other clients make one of them
        listed = wire.ask(request("POST", "//", b"{}", headers=TARGET))
        by_form = wire.ask(request("POST", "//", b"Action=ListQueues", headers=FORM))
        no_url = wire.ask(request("POST", "//", b"Action=PurgeQueue", headers=FORM))

    assert b"QueueUrls" in listed.body
    assert b"<ListQueuesResult>" in by_form.body
    assert b"<Code>MissingParameter</Code>" in no_url.body


def test_a_picture_on_a_page_of_another_port_cannot_act_here(
    http: httpx.Client, aws: Aws, queue: str
) -> None:
    params = {"Action": "DeleteQueue", "QueueUrl": queue}

    answer = http.get("/", params=params, headers={"Sec-Fetch-Site": "same-site"})

    assert answer.status_code == 403
    aws.send(queue)


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}])
def test_a_request_from_the_address_bar_is_accepted(http: httpx.Client, headers: dict) -> None:
    assert http.get("/", params={"Action": "ListQueues"}, headers=headers).status_code == 200


def test_without_keys_only_this_machine_is_served(server: LiveServer) -> None:
    with Raw(server.port) as raw:
        answer = raw.ask(request("POST", "/", b"{}", headers={**TARGET, "Host": "renamed.example"}))

    assert answer.status == 403
    assert answer.headers["x-amzn-query-error"] == "AccessDenied;Sender"


def test_a_browser_still_gets_the_home_page(http: httpx.Client) -> None:
    for method in ("GET", "HEAD"):
        answer = http.request(method, "/")
        assert answer.is_redirect
        assert answer.headers["location"] == "/console"


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0&QueueUrl=q", {}),
        ("/", {"Authorization": "AWS4-HMAC-SHA256 Credential=x"}),
    ],
)
def test_a_program_is_not_redirected_to_the_home_page(
    http: httpx.Client, url: str, headers: dict
) -> None:
    """It might take the page for success."""
    answer = http.get(url, headers=headers)

    assert (answer.status_code, answer.text) == (404, "<UnknownOperationException/>")


def test_other_methods_are_not_taken(http: httpx.Client) -> None:
    for method in ("PUT", "DELETE", "PATCH"):
        assert http.request(method, "/").status_code == 405


# --- queue URLs ---


def url_for(server: LiveServer, headers: dict[str, str], name: str) -> str:
    head = {**TARGET, **headers, "X-Amz-Target": "AmazonSQS.GetQueueUrl"}
    body = f'{{"QueueName": "{name}"}}'.encode()
    with Raw(server.port) as raw:
        answer = raw.ask(request("POST", "/", body, headers=head))
    assert answer.status == 200, answer.body
    return answer.body.decode().removeprefix('{"QueueUrl":"').removesuffix('"}')


FORWARDED = [
    (
        {"Host": "localhost", "X-Forwarded-Host": "sqs.example", "X-Forwarded-Proto": "https"},
        "https://sqs.example",
    ),
    (
        {
            "Host": "localhost",
            "X-Forwarded-Host": "first.example:8443, second.example",
            "X-Forwarded-Proto": "HTTPS, http",
        },
        "https://first.example:8443",
    ),
    ({"Host": "localhost", "X-Forwarded-Proto": "javascript"}, "http://localhost"),
    (
        {"Host": "localhost", "X-Forwarded-Host": "a.example", "X-Forwarded-Port": "8080"},
        "http://a.example:8080",
    ),
    (
        {"Host": "localhost", "X-Forwarded-Host": "a.example:1", "X-Forwarded-Port": "2"},
        "http://a.example:1",
    ),
    (
        {"Host": "localhost", "X-Forwarded-Host": "[::1]", "X-Forwarded-Port": "2"},
        "http://[::1]:2",
    ),
    (
        {"Host": "localhost", "X-Forwarded-Host": "a.example", "X-Forwarded-Port": "x"},
        "http://a.example",
    ),
]


@pytest.mark.parametrize("host", ["localhost:4566", "127.0.0.1"])
def test_a_queue_url_begins_with_the_address_that_the_client_used(
    server: LiveServer, queue: str, host: str
) -> None:
    name = name_of(queue)

    assert url_for(server, {"Host": host}, name) == f"http://{host}/000000000000/{name}"


@pytest.mark.parametrize("headers", [headers for headers, _ in FORWARDED])
def test_a_client_cannot_pretend_that_it_came_through_a_proxy(
    server: LiveServer, queue: str, headers: dict[str, str]
) -> None:
    name = name_of(queue)

    assert url_for(server, headers, name) == f"http://localhost/000000000000/{name}"


def test_headers_of_a_trusted_proxy_set_the_queue_url(make_server: MakeServer) -> None:
    server = make_server(server={"trusted_proxies": "10.0.0.0/8, 127.0.0.0/8"})
    client = Aws(server.url)
    name = name_of(client.make())

    for headers, start in FORWARDED:
        assert url_for(server, headers, name) == f"{start}/000000000000/{name}"


def test_headers_of_another_proxy_do_not_set_the_queue_url(make_server: MakeServer) -> None:
    server = make_server(server={"trusted_proxies": "10.0.0.0/8"})
    client = Aws(server.url)
    name = name_of(client.make())

    for headers, _ in FORWARDED:
        assert url_for(server, headers, name) == f"http://localhost/000000000000/{name}"


def test_queue_urls_use_the_configured_public_url(make_server: MakeServer) -> None:
    server = make_server(
        sqs={
            "public_url": "https://queues.example",
            "account": "123456789012",
            "region": "eu-central-1",
        }
    )
    alone = Aws(server.url)

    queue = alone.make_named("q")

    assert queue == "https://queues.example/123456789012/q"
    assert url_for(server, {"X-Forwarded-Host": "other.example"}, "q") == queue
    assert alone.attribute(queue, "QueueArn") == "arn:aws:sqs:eu-central-1:123456789012:q"
    alone.send(queue)
    assert alone.bodies("https://sqs.us-east-1.amazonaws.com/123456789012/q") == ["hello"]


def test_botocore_waits_for_a_hundred_before_it_sends(server: LiveServer, queue: str) -> None:
    body = f'{{"QueueUrl": "{queue}", "MessageBody": "x"}}'.encode()
    head = {**TARGET, "X-Amz-Target": "AmazonSQS.SendMessage", "Expect": "100-continue"}
    whole = request("POST", "/", body, headers=head)
    with Raw(server.port) as raw:
        going_on = raw.ask(whole.removesuffix(body))
        answer = raw.ask(body)

    assert going_on.status == 100
    assert answer.status == 200
