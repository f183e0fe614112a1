"""A control plane with a real API server, and processes that are measured with it: shared by the scripts here."""
import base64, http.client, json, os, shutil, signal, ssl, subprocess, sys, tempfile, threading, time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent.parent
OBJECTS = "/apis/kopf.dev/v1/namespaces/default/kopfexamples"
CONNECTIONS = 4
DEADLINE = 600.0
# The operator that is measured: `benches/kube-rs` does the same.
LUA = """kopf.on_create("kopfexamples", { id = "create" }, function(ctx)
    print("HANDLED")
    return { name = ctx.name }
end)
"""
LAST_HANDLED = "kopf.zalando.org/last-handled-configuration"


def static_binary():
    """Builds the released binary, and returns its path."""
    built = subprocess.run([str(ROOT / "scripts/build-static")], check=True, stdout=subprocess.PIPE, text=True).stdout
    return built.strip()


def by_hand(folder="kube-rs"):
    """Builds the programs of a folder in benches, and returns their directory."""
    target = ROOT / "target/by-hand"
    manifest = str(ROOT / "benches" / folder / "Cargo.toml")
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    subprocess.run(["cargo", "build", "--locked", "--release", "--manifest-path", manifest], env=environment, check=True)
    return target / "release"


def cpu(pid):
    """Returns the CPU time of a process so far, in seconds: of its clock, because /proc/PID/stat counts in steps of 10 ms."""
    CPUCLOCK_SCHED = 2
    return time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)


def stop(child):
    """Asks a process to end, and kills it if it does not."""
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(20)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


