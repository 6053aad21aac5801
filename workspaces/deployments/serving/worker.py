"""The reference worker: it holds one part of a model and computes it.

It reads /deployment/part.json and /deployment/part.safetensors, loads what it finds, computes it as
layers.py beside it says, and answers where WEIR_PART_ADDRESS says.
The protocol is in docs/how-to/deployments.md. The key is in WEIR_PART_KEY.

After a failure to compute, such as an error of the GPU, or a computation that takes too long,
it ends: its state is not known then, and another process takes its place.
"""
import contextlib, ctypes, datetime, hashlib, hmac, json, os, select, socket, struct, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # which PYTHONSAFEPATH leaves out
from layers import library, part_of, read_tensors, torch

VERSION = 3  # of the protocol
MAX_HEADER, MAX_PAYLOAD = 64 << 10, 64 << 20
COMPUTE_SECONDS = 300  # of one frame
RENDER_SECONDS = 10  # of a conversation
AUTHENTICATE_SECONDS = 30  # of a connection
MAX_PROMPT = 4 << 20  # bytes of what its template makes
BROKEN = 70  # exit code


def end(why):
    """Ends the process, also if other threads hang in the driver of a GPU."""
    print(why, file=sys.stderr, flush=True)
    os._exit(BROKEN)


@contextlib.contextmanager
def watched(seconds):
    """Ends the process if what is inside takes longer, or fails for another reason than memory."""
    timer = threading.Timer(seconds, end, ("a computation took more than %d seconds" % seconds,))
    timer.daemon = True
    timer.start()
    try:
        yield
    except MemoryError:
        raise
    except Exception as e:
        if torch and isinstance(e, torch.cuda.OutOfMemoryError):
            torch.cuda.empty_cache()
            raise
        end("computing failed: %s: %s" % (type(e).__name__, str(e).split("\n")[0]))
    finally:
        timer.cancel()


class Slow(Exception):
    def __str__(self):
        return "it takes more than %d seconds" % RENDER_SECONDS


@contextlib.contextmanager
def interrupted(seconds):
    """Raises Slow in this thread if the Python code inside takes longer: other requests go on."""
    thread, over, guard = threading.get_ident(), False, threading.Lock()

    def interrupt():
        with guard:
            if not over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Slow))

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with guard:
            over = True
        timer.cancel()


def render(request):
    """Returns the prompt for a conversation by the template of the model, and why there is none. The
    environment is that of transformers (utils/chat_template_utils.py)."""
    try:
        import jinja2.ext, jinja2.sandbox
    except ImportError:
        return "", "the environment has no Jinja2"

    def fail(message):
        raise jinja2.TemplateError(message)

    class Generation(jinja2.ext.Extension):
        """{% generation %} marks for training what a model has written."""

        tags = {"generation"}

        def parse(self, parser):
            next(parser.stream)
            return parser.parse_statements(["name:endgeneration"], drop_needle=True)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])
    env.filters["tojson"] = lambda x, **options: json.dumps(x, ensure_ascii=False, **options)
    env.globals.update(raise_exception=fail, strftime_now=lambda form: datetime.datetime.now().strftime(form))
    template = request.pop("template")
    try:
        with interrupted(RENDER_SECONDS):
            text = env.from_string(template).render(add_generation_prompt=True, tools=None, documents=None, **request)
        return (text, "") if len(text.encode("utf-8", "replace")) <= MAX_PROMPT else ("", "it has more than %d bytes" % MAX_PROMPT)
    except Exception as e:  # whatever the template does
        return "", "%s" % (str(e) or type(e).__name__)


def receive(conn, size):
    parts = bytearray()
    while len(parts) < size:
        piece = conn.recv(min(size - len(parts), 1 << 20))
        if not piece:
            raise EOFError
        parts += piece
    return bytes(parts)


def receive_frame(conn):
    head, size = struct.unpack("<II", receive(conn, 8))
    if head > MAX_HEADER or size > MAX_PAYLOAD:
        raise ValueError("the frame is too large")
    return json.loads(receive(conn, head)), receive(conn, size)


