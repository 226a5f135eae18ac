"""compose.yaml, kubernetes.yaml and nginx.conf match their schemas and the Dockerfile."""

from __future__ import annotations

import http.client
import re
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema

from tests.harness.app_server import free_port
from tests.harness.nginx import nginx_before
from ui.server.sent_files import MAX_FILE_MB

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
KUBERNETES = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
NGINX = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def argument(name: str) -> str:
    return re.search(rf"^ARG {name}=(.*)$", DOCKERFILE, flags=re.MULTILINE).group(1)


def test_every_file_fits_its_schema() -> None:
    jsonschema.validate(COMPOSE, get_builtin_schema("vendor.compose-spec"))
    for release in ("1.30", "1.37"):  # of Kubernetes
        for resource in KUBERNETES:
            kubernetes_validate.validate(resource, release, strict=True)


def test_all_files_agree_on_user_and_port() -> None:
    deployment, service, ingress = KUBERNETES[:3]
    pod = deployment["spec"]["template"]
    container, port = pod["spec"]["containers"][0], int(argument("PORT"))
    assert pod["spec"]["securityContext"]["runAsUser"] == int(argument("UID")) != 0
    assert container["ports"] == [{"containerPort": port}]
    assert {container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "readiness", "liveness")} == {port}
    assert service["spec"]["ports"][0]["targetPort"] == port
    assert service["spec"]["selector"] == pod["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
    backend = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    assert (backend["name"], backend["port"]["number"]) == (
        service["metadata"]["name"],
        service["spec"]["ports"][0]["port"],
    )
    apps = {name for name in COMPOSE["services"] if name.startswith("app-")}
    assert set(re.findall(r"server (app-\d+):(\d+)", NGINX)) == {(name, str(port)) for name in apps}
    assert set(COMPOSE["services"]["proxy"]["depends_on"]) == apps
    listens = re.search(r"listen (\d+);", NGINX).group(1)
    assert COMPOSE["services"]["proxy"]["ports"] == [f"127.0.0.1:{listens}:{listens}"]


def test_a_server_that_others_reach_has_a_name() -> None:
    """As SECURITY.md requires: requests for other hosts are refused, except the probes of Kubernetes."""
    container, rule = KUBERNETES[0]["spec"]["template"]["spec"]["containers"][0], KUBERNETES[2]["spec"]["rules"][0]
    assert {"name": "GLASSFORMER_HOSTS", "value": rule["host"]} in container["env"]
    for name in ("app-1", "app-2"):
        assert COMPOSE["services"][name]["environment"]["GLASSFORMER_HOSTS"] == "${GLASSFORMER_HOSTS:-localhost}"


def test_both_replicas_share_classes_in_a_redis_that_writes_nothing_to_disk() -> None:
    redis, service = KUBERNETES[3:5]
    (container,) = redis["spec"]["template"]["spec"]["containers"]
    name, (port,) = service["metadata"]["name"], service["spec"]["ports"]
    assert service["spec"]["selector"] == redis["spec"]["template"]["metadata"]["labels"]
    environment = KUBERNETES[0]["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "GLASSFORMER_REDIS", "value": f"redis://{name}:{port['port']}"} in environment
    for app in ("app-1", "app-2"):
        assert COMPOSE["services"][app]["environment"]["GLASSFORMER_REDIS"] == "redis://redis:6379"
    for arguments in (container["args"], COMPOSE["services"]["redis"]["command"][1:]):
        assert arguments[:4] == ["--save", "", "--appendonly", "no"]


def begin_upload(port: int, size: int) -> http.client.HTTPConnection:
    """Announce a file, as a browser does, and send its first byte."""
    for _ in range(200):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.putrequest("PUT", "/_stcore/upload_file/1/2")
            connection.putheader("Content-Length", str(size))
            connection.endheaders(b"x")
            return connection
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise TimeoutError("nginx did not answer")


def test_nginx_passes_uploads_on_at_once_up_to_the_largest_size(tmp_path: Path) -> None:
    """It refuses requests by their announced size, and asks a replica before it reads the body."""
    with nginx_before([free_port()], tmp_path) as port:  # of a replica that does not run
        assert begin_upload(port, MAX_FILE_MB * 2**20).getresponse().status == 502
        assert begin_upload(port, MAX_FILE_MB * 2**20 + 2**21).getresponse().status == 413


def test_one_address_has_a_limited_number_of_uploads(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as replica, ExitStack() as stack:  # one that never answers
        port = stack.enter_context(nginx_before([replica.getsockname()[1]], tmp_path))
        most = int(re.search(r"limit_conn uploads_of_address (\d+);", NGINX).group(1))
        held = [begin_upload(port, 1000) for _ in range(most)]
        for connection in held:
            stack.callback(connection.close)
        replica.settimeout(10)
        for _ in held:
            stack.enter_context(replica.accept()[0])
        assert begin_upload(port, 1000).getresponse().status == 429


def test_no_container_has_more_rights_or_memory_than_it_needs() -> None:
    for name, service in COMPOSE["services"].items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["mem_limit"] and service["pids_limit"], name
        assert all("size=" in folder for folder in service.get("tmpfs", ())), name
    deployments = [each["spec"] for each in KUBERNETES if each["kind"] == "Deployment"]
    assert len(deployments) == 2
    for pod in (each["template"]["spec"] for each in deployments):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["securityContext"]["runAsNonRoot"]
        for container in pod["containers"]:
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
    assert deployments[0]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0, "the new version comes first"


def test_pods_reach_and_are_reached_by_what_they_need_only() -> None:
    policies = [each["spec"] for each in KUBERNETES if each["kind"] == "NetworkPolicy"]
    app, redis = (each["spec"]["template"]["metadata"]["labels"] for each in KUBERNETES if each["kind"] == "Deployment")
    chosen = [policy["podSelector"]["matchLabels"] for policy in policies]
    assert chosen == [app, redis]
    assert all(policy["policyTypes"] == ["Ingress", "Egress"] for policy in policies)
    (from_ingress,), (from_app,) = (policy["ingress"] for policy in policies)
    assert from_ingress["ports"] == [{"port": int(argument("PORT"))}]
    assert from_app["from"] == [{"podSelector": {"matchLabels": app}}] and from_app["ports"] == [{"port": 6379}]
    to_redis, to_names = policies[0]["egress"]
    assert to_redis["to"] == [{"podSelector": {"matchLabels": redis}}] and to_redis["ports"] == [{"port": 6379}]
    assert {one["port"] for one in to_names["ports"]} == {53}
    assert policies[1]["egress"] == []
