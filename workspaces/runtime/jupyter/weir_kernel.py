"""A kernel of Jupyter that holds a GPU only while it computes.

The kernel that Jupyter starts holds nothing. At the first cell it starts a run, which has the
GPU share and in which the real kernel is, and forwards the messages of both sides as they
are: they are signed with the same key. When the run has ended, the next cell starts another.

On one machine both are in sandboxes with a common directory of sockets. In a cluster the run is
a pod, whose program is this file, too: what comes over the network gets to the sockets of the
real kernel if it begins with the key.
"""

import ast
import calendar
import glob
import hashlib
import hmac
import http.client
import json
import math
import os
import queue
import re
import select
import signal
import socket
import struct
import sys
import threading
import time
import urllib.parse
import uuid

import zmq
from jupyter_client.session import Session

API = os.environ.get("WEIR_API")  # URL of the portal for pods; none on one machine, where it has a socket
SOCKET = os.environ.get("WEIR_SOCKET", "/run/weir-api/api.sock")
KERNELS = "/tmp/weir/kernels" if API else "/run/weir-kernels"  # there, in the sandboxes of this workspace and of its runs
LEASE = 30  # seconds without a renewal after which a run ends
RENEW = 5  # seconds between renewals
LOOK = 0.5  # seconds between looks at a run that has not started
SETTLE = 60  # seconds at most until the run before has ended
SILENT = 10  # seconds without an answer of the portal, or without the connection to the run, until it is told
HELLO = 10  # seconds at most until a connection has said who it is
MAX_HELLO = 8 << 10  # bytes
MAX_STRANGERS = 64  # connections at a time that have not said it yet
CHANNELS = ("shell", "control", "stdin")
DELIMITER = b"<IDS|MSG>"
OURS = b"weir"  # the identity of our own requests to the real kernel
HELP = """%gpu: the GPU of this kernel
%gpu 2x50: from the next start on, 2 GPUs with 50 cores each; %gpu 1x100 8192 adds MiB of memory per GPU
%gpu reservation 7: from the next start on, the GPUs of your reservation 7; 0 for none
%gpu keep: it is not idle
%gpu release: give it back now; the variables are lost"""


class Refused(Exception):
    """The portal has refused a request."""


class LocalConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(SOCKET)


