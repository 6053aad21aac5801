"""Drives the kernel in the file argv[1] as Jupyter does, beside a portal of its own; with argv[2], as
in a cluster: they have only the network in common."""

import http.server
import importlib.util
import json
import os
import shutil
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

WAIT = 60  # seconds at most for anything
DIR = tempfile.mkdtemp(prefix="weir-k")  # short: paths of sockets are
TOKEN = "weirw_7_secret"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


CLUSTER = len(sys.argv) > 2
if CLUSTER:
    PORTS = {"portal": free_port(), "run": free_port()}
    os.environ["WEIR_API"], os.environ["WEIR_API_TOKEN"] = "http://127.0.0.1:%d" % PORTS["portal"], TOKEN
else:
    os.environ["WEIR_SOCKET"] = DIR + "/api.sock"
os.environ["JPY_SESSION_NAME"] = "notes/train.ipynb"

from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

spec = importlib.util.spec_from_file_location("weir_kernel", sys.argv[1])
weir_kernel = importlib.util.module_from_spec(spec)
spec.loader.exec_module(weir_kernel)
weir_kernel.KERNELS = DIR + "/k"
weir_kernel.RENEW = 0.2
weir_kernel.SILENT = 1


class Portal(socketserver.ThreadingTCPServer if CLUSTER else socketserver.ThreadingUnixStreamServer):
    """A portal with one run at a time."""

    daemon_threads = True
    allow_reuse_address = True
    delay = 0  # seconds until it answers a signal
    forgiving = False  # work ends a reminder

    def __init__(self):
        super().__init__(("127.0.0.1", PORTS["portal"]) if CLUSTER else os.environ["WEIR_SOCKET"], Handler)
        self.view, self.started, self.worked, self.stopped, self.looks, self.process = {}, [], 0, 0, 0, None

    def begin(self):
        """Starts the real kernel, as the run does."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        if CLUSTER:
            env["WEIR_RUN_PORT"] = str(PORTS["run"])
            self.view["address"] = "127.0.0.1:%d" % PORTS["run"]
        self.process = subprocess.Popen(self.started[-1]["command"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.view = dict(self.view, state="running")

    def answer(self, path, body):
        if path.endswith("/preview"):
            return {"target": {"demand": {"gpus": 0}}, "resources": {"limit": {"gpu_cores": 50}}}
        if path.endswith("/runs"):
            self.started.append(body)
            self.view = {"id": 7, "state": "queued", "position": 2, "estimate": {"text": "in 5 minutes"}, "reason": "No GPU is free.",
                         "demand": {"gpus": 1, "cores": 50}}
        elif path.endswith("/renew") and body["worked"]:
            self.worked += 1
            self.view = dict(self.view, reminded=self.view.get("reminded") and not self.forgiving)
        elif path.endswith("/signal"):
            time.sleep(self.delay)
        elif path.endswith("/stop"):
            self.stopped += 1
            self.view = dict(self.view, state="stopping", reason="Stopped.")
            self.process.kill()
        return self.view

    def look(self):
        self.looks += 1
        return self.view


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        if CLUSTER and self.headers["Authorization"] != "Bearer " + TOKEN:
            return self.send_error(401)
        self.send(self.server.answer(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

    def do_GET(self):
        self.send(self.server.look())

    def send(self, answer):
        raw = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


class KernelTest(unittest.TestCase):
    def until(self, what, ok):
        end = time.monotonic() + WAIT
        while not ok():
            self.assertLess(time.monotonic(), end, "it never came to be that " + what)
            self.listen()

    def listen(self):
        """Collects what the kernel publishes."""
        try:
            content = self.client.get_iopub_msg(timeout=0.1)["content"]
        except Exception:  # nothing came
            return
        self.texts.append(content.get("text") or content.get("data", {}).get("text/plain") or "")

    def says(self, text):
        self.until("the notebook shows %r" % text, lambda: any(text in t for t in self.texts))

    def greeted(self, hello):
        """What the real kernel, or nobody, answers to who says hello."""
        with socket.create_connection(("127.0.0.1", PORTS["run"]), WAIT) as s:
            s.sendall(struct.pack("!I", len(hello)) + hello)
            try:
                return s.recv(1)
            except ConnectionResetError:
                return b""

    def closed(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", PORTS["run"])) != 0

    def test_exactly(self):
        near, far = socket.socketpair()
        self.assertEqual((far.sendall(b"weir"), weir_kernel.exactly(near, 4, time.monotonic() + WAIT))[1], b"weir")

        def trickle():
            for _ in range(100):
                far.sendall(b"x")
                time.sleep(0.1)

        threading.Thread(target=trickle, daemon=True).start()
        with self.assertRaises(OSError, msg="who sends slowly holds a connection for long"):
            weir_kernel.exactly(near, 100, time.monotonic() + 1)

    def test_left(self):
        for before, words in ((600, "10 minutes"), (540.5, "10 minutes"), (60, "1 minute"), (59.5, "1 minute"), (59, "59 seconds"), (1, "1 second"), (-5, "0 seconds")):
            self.assertEqual(weir_kernel.left("2030-01-02T03:04:05.25Z", 1893553445 - before), words)

    def test_life(self):
        portal = Portal()
        self.addCleanup(lambda: portal.process and portal.process.kill())
        threading.Thread(target=portal.serve_forever, daemon=True).start()
        file, _ = write_connection_file(fname=DIR + "/front.json", key=b"secret")
        with open(file) as f:
            kernel = weir_kernel.Kernel(json.load(f))
        threading.Thread(target=kernel.serve, daemon=True).start()
        self.texts = []
        self.client = BlockingKernelClient(connection_file=file)
        self.client.load_connection_file()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=WAIT)

        self.client.execute("print(6 * 7)")
        self.says("Waiting for the GPU, position 2, estimated start: in 5 minutes. No GPU is free.")
        self.assertEqual(portal.started[0]["name"], "Python (GPU) train.ipynb")
        self.assertEqual(portal.started[0]["request"], {"gpus": 1, "cores": 50}, "more than the role's limit is refused")
        self.assertEqual(portal.started[0]["directory"], os.getcwd())
        portal.begin()
        self.says("42")
        self.says("GPU: 1 × 50 cores, by run 7.")
        if CLUSTER:
            self.assertNotIn("secret", json.dumps(portal.started), "others can read the command")
            path = kernel.real["ip"] + "-1"
            self.assertNotEqual(self.greeted(json.dumps({"path": path, "connection": {"key": "secret"}}).encode()), b"")
            strangers = [json.dumps({"path": path, "connection": {"key": key}}).encode() for key in ("", "wrong", None)]
            for hello in strangers + [b"", b"{}", b"[]", b"x" * 9000, b"\xff"]:
                self.assertEqual(self.greeted(hello), b"", "a stranger gets something: %r" % hello[:100])
            self.client.execute("print(6 * 9)")
            self.says("54")

        portal.view = dict(portal.view, reminded=True, idle_ends_at="2030-01-02T03:04:05Z")
        self.says(" minutes. %gpu keep keeps it, %gpu release gives it back now.")
        portal.forgiving, before = True, portal.worked
        self.client.execute("%gpu keep")
        self.until("it is kept", lambda: portal.worked > before)
        self.until("the reminder is over", lambda: not portal.view["reminded"])

        before = portal.worked
        self.client.shell_channel.send(self.client.session.msg("comm_msg", {"comm_id": "none", "data": {}}))
        self.until("the use of a widget is work", lambda: portal.worked > before)

        portal.delay = 5
        at = time.monotonic()
        self.client.control_channel.send(self.client.session.msg("interrupt_request", {}))
        self.client.get_control_msg(timeout=WAIT)
        self.assertLess(time.monotonic() - at, portal.delay, "an interrupt blocks the kernel")

        self.client.execute("%gpu release")
        self.says("The GPU is given back: It was released by %gpu release. The next cell asks for one again; the variables are lost.")
        self.until("the run is stopped", lambda: portal.stopped == 1)
        if CLUSTER:
            self.until("what forwarded to it has ended", self.closed)
        self.until("its files are removed", lambda: os.listdir(weir_kernel.KERNELS) == [])

        self.client.execute("%gpu reservation 5")
        self.says("The next start of this kernel asks for the GPUs of your reservation 5.")

        before = portal.looks
        self.client.execute("6 * 8")
        self.until("the next cell waits for the end of the run", lambda: portal.looks > before + 2)
        self.assertEqual(len(portal.started), 1, "both runs at once may be more than the limit")
        portal.view = dict(portal.view, state="ended")
        self.until("it starts another run", lambda: len(portal.started) == 2)
        self.assertEqual((portal.started[1]["reservation_id"], portal.started[1]["request"]), (5, {}))
        if CLUSTER:
            portal.begin()
            self.says("48")
            self.client.execute("import time; time.sleep(3600)")
            self.until("the cell is executed", lambda: kernel.run and kernel.run.busy)
            subprocess.run(["pkill", "-9", "-f", "weir_kernel.py --run"], check=True)  # not the real kernel, which has another name by now
            self.says("The GPU is given back: The connection to it was lost.")
            self.until("the run is stopped", lambda: portal.stopped == 2)


if __name__ == "__main__":
    program = unittest.main(argv=sys.argv[:1], exit=False)
    shutil.rmtree(DIR, ignore_errors=True)
    os._exit(not program.result.wasSuccessful())  # sockets that wait for the other side do not matter