@contextmanager
def control_plane():
    """A directory with a control plane in it; both are removed afterwards, also when this process is asked to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    directory = tempfile.mkdtemp(prefix="kopf-bench-")
    try:
        plane = Plane(str(Path(directory) / "plane"))
        try:
            yield Path(directory), plane
        finally:
            plane.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def in_parallel(names, action, clients=CONNECTIONS):
    """Calls the action for each name, in several threads, each with a connection of its own."""
    def some(names):
        for name in names:
            action(name)
    threads = [threading.Thread(target=some, args=(names[it::clients],)) for it in range(clients)]
    for it in threads: it.start()
    for it in threads: it.join()


class Plane:
    """A separate control plane, and one connection per thread to it."""

    def __init__(self, directory):
        up = os.environ.get("ENVTEST") or str(ROOT / "scripts/envtest/up")
        if not os.environ.get("ENVTEST") and not os.environ.get("KUBEBUILDER_ASSETS"):
            sys.exit("error: set ENVTEST or KUBEBUILDER_ASSETS, see --help")
        self.directory, self.down = directory, Path(up).with_name("down")
        told = subprocess.run([up, directory], check=True, stdout=subprocess.PIPE, text=True).stdout
        exports = dict(it.removeprefix("export ").split("=", 1) for it in told.splitlines() if it.startswith("export "))
        self.kubeconfig, self.kubectl = exports["KUBECONFIG"], exports["KUBEBUILDER_ASSETS"] + "/kubectl"
        config = json.loads(self.run("config", "view", "--raw", "--minify", "-o", "json"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.address = urlsplit(cluster["server"])
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.token = user["token"]
        self.local = threading.local()
        self.run("apply", "-f", str(ROOT / "examples/crd.yaml"))
        self.run("wait", "--for=condition=established", "--timeout=60s", "crd/kopfexamples.kopf.dev")

    def run(self, *args):
        command = [self.kubectl, "--kubeconfig", self.kubeconfig, *args]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def ask(self, method, path, body=None, form="application/json"):
        deadline = time.monotonic() + DEADLINE
        while True:
            status, text = self.send(method, path, body, form)
            # A new server has not read the definition's objects yet.
            if status == 429 and time.monotonic() < deadline:
                time.sleep(0.2)
                continue
            if status >= 300:
                raise RuntimeError(f"{method} {path}: {status} {text[:300]!r}")
            return json.loads(text)

    def send(self, method, path, body, form):
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPSConnection(self.address.hostname, self.address.port, context=self.tls)
        content = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": form}
        try:
            self.local.connection.request(method, path, content, headers)
            answer = self.local.connection.getresponse()
        except http.client.RemoteDisconnected:
            # The server has closed the idle connection before the request came.
            self.local.connection.close()
            self.local.connection.request(method, path, content, headers)
            answer = self.local.connection.getresponse()
        return answer.status, answer.read()

    def create(self, names, size, clients=CONNECTIONS):
        """Creates objects with several clients at once. Returns the duration in seconds."""
        padding = {f"field{it}": {"name": f"name-{it}", "value": it, "list": ["a", "b"]} for it in range(size // 60)}
        start = time.monotonic()
        in_parallel(names, lambda name: self.ask("POST", OBJECTS, {
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": {"name": name}, "spec": {"duration": "1m", **padding}}), clients)
        return time.monotonic() - start

    def count_handled(self):
        items = self.ask("GET", OBJECTS)["items"]
        return sum(LAST_HANDLED in (it["metadata"].get("annotations") or {}) and "create" in (it.get("status") or {}) for it in items)

    def wait_for(self, count):
        deadline = time.monotonic() + DEADLINE
        while self.count_handled() < count:
            if time.monotonic() > deadline:
                sys.exit(f"error: {self.count_handled()} of {count} objects were handled within {DEADLINE:.0f} s")
            time.sleep(0.5)

    def clear(self):
        """Deletes all objects, also those with finalizers of an operator that has ended."""
        for it in self.ask("GET", OBJECTS)["items"]:
            if it["metadata"].get("finalizers"):
                self.ask("PATCH", f"{OBJECTS}/{it['metadata']['name']}", {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        self.ask("DELETE", OBJECTS)
        while self.ask("GET", OBJECTS)["items"]:
            time.sleep(0.05)

    def close(self):
        subprocess.run([str(self.down), "--rm", self.directory], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Operator:
    """A running operator, as /proc sees it."""

    def __init__(self, command, plane, log):
        self.log = open(log, "w+b")
        self.read, self.called = 0, 0
        environment = {**os.environ, "KUBECONFIG": plane.kubeconfig}
        self.start = time.monotonic()
        self.child = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)

    def wait_until_called(self, times=1):
        """Returns the time from the start until handlers have printed their line this often."""
        while self.calls() < times:
            if self.child.poll() is not None or time.monotonic() - self.start > DEADLINE:
                sys.exit(f"error: no handler was called:\n{os.pread(self.log.fileno(), 4000, 0).decode()}")
            time.sleep(0.0005)
        return time.monotonic() - self.start

    def calls(self):
        """How often handlers have printed their line so far. Reads each line of the log once."""
        more = os.pread(self.log.fileno(), 1 << 20, self.read)
        whole = more[:more.rfind(b"\n") + 1]
        self.read, self.called = self.read + len(whole), self.called + whole.count(b"HANDLED")
        return self.called

    def cpu(self):
        return cpu(self.child.pid)

    def waits(self):
        """How often its threads have waited for something so far: each time, one of them had to be woken up."""
        lines = [line for it in Path(f"/proc/{self.child.pid}/task").glob("*/status") for line in it.read_text().splitlines()]
        return sum(int(it.split()[1]) for it in lines if it.startswith("voluntary_ctxt_switches:"))

    def memory(self):
        lines = Path(f"/proc/{self.child.pid}/status").read_text().splitlines()
        return {key: int(value.split()[0]) for key, value in (it.split(":", 1) for it in lines) if key in ("VmRSS", "VmHWM", "RssAnon", "Threads")}

    def stop(self):
        stop(self.child)
        self.log.close()


def settle(operator):
    """Waits until the operator has used no CPU for some seconds: workers of idle objects end after five."""
    quiet, before, deadline = 0, operator.cpu(), time.monotonic() + 60
    while quiet < 7 and time.monotonic() < deadline:
        time.sleep(1)
        now = operator.cpu()
        quiet, before = (quiet + 1, before) if now - before < 0.02 else (0, now)
