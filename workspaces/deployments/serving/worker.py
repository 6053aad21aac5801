"""The reference worker: it holds one part of a decoder and computes it.

It reads /deployment/part.json and /deployment/part.safetensors, loads what it finds with
PyTorch if that is there, else with NumPy, and answers on the socket /run/weir/part.sock.
The protocol is in docs/how-to/deployments.md. The key is in WEIR_PART_KEY.

After a failure to compute, such as an error of the GPU, or a computation that takes too long,
it ends: its state is not known then, and another process takes its place.
"""
import collections, contextlib, datetime, hashlib, hmac, json, mmap, os, re, select, socket, struct, sys, threading

try:
    import torch
except ImportError:
    torch = None
    import numpy as np

MAX_HEADER, MAX_PAYLOAD = 64 << 10, 64 << 20
COMPUTE_SECONDS = 300  # of one frame
RENDER_SECONDS = 10  # of a conversation
MAX_PROMPT = 4 << 20  # bytes of what its template makes
DRIVER_MIB = 640  # of a share, for what CUDA loads besides tensors
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


class Numpy:
    """The few operations of a decoder on float32 arrays of NumPy."""

    name = "numpy"

    def compute_in(self, kind): pass  # NumPy has no bfloat16

    def load(self, raw, kind, shape):
        if kind == "BF16":
            wide = np.frombuffer(raw, "<u2").astype(np.uint32) << 16
            return wide.view(np.float32).reshape(shape)
        return np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[kind]).astype(np.float32).reshape(shape)

    def floats(self, raw, shape): return np.frombuffer(raw, "<f4").reshape(shape)
    def ids(self, raw): return np.frombuffer(raw, "<i4")
    def bytes(self, x): return np.ascontiguousarray(x, "<f4").tobytes()
    def norm(self, x, weight, eps): return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight
    def silu(self, x): return x / (1 + np.exp(-x))
    def join(self, a, b, axis): return np.concatenate((a, b), axis)
    def swap(self, x, a, b): return x.swapaxes(a, b)

    def angles(self, at, n, width, base):
        a = np.outer(np.arange(at, at + n), base ** (-np.arange(0, width, 2) / width))
        return np.cos(a).astype(np.float32), np.sin(a).astype(np.float32)

    def attend(self, q, k, v, at):
        """Returns the values for each of the last tokens, from position at on."""
        k, v = (np.repeat(x, len(q) // len(x), 0) for x in (k, v))
        n = q.shape[1]
        scores = q @ k.swapaxes(1, 2) / q.shape[2] ** 0.5 + np.triu(np.full((n, at + n), -np.inf, np.float32), at + 1)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) @ v


class Torch:
    """The same on tensors of PyTorch. On a GPU, they have the type of most weights, for which
    memory is planned, and only the share's memory is used."""

    name = "torch"

    def __init__(self):
        torch.set_grad_enabled(False)
        self.kinds = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
        self.on, self.kind = "cuda" if torch.cuda.is_available() else "cpu", torch.float32
        if self.on == "cuda":
            torch.set_num_threads(1)  # the GPU computes; more threads than CPUs hinder each other
            torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a plan for each length, in about 40 ms
            share = int(os.environ.get("WEIR_GPU_MEMORY_MIB", "0").split(",")[0]) - DRIVER_MIB
            if share > 0:
                torch.cuda.set_per_process_memory_fraction(min(1.0, share * 2**20 / torch.cuda.mem_get_info()[1]))

    def compute_in(self, kind):
        if self.on == "cuda":
            self.kind = self.kinds[kind]

    def load(self, raw, kind, shape):
        return torch.frombuffer(bytearray(raw), dtype=self.kinds[kind]).reshape(shape).to(self.on, self.kind)

    def floats(self, raw, shape): return torch.frombuffer(bytearray(raw), dtype=torch.float32).reshape(shape).to(self.on, self.kind)
    def ids(self, raw): return torch.frombuffer(bytearray(raw), dtype=torch.int32).long().to(self.on)
    def bytes(self, x): return x.float().contiguous().cpu().numpy().tobytes()
    def silu(self, x): return torch.nn.functional.silu(x)
    def join(self, a, b, axis): return torch.cat((a, b), axis)
    def swap(self, x, a, b): return x.transpose(a, b)

    def norm(self, x, weight, eps):
        wide = x.float()
        return (wide / torch.sqrt((wide * wide).mean(-1, keepdim=True) + eps)).to(self.kind) * weight

    def angles(self, at, n, width, base):
        even = torch.arange(0, width, 2, device=self.on).double()
        a = torch.outer(torch.arange(at, at + n, device=self.on).double(), base ** (-even / width))
        return torch.cos(a).to(self.kind), torch.sin(a).to(self.kind)

    def attend(self, q, k, v, at):
        k, v = (torch.repeat_interleave(x, len(q) // len(x), 0) for x in (k, v))
        n, mask = q.shape[1], None
        if at > 0 and n > 1:
            mask = torch.ones(n, at + n, dtype=torch.bool, device=self.on).tril(at)
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], mask, is_causal=at == 0)[0]


def read_tensors(path, xp, progress):
    """Returns the tensors of a safetensors file by name."""
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        size = struct.unpack("<Q", m[:8])[0]
        header = json.loads(m[8 : 8 + size])
        header.pop("__metadata__", None)
        sizes = collections.Counter()
        for t in header.values():
            sizes[t["dtype"]] += t["data_offsets"][1] - t["data_offsets"][0]
        xp.compute_in(sizes.most_common(1)[0][0])
        tensors, done, total = {}, 0, max(len(m) - 8 - size, 1)
        for name, t in header.items():
            start, end = t["data_offsets"]
            tensors[name] = xp.load(m[8 + size + start : 8 + size + end], t["dtype"], t["shape"])
            done += end - start
            progress(100 * done // total)
        return tensors


class Part:
    """Some layers of a decoder with names as those of Llama, or some attention heads of all layers
    with rows and columns of the other matrices: of the vocabulary, those from token `offset` on."""

    def __init__(self, xp, config, tensors, first, last, offset):
        self.xp, self.t, self.first, self.last, self.offset = xp, tensors, first, last, offset
        self.width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        self.hidden, self.eps = config["hidden_size"], config.get("rms_norm_eps") or 1e-6
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        self.base = rope.get("rope_theta") or config.get("rope_theta") or 10000.0
        names = (re.match(r"model\.layers\.(\d+)\.", name) for name in tensors)
        self.layers = sorted({int(m[1]) for m in names if m})

    def rotate(self, x, cos, sin):
        half = self.width // 2
        a, b = x[..., :half], x[..., half:]
        return self.xp.join(a * cos - b * sin, b * cos + a * sin, -1)

    def attention(self, x, at, angles, cache, layer):
        xp, t, n = self.xp, self.t, x.shape[0]
        name = "model.layers.%d.self_attn." % layer

        def project(what):
            return xp.swap((x @ t[name + what + "_proj.weight"].T).reshape(n, -1, self.width), 0, 1)

        q, k, v = self.rotate(project("q"), *angles), self.rotate(project("k"), *angles), project("v")
        if at > 0:
            k, v = xp.join(cache[layer][0], k, 1), xp.join(cache[layer][1], v, 1)
        cache[layer] = k, v
        out = xp.swap(xp.attend(q, k, v, at), 0, 1).reshape(n, -1)
        return out @ t[name + "o_proj.weight"].T

    def embed(self, ids):
        rows = self.t["model.embed_tokens.weight"]
        ids = ids - self.offset
        mine = (ids >= 0) & (ids < len(rows))
        return rows[ids * mine] * mine[:, None]

    def feed_forward(self, x, name):
        t = self.t
        gated = self.xp.silu(x @ t[name + "gate_proj.weight"].T) * (x @ t[name + "up_proj.weight"].T)
        return gated @ t[name + "down_proj.weight"].T

    def forward(self, payload, n, at, cache):
        """Returns the hidden states of n tokens from position at on, or of the last one its logits.
        It yields its summands of what parts with other heads add up, and is sent the sums."""
        xp, t = self.xp, self.t
        if self.first:
            x = yield self.embed(xp.ids(payload))
        else:
            x = xp.floats(payload, (n, self.hidden))
        angles = xp.angles(at, n, self.width, self.base)
        for layer in self.layers:
            name = "model.layers.%d." % layer
            x = x + (yield self.attention(xp.norm(x, t[name + "input_layernorm.weight"], self.eps), at, angles, cache, layer))
            x = x + (yield self.feed_forward(xp.norm(x, t[name + "post_attention_layernorm.weight"], self.eps), name + "mlp."))
        if not self.last:
            return xp.bytes(x)
        x = xp.norm(x[-1], t["model.norm.weight"], self.eps)
        head = t["lm_head.weight"] if "lm_head.weight" in t else t["model.embed_tokens.weight"]
        return xp.bytes(head @ x)


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


class Server:
    def __init__(self, key):
        self.key, self.progress, self.part, self.tokens, self.adds = key, 0, None, 0, False
        self.turn = threading.Lock()  # one sequence computes at a time, so that the next part has something to do soon

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
        cache, at = {}, 0
        with conn:
            try:
                conn.settimeout(60)
                self.authenticate(conn)
                while True:
                    conn.settimeout(600)
                    header, payload = receive_frame(conn)
                    if header["op"] == "status":
                        name = self.part.xp.name if self.part else ""
                        send_frame(conn, {"ready": self.part is not None, "progress": self.progress, "library": name})
                        continue
                    if header["op"] == "render":
                        with watched(RENDER_SECONDS):
                            text, why = render(json.loads(payload))
                        send_frame(conn, {"error": why[:500]} if why else {}, text.encode("utf-8", "replace"))
                        continue
                    n = header["tokens"]
                    if self.part is None or header["op"] != "forward" or header["at"] != at or n < 1 or at + n > self.tokens:
                        raise ValueError("out of order")
                    if len(payload) != 4 * n * (1 if self.part.first else self.part.hidden):
                        raise ValueError("the payload does not fit the number of tokens")
                    result = self.compute(conn, payload, n, at, cache)
                    at += n
                    send_frame(conn, {"tokens": n, "at": at}, result)
            except EOFError:
                pass
            except Exception as e:  # the front sees the end of the connection, and the log the cause
                print("connection: %s: %s" % (type(e).__name__, e), file=sys.stderr, flush=True)

    def compute(self, conn, payload, n, at, cache):
        """Returns the result of the part. What parts with other heads add up is added by the front."""
        steps, total, xp = self.part.forward(payload, n, at, cache), None, self.part.xp
        while True:
            with self.turn:
                if select.select([conn], [], [], 0)[0] and not conn.recv(1, socket.MSG_PEEK):
                    raise EOFError  # whoever has sent this has gone meanwhile
                with watched(COMPUTE_SECONDS):
                    try:
                        summand = steps.send(total if total is None else xp.floats(total, (n, self.part.hidden)))
                        while not self.adds:
                            summand = steps.send(summand)
                        summand = xp.bytes(summand)
                    except StopIteration as end:
                        return end.value
            send_frame(conn, {"tokens": n, "at": at, "add": True}, summand)
            header, total = receive_frame(conn)
            if header["op"] != "sum" or len(total) != 4 * n * self.part.hidden:
                raise ValueError("out of order")

    def accept(self, listener, connections):
        free = threading.Semaphore(connections)
        while True:
            free.acquire()
            conn, _ = listener.accept()

            def handle(conn=conn):
                try:
                    self.serve(conn)
                finally:
                    free.release()

            threading.Thread(target=handle, daemon=True).start()


def main():
    server = Server(bytes.fromhex(os.environ.pop("WEIR_PART_KEY")))
    with open("/deployment/part.json") as f:
        part = json.load(f)
    server.tokens, server.adds = part["context"], part.get("add", False)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("/run/weir/part.sock")
    listener.listen(64)
    accepting = threading.Thread(target=server.accept, args=(listener, part["connections"]))
    accepting.start()
    xp = Torch() if torch else Numpy()

    def progress(percent):
        server.progress = percent

    tensors = read_tensors("/deployment/part.safetensors", xp, progress)
    server.part = Part(xp, part["config"], tensors, part["first"], part["last"], part.get("offset", 0))
    print("loaded %d tensors with %s" % (len(tensors), xp.name), flush=True)
    accepting.join()


main()
