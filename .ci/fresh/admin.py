"""A person with a browser, at the views of the project and in its admin."""

import http.cookiejar
import json
import signal
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from project import Project, need


class Person:
    """Somebody who is signed in to the admin."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    def get(self, path: str) -> str:
        """A page."""
        return self.opener.open(self.address + path, timeout=30).read().decode()

    def ask(self, path: str) -> dict[str, object]:
        """The answer of a view of ours."""
        return json.loads(self.get(path))

    def post(self, path: str, **fields: str) -> str:
        """Send a form, with the token of the site."""
        self.get(path)
        token = next(cookie.value for cookie in self.jar if cookie.name == "csrftoken")
        form = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": token or ""}).encode()
        return self.opener.open(self.address + path, form, timeout=30).read().decode()


def wait_for(condition: object, what: str, seconds: float = 60.0) -> None:
    """Wait until a call answers something true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if condition():  # type: ignore[operator]
                return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.1)  # noqa: TID251
    sys.exit(f"not within {seconds:g} s: {what}")


def look_at_it(project: Project, arguments: dict[str, object]) -> None:
    """Enqueue from a view, run it, see it in the admin; requeue a job whose worker is gone."""
    project.environment["DJANGO_SUPERUSER_PASSWORD"] = "only for tests"  # noqa: S105
    project.manage("createsuperuser", "--noinput", "--username", "ada", "--email", "a@example.org")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = project.start("runserver", "--noreload", f"127.0.0.1:{port}")
    worker = None
    try:
        person = Person(port)
        wait_for(lambda: person.get("/admin/login/"), "the site answers")
        query = urllib.parse.urlencode({"with": json.dumps(arguments)})
        job = person.ask(f"/start/?{query}")["id"]
        need(person.ask(f"/show/{job}/")["status"], "READY", "a job of the view")
        project.work()
        need(person.ask(f"/show/{job}/")["status"], "SUCCESSFUL", "a job of the view")

        person.post("/admin/login/", username="ada", password="only for tests", next="/admin/")  # noqa: S106
        page = person.get(f"/admin/flexiq_django/job/{job}/change/")
        for text in (str(job), "Django task", "complete"):
            if text not in page:
                sys.exit(f"the page of the job in the admin does not say {text!r}")
        if str(job)[:8] not in person.get("/admin/flexiq_django/job/"):
            sys.exit("the job is not in the list of the admin")

        slow = person.ask("/slow/")["id"]
        worker = project.start("flexiq_worker")
        wait_for((project.site / "slow-has-begun").exists, "the slow task begins")
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        need(person.ask(f"/show/{slow}/")["status"], "RUNNING", "a job whose worker was killed")
        person.post(f"/admin/flexiq_django/job/{slow}/do/requeue/", confirmed="yes")
        need(person.ask(f"/show/{slow}/")["status"], "READY", "a job requeued in the admin")
        project.work()
        need(
            person.ask(f"/show/{slow}/"),
            {"status": "SUCCESSFUL", "value": 2, "tries": 2},
            "the requeued job",
        )
    finally:
        for process in (server, worker):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
    sys.stdout.write("enqueued from a view, run, seen in the admin, requeued there\n")