def call(method, path, body=None, key=None):
    """Makes one request for JSON. It raises OSError without a response."""
    headers = {"Content-Type": "application/json"}
    if API:
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(API).netloc, timeout=20)
        headers["Authorization"] = "Bearer " + os.environ.get("WEIR_API_TOKEN", "")
    else:
        connection = LocalConnection("localhost", timeout=20)
    if key:
        headers["Idempotency-Key"] = key
    try:
        connection.request(method, "/api/v1" + path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        status, raw = response.status, response.read()
    except http.client.HTTPException as e:
        raise OSError("the portal does not answer: %s" % e)
    finally:
        connection.close()
    if status >= 500:
        raise OSError("the portal does not answer: %d" % status)
    if status == 429:
        raise OSError("too many requests")
    answer = json.loads(raw) if raw else {}
    if status >= 400:
        details = [answer.get("detail") or "status %d" % status]
        raise Refused(explained(details, answer.get("errors")))
    return answer


def explained(lines, problems):
    """Lines with the problems of fields."""
    return "\n".join(lines + ["%s: %s" % (p.get("field", ""), p.get("reason", "")) for p in problems or []])


class Run(threading.Thread):
    """One run, from its request on. The thread renews its lease and tells its states."""

    def __init__(self, request, reservation, command, before):
        super().__init__(daemon=True)
        self.request, self.before = request, before
        self.body = {"command": command, "name": title(), "lease_seconds": LEASE, "when_insufficient": "wait",
                     "directory": os.getcwd()}
        if reservation:  # whose GPUs are the default
            self.body.update(reservation_id=reservation, request=request)
        self.view = {}  # as the portal last showed it
        self.states = queue.Queue()  # views, and at last a text that says why it has ended
        self.busy, self.keep, self.ending = False, False, False
        self.wake = threading.Event()
        self.silence = ""  # why the portal has not answered for a while

    def run(self):
        try:
            if "request" not in self.body:
                self.body["request"] = self.request or self.patiently(default)
            self.settle()
            if self.ending:
                return self.states.put("it has ended")
            self.view = self.patiently(lambda: call("POST", "/runs", self.body, self.key))
            while not self.ending and self.view["state"] not in ("stopping", "ended"):
                self.states.put(self.view)
                self.wake.wait(RENEW if self.view["state"] == "running" else LOOK)
                self.wake.clear()
                self.renew()
            if self.ending:
                self.patiently(lambda: call("POST", self.path("/stop"), {}))
            self.states.put(self.view.get("reason") or "it has ended")
        except Exception as e:  # whatever it is, the cell ends and says so
            self.states.put(str(e) or repr(e))

    def settle(self):
        """Waits until the run before has ended: its share counts until then, and both can be more than the limit."""
        until = time.monotonic() + SETTLE
        while self.before and not self.ending and time.monotonic() < until:
            if self.before.view.get("state", "ended") == "ended":
                self.before = None
                return
            try:
                self.before.view = self.patiently(lambda: call("GET", self.before.path()))
            except Refused:  # it was deleted
                self.before.view = {}
            self.wake.wait(0.2)

    key = property(lambda self: self.__dict__.setdefault("_key", str(uuid.uuid4())))

    def path(self, end=""):
        return "/runs/%d%s" % (self.view["id"], end)

    def renew(self):
        if self.ending:
            return
        keep, self.keep = self.keep or self.busy, False
        try:
            self.view = self.patiently(lambda: call("POST", self.path("/renew"), {"worked": keep}))
        except Refused:
            self.view = self.patiently(lambda: call("GET", self.path()))  # it ends

    def patiently(self, request):
        """Repeats a request while the portal is restarted."""
        began = time.monotonic()
        while True:
            try:
                answer = request()
                self.silence = ""
                return answer
            except OSError as e:
                if time.monotonic() - began > SILENT:
                    self.silence = str(e) or repr(e)
                time.sleep(1)

    def end(self):
        self.ending = True
        self.wake.set()

    def kept(self):
        self.keep = True
        self.wake.set()

    def interrupt(self, failures):
        """Interrupts the cell. The portal may take its time, so this has a thread of its own."""

        def send():
            try:
                call("POST", self.path("/signal"), {"signal": "INT"})
            except (OSError, Refused) as e:
                failures.put("The cell was not interrupted: %s" % e)

        threading.Thread(target=send, daemon=True).start()


def both_ways(a, b):
    """Forwards the bytes of two sockets to each other until one of them ends. It reports whether b has sent any."""
    heard = []

    def forward(source, target):
        try:
            while True:
                data = source.recv(64 << 10)
                if not data:
                    break
                if source is b and not heard:
                    heard.append(True)
                target.sendall(data)
        except OSError:
            pass
        for s in (source, target):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:  # it has ended
                pass

    there = threading.Thread(target=forward, args=(a, b), daemon=True)
    there.start()
    forward(b, a)
    there.join()
    a.close()
    b.close()
    return bool(heard)


def attended(s):
    """A TCP connection that is noticed to be dead within a minute, also if nothing is sent for hours."""
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3)):
        s.setsockopt(socket.IPPROTO_TCP, option, value)
    return s


def digest(key):
    return hashlib.sha256(key.encode()).hexdigest()


class Tunnel:
    """The near end: sockets that lead to those of the real kernel in the pod at an address."""

    def __init__(self, address, real, tell):
        host, _, port = address.rpartition(":")
        self.target, self.real, self.tell = (host.strip("[]"), int(port)), real, tell
        self.near = dict(real, ip=real["ip"] + "-near")
        self.lost = None  # when a connection has ended, which is told
        self.closed, self.listeners = False, []
        os.makedirs(KERNELS, exist_ok=True)
        for channel in CHANNELS + ("iopub",):
            self.listeners.append(self.listen(real[channel + "_port"]))

    def listen(self, n):
        path = "%s-%d" % (self.real["ip"], n)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind("%s-%d" % (self.near["ip"], n))
        listener.listen()
        threading.Thread(target=self.accept, args=(listener, path), daemon=True).start()
        return listener

    def accept(self, listener, path):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                if self.closed:
                    return
                time.sleep(0.1)  # no descriptors are left
                continue
            threading.Thread(target=self.forward, args=(near, path), daemon=True).start()

    def forward(self, near, path):
        hello = json.dumps({"path": path, "connection": self.real}).encode()
        try:
            far = attended(socket.create_connection(self.target, HELLO))
            far.settimeout(None)
            far.sendall(struct.pack("!I", len(hello)) + hello)
        except OSError:  # it is not there yet; the other side of near tries again
            near.close()
            return
        if both_ways(near, far) and self.lost is None:
            self.lost = time.monotonic()
            self.tell()

    def close(self):
        self.closed = True
        for listener in self.listeners:
            try:
                listener.shutdown(socket.SHUT_RDWR)  # ends accept
            except OSError:
                pass
            listener.close()


