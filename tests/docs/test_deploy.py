"""What the deployment page tells others to run: it parses, fits together, and is understood."""

import configparser
import json
import re
import shlex
import subprocess
import sys
from typing import Any

import yaml
from django.core.management import load_command_class

from flexiq_django.conf import Settings
from tests.docs.pages import DOCS, ROOT, Block, read_items

PAGE = DOCS / "howto" / "deploy.md"
#: What a worker needs before SIGKILL: the drain, and the last writes.
PATIENCE = Settings().STOP_TIMEOUT_SECONDS + 25


def blocks(language: str) -> list[str]:
    """The code blocks of the page in one language."""
    return [
        item.text
        for item in read_items(PAGE)
        if isinstance(item, Block) and item.language == language
    ]


def parse(arguments: list[str]) -> dict[str, Any]:
    """The options of a command line as the real command understands them."""
    (name, *options) = arguments[arguments.index("manage.py") + 1 :]
    command = load_command_class("flexiq_django", name)
    return vars(command.create_parser("manage.py", name).parse_args(options))


def manifests() -> list[Any]:
    return [yaml.safe_load(text) for text in blocks("yaml")]


def test_the_systemd_unit() -> None:
    (text,) = blocks("ini")
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)

    service = unit["Service"]
    assert parse(shlex.split(service["ExecStart"]))["processes"] == 2
    assert int(service["TimeoutStopSec"]) >= PATIENCE
    assert service["KillMode"] == "mixed"
    assert service["Restart"] == "always"  # or a process that is recycled stays away


def test_the_dockerfile() -> None:
    (text,) = blocks("dockerfile")
    command, _, arguments = text.partition(" ")
    assert command == "CMD"
    assert parse(json.loads(arguments))["processes"] == 2


def test_the_compose_file() -> None:
    (worker,) = [each["services"]["worker"] for each in manifests() if "services" in each]
    parse(worker["command"])
    assert int(worker["stop_grace_period"].removesuffix("s")) >= PATIENCE


def test_the_kubernetes_deployment() -> None:
    (deployment,) = [each for each in manifests() if each.get("kind") == "Deployment"]
    spec = deployment["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    pod = spec["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= PATIENCE
    (container,) = pod["containers"]
    given = parse([*container["command"], *container["args"]])
    assert given["log_format"] == "json"
    assert given["health_host"] is None  # else a kubelet, which comes from outside, is not let in
    (port,) = container["ports"]
    assert port["containerPort"] == given["health_port"]
    for name, path in (("startup", "/live"), ("readiness", "/ready"), ("liveness", "/live")):
        assert container[f"{name}Probe"]["httpGet"] == {"path": path, "port": port["name"]}
    limit = container["resources"]["limits"]["memory"]
    assert given["max_rss"] < int(limit.removesuffix("Mi")) << 20


def test_the_logging_settings_give_the_keys_of_the_page() -> None:
    (settings,) = [each for each in blocks("python") if "LOGGING" in each]
    program = f"""{settings}
import logging.config
logging.config.dictConfig(LOGGING)
logging.getLogger("shop").info("hello")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )

    section = PAGE.read_text().partition("| Key | Holds |")[2].partition("\n\n")[0]
    first_cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    documented = re.findall(r"`(\w+)`", " ".join(first_cells))
    assert list(json.loads(done.stderr)) == documented