def send_frame(conn, header, payload=b""):
    text = json.dumps(header).encode()
    conn.sendall(struct.pack("<II", len(text), len(payload)) + text + payload)


def max_memory(on):
    """The most bytes that PyTorch has reserved on its GPU, or on CPUs that the process has had; 0: not known.
    What getrusage returns can be that of the program that has started this one."""
    if on == "cuda":
        return torch.cuda.max_memory_reserved()
    try:
        with open("/proc/self/status") as f:
            return next((int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM:")), 0)
    except OSError:
        return 0


def gone(conn):
    """Whether the other side has closed a connection."""
    return bool(select.select([conn], [], [], 0)[0]) and not conn.recv(1, socket.MSG_PEEK)


class Server:
    def __init__(self, key, sequences, connections):
        self.key, self.progress, self.part, self.adds = key, 0, None, False
        self.unknown, self.known = threading.Semaphore(64), threading.Semaphore(connections)  # connections, by whether they have the key
        self.sequences = threading.Semaphore(sequences)  # that can still begin
        self.lock, self.begun, self.computing = threading.Lock(), 0, 0
        self.turn = threading.Lock()  # one sequence computes at a time, so that the next part has something to do soon
        self.busy, self.began = 0.0, None  # seconds that it has computed, without what has begun then
        self.active, self.since = 0.0, 0.0  # seconds that it has had sequences, until since

    def sign(self, who, *nonces):
        return hmac.new(self.key, who + b"".join(nonces), hashlib.sha256).digest()

    def authenticate(self, conn):
        mine = os.urandom(32)
        conn.sendall(mine)
        theirs = receive(conn, 32)
        if not hmac.compare_digest(receive(conn, 32), self.sign(b"front", mine, theirs)):
            raise PermissionError("the key is wrong")
        conn.sendall(self.sign(b"part", theirs, mine))

    def serve(self, conn):
        """Answers one connection, which is one sequence with its keys and values."""
        cache, at, began, known = {}, 0, False, False
        with conn:
            try:
                try:
                    late = threading.Timer(AUTHENTICATE_SECONDS, conn.shutdown, (socket.SHUT_RDWR,))
                    late.start()
                    self.authenticate(conn)
                finally:
                    late.cancel()
                    self.unknown.release()
                self.known.acquire()
                known = True
                while True:
                    conn.settimeout(600)
                    header, payload = receive_frame(conn)
                    if header["op"] == "status":
                        send_frame(conn, self.status())
                        continue
                    if header["op"] == "begin":
                        if began:
                            raise ValueError("out of order")
                        self.begin(conn)
                        began = True
                        send_frame(conn, {})
                        continue
                    if header["op"] == "render":
                        with watched(10 * RENDER_SECONDS):
                            text, why = render(json.loads(payload))
                        send_frame(conn, {"error": why[:500]} if why else {}, text.encode("utf-8", "replace"))
                        continue
                    n = header["tokens"]
                    if self.part is None or header["op"] != "forward" or header["at"] != at or n < 1:
                        raise ValueError("out of order")
                    if not self.part.accepts(n, at, len(payload)):
                        raise ValueError("the payload does not fit the number of tokens")
                    if "texts" in header:
                        if min(header["texts"]) < 1 or sum(header["texts"]) != n:
                            raise ValueError("the texts do not fit the number of tokens")
                        cache["texts"] = header["texts"]
                    result = self.compute(conn, payload, n, at, cache)
                    at += n
                    send_frame(conn, {"tokens": n, "at": at}, result)
            except EOFError:
                pass
            except Exception as e:  # the front sees the end of the connection, and the log the cause
                print("connection: %s: %s" % (type(e).__name__, e), file=sys.stderr, flush=True)
            finally:
                if began:
                    self.end()
                if known:
                    self.known.release()

    def status(self):
        name, on = (self.part.xp.name, self.part.xp.on) if self.part else ("", "")
        with self.lock:
            self.count()
            busy = self.busy + (time.monotonic() - self.began if self.began else 0)
            return {"ready": self.part is not None, "progress": self.progress, "library": name, "device": on, "version": VERSION,
                    "begun": self.begun, "computing": self.computing, "busy": int(1000 * busy), "active": int(1000 * self.active),
                    "memory": max_memory(on)}

    def begin(self, conn):
        """Waits until another sequence can be computed: the fronts do not know of each other's."""
        while not self.sequences.acquire(timeout=0.2):
            if gone(conn):
                raise EOFError
        with self.lock:
            self.count()
            self.begun, self.computing = self.begun + 1, self.computing + 1

    def end(self):
        with self.lock:
            self.count()
            self.computing -= 1
        self.sequences.release()

    def count(self):
        """Counts the time in which there are sequences, with the lock."""
        now = time.monotonic()
        if self.computing:
            self.active += now - self.since
        self.since = now

    def compute(self, conn, payload, n, at, cache):
        """Returns the result of the part. What several parts add up is added by the front."""
        steps, total, width, xp = self.part.forward(payload, n, at, cache), None, 0, self.part.xp
        while True:
            with self.turn:
                if gone(conn):
                    raise EOFError
                self.began = time.monotonic()
                with watched(COMPUTE_SECONDS):
                    try:
                        summand = steps.send(total if total is None else xp.floats(total, (n, width)))
                        while not self.adds:
                            summand = steps.send(summand)
                        width = summand if isinstance(summand, int) else summand.shape[1]
                        summand = b"" if isinstance(summand, int) else xp.bytes(summand)
                    except StopIteration as end:
                        return end.value
                    finally:
                        with self.lock:
                            self.busy, self.began = self.busy + time.monotonic() - self.began, None
            send_frame(conn, {"tokens": n, "at": at, "add": True}, summand)
            header, total = receive_frame(conn)
            if header["op"] != "sum" or len(total) != 4 * n * width:
                raise ValueError("out of order")

    def accept(self, listener):
        while True:
            self.unknown.acquire()
            conn, _ = listener.accept()
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()


def main():
    with open("/deployment/part.json") as f:
        part = json.load(f)
    server = Server(bytes.fromhex(os.environ.pop("WEIR_PART_KEY")), part.get("sequences", part["connections"] - 2), part["connections"])
    server.adds = part.get("add", False)
    listener = listen(os.environ["WEIR_PART_ADDRESS"])
    accepting = threading.Thread(target=server.accept, args=(listener,))
    accepting.start()
    try:
        server.part = load(server, part)
    except BaseException as e:  # also of memory; the thread that accepts would go on
        end("loading failed: %s: %s" % (type(e).__name__, str(e).split("\n")[0]))
    accepting.join()


def listen(address):
    """Listens at the path of a socket, or at :PORT on all addresses."""
    if address.startswith("/"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen(64)
        return listener
    at = ("", int(address[1:]))
    if socket.has_dualstack_ipv6():
        listener = socket.create_server(at, family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
    else:
        listener = socket.create_server(at, backlog=64)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # of a front whose machine is gone, its sequences end
    for option, value in (socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3):
        listener.setsockopt(socket.IPPROTO_TCP, option, value)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def load(server, part):
    def progress(percent):
        server.progress = percent

    xp = library()
    if xp.on == "cpu" and not os.environ.get("WEIR_GPU_SIMULATED"):
        raise RuntimeError("the share of a GPU would not be used: " + (
            "PyTorch finds no CUDA GPU; the environment needs PyTorch with CUDA for the driver of the machine" if torch else
            "NumPy computes on CPUs; the environment needs PyTorch with CUDA"))
    tensors = read_tensors("/deployment/part.safetensors", xp, progress)
    loaded = part_of(xp, part["config"], tensors, part)
    with watched(COMPUTE_SECONDS):
        loaded.try_out()
    print("loaded %d tensors with %s" % (len(tensors), xp.name), flush=True)
    return loaded


main()