class Entrance:
    """The far end, in the pod of a run: leads to the sockets of the real kernel."""

    def __init__(self, wanted, told):
        self.wanted, self.told = wanted, told  # the digest of the key; where the connection file is told, once
        self.lock, self.strangers = threading.Lock(), threading.BoundedSemaphore(MAX_STRANGERS)

    def serve(self, living):
        """Serves until the other end of a pipe is closed, as it is when the real kernel has ended."""
        both = {"family": socket.AF_INET6, "dualstack_ipv6": True} if socket.has_dualstack_ipv6() else {}
        listener = socket.create_server(("", int(os.environ["WEIR_RUN_PORT"])), **both)
        while True:
            ready, _, _ = select.select([listener, living], [], [])
            if living in ready:
                return
            try:
                far, _ = listener.accept()
            except OSError:  # it is gone again, or no descriptors are left
                time.sleep(0.1)
                continue
            if not self.strangers.acquire(blocking=False):
                far.close()
                continue
            try:
                threading.Thread(target=self.admit, args=(far,), daemon=True).start()
            except RuntimeError:  # there are too many processes
                far.close()
                self.strangers.release()

    def admit(self, far):
        try:
            path = self.greet(far)
            near = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            near.connect(path)
        except Exception:  # a stranger sent anything, or the real kernel is not there yet
            far.close()
            return
        finally:
            self.strangers.release()
        both_ways(near, far)

    def greet(self, far):
        """Returns the path of the socket that is asked for, by who knows the key."""
        attended(far)
        until = time.monotonic() + HELLO
        size, = struct.unpack("!I", exactly(far, 4, until))
        hello = json.loads(exactly(far, min(size, MAX_HELLO), until))
        connection = hello["connection"]
        if not hmac.compare_digest(digest(connection["key"]), self.wanted):
            raise ValueError("a stranger")
        far.settimeout(None)
        with self.lock:
            if self.told is not None:
                os.write(self.told, write_connection(connection).encode())
                os.close(self.told)
                self.told = None
        return hello["path"]


def exactly(s, n, until):
    """Reads n bytes until then."""
    data = b""
    while len(data) < n:
        s.settimeout(max(until - time.monotonic(), 0.001))
        piece = s.recv(n - len(data))
        if not piece:
            raise OSError("the connection has ended")
        data += piece
    return data


def write_connection(real):
    """Writes the connection file of a real kernel, beside its sockets."""
    path = real["ip"] + ".json"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o660), "w") as f:
            json.dump(real, f)
    except OSError:  # as on a full disk
        if os.path.exists(path):
            os.remove(path)
        raise
    return path


def run_real(wanted):
    """Becomes the real kernel as soon as somebody with the key is there. A process that is no child of it forwards to it."""
    path, told = os.pipe()
    living, life = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(path)
        os.close(life)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # which is for the cell
        try:
            if os.fork() == 0:
                Entrance(wanted, told).serve(living)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(told)
    os.set_inheritable(life, True)  # until the real kernel has ended
    with open(path) as f:
        file = f.read()
    if not file:
        sys.exit("the port for the kernel cannot be opened")
    os.execv(sys.executable, real_kernel(file))


def real_kernel(file):
    return [sys.executable, "-m", "ipykernel_launcher", "-f", file]


class Kernel:
    def __init__(self, connection):
        self.connection = connection
        self.session = Session(key=connection["key"].encode(), signature_scheme=connection["signature_scheme"])
        self.context = zmq.Context.instance()
        self.poller = zmq.Poller()
        self.front = {name: self.bind(name, zmq.ROUTER) for name in CHANNELS}
        self.iopub = self.bind("iopub", zmq.PUB)
        threading.Thread(target=self.heartbeat, daemon=True).start()
        self.request, self.reservation = {}, 0
        self.silent()
        self.waiting = []  # frames for the shell of a kernel that does not answer yet
        self.parent = {}  # header of the last cell, under which notices are shown
        self.count = 0
        self.lost = ""  # why the last run has ended, until a cell was told
        self.before = None  # the last run
        self.leaving = False
        self.failures = queue.Queue()  # texts of other threads

    def silent(self):
        """There is no run."""
        self.run, self.back, self.ready, self.asked = None, {}, False, 0
        self.tunnel = None
        self.pending = {}  # requests that the real kernel has not answered, by msg_id
        self.notice, self.shown = None, {}

    def address(self, name, connection):
        mark = "-" if connection["transport"] == "ipc" else ":"
        return "%s://%s%s%d" % (connection["transport"], connection["ip"], mark, connection[name + "_port"])

    def bind(self, name, kind):
        s = self.context.socket(kind)
        s.linger = 1000
        if kind == zmq.ROUTER:
            s.router_handover = 1
            self.poller.register(s, zmq.POLLIN)
        s.bind(self.address(name, self.connection))
        return s

    def heartbeat(self):
        s = self.bind("hb", zmq.REP)
        while True:
            s.send(s.recv())

    # Messages of our own.

    def publish(self, kind, content, parent=None):
        self.session.send(self.iopub, kind, content, parent=parent or self.parent, ident=b"kernel." + kind.encode())

    def reply(self, channel, message, idents, content):
        kind = message["header"]["msg_type"].replace("_request", "_reply")
        self.session.send(self.front[channel], kind, content, parent=message["header"], ident=idents)

    def say(self, text, parent=None, name="stderr"):
        self.publish("stream", {"name": name, "text": text + "\n"}, parent)

    def show(self, text, mark):
        """Shows a notice below the last cell, in the place of the one with the same mark."""
        if not self.parent or self.shown.get(mark) == text:
            return
        kind = "update_display_data" if mark in self.shown else "display_data"
        self.shown[mark] = text
        self.publish(kind, {"data": {"text/plain": text}, "metadata": {}, "transient": {"display_id": "weir-%s-%s" % (mark, id(self.run))}})

    def refuse(self, frames, why):
        """Answers a cell that cannot be run."""
        idents, message = self.read(frames)
        error = {"ename": "GPUError", "evalue": why, "traceback": [why]}
        self.publish("error", error, message["header"])
        self.reply("shell", message, idents, dict(error, status="error", execution_count=self.count))
        self.publish("status", {"execution_state": "idle"}, message["header"])

    def read(self, frames):
        idents, parts = self.session.feed_identities(frames, copy=True)
        # It is read without a check that it is new: it may be looked at again.
        header, parent, metadata, content = (json.loads(p) for p in parts[1:5])
        return idents, {"header": header, "content": content}

    # Messages of Jupyter.

    def received(self, channel, frames):
        if DELIMITER not in frames or not self.signed(frames):
            return
        idents, message = self.read(frames)
        kind, content = message["header"]["msg_type"], message["content"]
        if channel == "control" and kind in ("interrupt_request", "shutdown_request"):
            return getattr(self, kind)(message, idents)
        if channel == "shell" and kind == "shutdown_request":
            return self.shutdown_request(message, idents, "shell")
        if channel == "shell" and kind == "execute_request":
            words = content["code"].split()
            if words[:1] == ["%gpu"]:
                return self.command(message, idents, words[1:])
            return self.execute(frames, message)
        if self.ready:
            if channel == "shell":
                self.pending[message["header"]["msg_id"]] = None
                if kind.startswith("comm_") and kind != "comm_info_request":
                    self.run.keep = True  # a widget is used; the next renewal tells it
            return self.back[channel].send_multipart(frames)
        if channel != "stdin":
            self.answer(channel, message, idents)

    def signed(self, frames):
        at = frames.index(DELIMITER)
        return len(frames) >= at + 6 and self.session.sign(frames[at + 2 : at + 6]) == frames[at + 1]

    def answer(self, channel, message, idents):
        """Answers what can be said without a GPU."""
        kind, header, content = message["header"]["msg_type"], message["header"], message["content"]
        version = ".".join(map(str, sys.version_info[:3]))
        code = content.get("code", "")
        known = {
            "kernel_info_request": {
                "protocol_version": "5.3", "implementation": "weir", "implementation_version": "1", "help_links": [],
                "banner": "Python %s. The first cell attaches a GPU; %%gpu tells more." % version, "debugger": False,
                "language_info": {"name": "python", "version": version, "mimetype": "text/x-python", "file_extension": ".py",
                                  "pygments_lexer": "ipython3", "nbconvert_exporter": "python",
                                  "codemirror_mode": {"name": "ipython", "version": 3}}},
            "comm_info_request": {"comms": {}},
            "history_request": {"history": []},
            "complete_request": {"matches": [], "cursor_start": content.get("cursor_pos", 0),
                                 "cursor_end": content.get("cursor_pos", 0), "metadata": {}},
            "inspect_request": {"found": False, "data": {}, "metadata": {}},
            "is_complete_request": {"status": completeness(code), "indent": ""},
        }.get(kind)
        if known is None:
            return
        self.publish("status", {"execution_state": "busy"}, header)
        self.reply(channel, message, idents, dict({"status": "ok"}, **known))
        self.publish("status", {"execution_state": "idle"}, header)

    def execute(self, frames, message):
        if self.lost:
            self.say("The variables are lost, because the run of the GPU has ended: " + self.lost, message["header"])
            self.lost = ""
        if not message["content"].get("silent"):
            self.parent = message["header"]
        if self.ready:
            self.pending[message["header"]["msg_id"]] = frames
            self.busied()
            return self.back["shell"].send_multipart(frames)
        self.publish("status", {"execution_state": "busy"}, message["header"])
        self.waiting.append(frames)
        if self.run is None:
            try:
                self.attach()
            except OSError as e:
                self.waiting.remove(frames)
                self.refuse(frames, "The run of the GPU could not be started: %s" % e)

    def command(self, message, idents, words):
        """Executes a cell that begins with %gpu."""
        header = message["header"]
        self.publish("status", {"execution_state": "busy"}, header)
        share = re.fullmatch(r"(\d+)x(\d+)", words[0]) if words else None
        if not words:
            text = self.status()
        elif share and len(words) <= 2 and all(w.isdigit() for w in words[1:]):
            self.request = {"gpus": int(share[1]), "cores": int(share[2])}
            if len(words) == 2:
                self.request["gpu_memory_mib"] = int(words[1])
            text = self.chosen()
        elif words[0] == "reservation" and len(words) == 2 and words[1].isdigit():
            self.reservation, self.request = int(words[1]), {}
            text = self.chosen()
        elif words == ["keep"] and self.run:
            self.run.kept()
            text = "The GPU is kept."
        elif words == ["release"] and self.run:
            self.abandon("It was released by %gpu release.")
            text = "The GPU is given back."
        else:
            text = HELP if self.run or words == ["help"] else self.status() + "\n" + HELP
        self.say(text, header, "stdout")
        self.reply("shell", message, idents, {"status": "ok", "execution_count": self.count, "payload": [], "user_expressions": {}})
        self.publish("status", {"execution_state": "idle"}, header)

    def chosen(self):
        text = "The next start of this kernel asks for %s." % self.wanted()
        return text + " Until %gpu release it has what it has." if self.run else text

    def wanted(self):
        of = " of your reservation %d" % self.reservation if self.reservation else ""
        if not self.request:
            return "the GPUs" + of if of else "the GPU share of the launch parameters of the project"
        return "%(gpus)d GPU with %(cores)d cores each" % self.request + of

    def status(self):
        if self.run is None:
            return "No GPU is in use. The next cell asks for %s." % self.wanted()
        return "Run %s is %s: %s." % (self.run.view.get("id", "?"), self.run.view.get("state", "asked for"), demand(self.run.view))

    def interrupt_request(self, message, idents):
        if self.ready:
            self.run.interrupt(self.failures)
        elif self.run:
            self.abandon("It was interrupted.")
            self.lost = ""
        self.reply("control", message, idents, {"status": "ok"})

    def shutdown_request(self, message, idents, channel="control"):
        if self.run:
            self.run.end()
        self.reply(channel, message, idents, {"status": "ok", "restart": message["content"].get("restart", False)})
        self.leaving = True

    # The run.

    def attach(self):
        name = uuid.uuid4().hex[:16]
        real = dict(self.connection, transport="ipc", ip="%s/%s" % (KERNELS, name), kernel_name="python3")
        for i, channel in enumerate(("shell", "iopub", "stdin", "control", "hb")):
            real[channel + "_port"] = i + 1
        self.real = real
        command = [sys.executable, os.path.abspath(__file__), "--run", digest(real["key"])] if API else real_kernel(write_connection(real))
        self.run = Run(self.request, self.reservation, command, self.before)
        self.run.start()

    def connect(self, address):
        """Connects to the real kernel, which may not be there yet; in a pod, at an address."""
        if address:
            self.tunnel = Tunnel(address, self.real, self.run.wake.set)
        real = self.tunnel.near if address else self.real
        identity = uuid.uuid4().hex.encode()
        for name in CHANNELS + ("iopub",):
            s = self.context.socket(zmq.SUB if name == "iopub" else zmq.DEALER)
            s.linger = 1000
            if name == "iopub":
                s.subscribe(b"")
            else:
                s.identity = identity
            s.connect(self.address(name, real))
            self.poller.register(s, zmq.POLLIN)
            self.back[name] = s

    def ask(self):
        """Asks the real kernel whether it is there and we hear what it publishes."""
        if time.monotonic() - self.asked > 0.2:
            self.asked = time.monotonic()
            self.session.send(self.back["shell"], "kernel_info_request", {}, ident=OURS)

    def heard(self, name, frames):
        """Forwards a message of the real kernel."""
        if DELIMITER not in frames:
            return
        at = frames.index(DELIMITER)
        if OURS in frames[:at]:
            return
        header, parent = json.loads(frames[at + 2]), json.loads(frames[at + 3])
        if name == "iopub" and parent.get("session") == self.session.session:
            return self.begin()  # it answers us
        if name == "iopub" and header["msg_type"] == "iopub_welcome":
            return
        if name == "shell":
            self.pending.pop(parent.get("msg_id"), None)
            if header["msg_type"] == "execute_reply":
                self.count = json.loads(frames[at + 5]).get("execution_count", self.count)
            self.busied()
        (self.iopub if name == "iopub" else self.front[name]).send_multipart(frames)

    def begin(self):
        """Gives the real kernel what has waited for it."""
        if self.ready:
            return
        self.ready = True
        self.show("GPU: %s, by run %d." % (demand(self.run.view), self.run.view["id"]), "wait")
        for frames in self.waiting:
            self.pending[self.read(frames)[1]["header"]["msg_id"]] = frames
            self.back["shell"].send_multipart(frames)
        self.waiting = []
        self.busied()

    def busied(self):
        """Tells the run whether a cell is executed; that one was is work, too."""
        busy = any(self.pending.values())
        if busy != self.run.busy:
            self.run.busy, self.run.keep = busy, True
            if not busy:
                self.run.wake.set()

    def look(self):
        """Sees how the run goes on."""
        while not self.failures.empty():
            self.say(self.failures.get())
        if not self.run:
            return
        while not self.run.states.empty():
            state = self.run.states.get()
            if isinstance(state, str):
                return self.detach(state)
            if state["state"] == "running" and not self.back and (state.get("address") or not API):
                try:
                    self.connect(state.get("address"))
                except OSError as e:  # as on a full disk
                    return self.abandon("There is no way to it: %s." % e)
            self.tell(state)
        if self.run.silence:
            self.show("The portal has not answered for a while: " + self.run.silence, "portal")
        if self.back and not self.ready:
            self.ask()
        # Usually it has ended, and the portal tells why.
        if self.ready and self.tunnel and self.tunnel.lost and time.monotonic() - self.tunnel.lost > SILENT:
            self.abandon("The connection to it was lost.")

    def tell(self, view):
        """Tells below the cell what the run waits for, and that it will be ended as idle."""
        if view["state"] == "queued":
            text = "Waiting for the GPU"
            if view.get("position"):
                text += ", position %d" % view["position"]
            if view.get("estimate"):
                text += ", estimated start: %s" % view["estimate"].get("text", "")
            self.show("%s. %s" % (text, view.get("reason", "")), "wait")
        elif not self.ready:
            self.show("The GPU is attached: %s. Python starts." % demand(view), "wait")
        elif view.get("reminded") and view.get("idle_ends_at"):
            self.notice = "The GPU is idle and is given back in %s. %%gpu keep keeps it, %%gpu release gives it back now." % left(view["idle_ends_at"])
            self.show(self.notice, "idle")
        elif self.notice:
            self.notice = None
            self.show("The GPU is kept.", "idle")

    def abandon(self, why):
        run = self.run
        run.end()
        self.detach(why)

    def detach(self, why):
        """The run has ended: what it has not answered gets an error."""
        unanswered = [f for f in self.pending.values() if f] + self.waiting
        if self.ready:
            self.lost = why
            self.show("The GPU is given back: %s The next cell asks for one again; the variables are lost." % why, "idle")
        for s in self.back.values():
            self.poller.unregister(s)
            s.close()
        if self.tunnel:
            self.tunnel.close()
        self.remove()
        self.waiting = []
        self.before = self.run if self.run.view else self.run.before
        self.silent()
        for frames in unanswered:
            self.lost = ""
            self.refuse(frames, "The GPU is not available: " + why)

    def remove(self):
        """Removes the files of the real kernel, which may be killed before it does."""
        for path in glob.glob(glob.escape(self.real["ip"]) + "[.-]*"):
            try:
                os.remove(path)
            except OSError:
                pass

    def serve(self):
        while not self.leaving:
            ready = dict(self.poller.poll(100))
            for name, s in list(self.front.items()):
                if s in ready:
                    self.received(name, s.recv_multipart())
            for name, s in list(self.back.items()):
                while self.back.get(name) is s and s.poll(0):
                    self.heard(name, s.recv_multipart())
            self.look()
        if self.run:
            self.run.join(10)  # its end is asked for
            self.remove()


def title():
    """What the runs are called: as the kernel and, if Jupyter names it, the notebook."""
    notebook = os.path.basename(os.environ.get("JPY_SESSION_NAME", ""))
    name = "Python (GPU) " + "".join(c for c in notebook if c.isprintable())
    return name[:100].strip()


def default():
    """What the launch parameters give, or what the role's limit allows of a whole GPU if they give none."""
    preview = call("POST", "/runs/preview", {"command": ["python"]})
    if "target" not in preview:  # no environment can be used
        raise Refused(explained([preview.get("message") or "no environment can be used"], preview.get("problems")))
    limit = preview["resources"]["limit"]["gpu_cores"]
    return {} if preview["target"]["demand"]["gpus"] else {"gpus": 1, "cores": max(min(limit, 100), 1)}


def completeness(code):
    """Whether a cell is complete, as far as Python itself can tell."""
    try:
        ast.parse(code)
        return "complete"
    except SyntaxError:
        return "unknown"


def demand(view):
    d = view.get("demand")
    if not d:
        return "a GPU share"
    return "%d × %d cores" % (d.get("gpus", 0), d.get("cores", 0))


def left(moment, now=None):
    """The time until a moment of the portal, in words: in minutes, and in seconds at last."""
    end = calendar.timegm(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S"))
    seconds = max(math.ceil(end - (time.time() if now is None else now)), 0)
    n, unit = (seconds, "second") if seconds < 60 else (math.ceil(seconds / 60), "minute")
    return "%d %s%s" % (n, unit, "" if n == 1 else "s")


def main():
    if sys.argv[1] == "--run":
        run_real(sys.argv[2])
    with open(sys.argv[sys.argv.index("-f") + 1]) as f:
        connection = json.load(f)
    Kernel(connection).serve()


if __name__ == "__main__":
    main()
