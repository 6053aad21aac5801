"""The reference worker: it holds one part of a model and computes it.

It reads /deployment/part.json and /deployment/part.safetensors, loads what it finds with
PyTorch if that is there, else with NumPy, and answers where WEIR_PART_ADDRESS says.
The protocol is in docs/how-to/deployments.md. The key is in WEIR_PART_KEY.

After a failure to compute, such as an error of the GPU, or a computation that takes too long,
it ends: its state is not known then, and another process takes its place.
"""
import collections, contextlib, datetime, hashlib, hmac, json, math, mmap, os, re, select, socket, struct, sys, threading

try:
    import torch
except ImportError:
    torch = None
    import numpy as np

VERSION = 2  # of the protocol
MAX_HEADER, MAX_PAYLOAD = 64 << 10, 64 << 20
COMPUTE_SECONDS = 300  # of one frame
RENDER_SECONDS = 10  # of a conversation
AUTHENTICATE_SECONDS = 30  # of a connection
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
    """The few operations of models on float32 arrays of NumPy."""

    name = "numpy"

    def compute_in(self, kind): pass  # NumPy has no bfloat16

    def load(self, raw, kind, shape):
        if kind == "BF16":
            wide = np.frombuffer(raw, "<u2").astype(np.uint32) << 16
            return wide.view(np.float32).reshape(shape)
        return np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[kind]).astype(np.float32).reshape(shape)

    def floats(self, raw, shape): return np.frombuffer(raw, "<f4").reshape(shape)
    def ids(self, raw): return np.frombuffer(raw, "<i4")
    def like(self, x, other): return x
    def bytes(self, x): return np.ascontiguousarray(x, "<f4").tobytes()
    def norm_by(self, x, eps): return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    def norm(self, x, weight, eps): return self.norm_by(x, eps) * weight
    def silu(self, x): return x / (1 + np.exp(-x))
    def join(self, a, b, axis): return np.concatenate((a, b), axis)
    def swap(self, x, a, b): return x.swapaxes(a, b)
    def rows(self, mask): return np.nonzero(mask)[0]

    def largest(self, x, n):
        """Returns the probabilities by softmax of the n largest values in each row, and 0 for the others."""
        p = np.exp(x - x.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        at, result = np.argsort(-p, -1, kind="stable")[:, :n], np.zeros_like(p)
        np.put_along_axis(result, at, np.take_along_axis(p, at, -1), -1)
        return result

    def layer_norm(self, x, weight, bias, eps):
        x = x - x.mean(-1, keepdims=True)
        return self.norm_by(x, eps) * weight + bias

    def gelu(self, x):
        """x times the normal distribution of x, by Abramowitz and Stegun, formula 7.1.26, which is right to 1.5e-7."""
        z = np.abs(x) / np.float32(2**0.5)
        t = 1 / (1 + 0.3275911 * z)
        tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * np.exp(-z * z)
        return x * np.where(x < 0, tail, 2 - tail) / 2

    def inside(self, x, shape, row, column):
        """Returns x in an array of zeros, from a row and a column on."""
        y = np.zeros(shape, np.float32)
        y[row : row + x.shape[0], column : column + x.shape[1]] = x
        return y

    def angles(self, at, n, frequencies):
        a = np.outer(np.arange(at, at + n), frequencies)
        return np.cos(a).astype(np.float32), np.sin(a).astype(np.float32)

    def attend(self, q, k, v, at):
        """Returns the values for each of the last tokens, from position at on; without one, of all
        tokens for each, of which an image has many: head by head."""
        if at is None and len(q) > 1:
            return np.concatenate([self.attend(q[i : i + 1], k[i : i + 1], v[i : i + 1], at) for i in range(len(q))])
        k, v = (np.repeat(x, len(q) // len(x), 0) for x in (k, v))
        n = q.shape[1]
        scores = q @ k.swapaxes(1, 2) / q.shape[2] ** 0.5
        if at is not None:
            scores = scores + np.triu(np.full((n, at + n), -np.inf, np.float32), at + 1)
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
            if hasattr(torch.backends.cuda, "enable_cudnn_sdp"):
                torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a plan for each length, in about 40 ms
            share = int(os.environ.get("WEIR_GPU_MEMORY_MIB", "0").split(",")[0]) - DRIVER_MIB
            if share > 0:
                torch.cuda.set_per_process_memory_fraction(min(1.0, share * 2**20 / torch.cuda.mem_get_info()[1]))

    def compute_in(self, kind):
        if self.on == "cuda":
            self.kind = self.kinds[kind]

    def load(self, raw, kind, shape):
        if not raw:  # PyTorch reads no empty buffer
            return torch.empty(shape, dtype=self.kind, device=self.on)
        return torch.frombuffer(bytearray(raw), dtype=self.kinds[kind]).reshape(shape).to(self.on, self.kind)

    def floats(self, raw, shape): return torch.frombuffer(bytearray(raw), dtype=torch.float32).reshape(shape).to(self.on, self.kind)
    def ids(self, raw): return torch.frombuffer(bytearray(raw), dtype=torch.int32).long().to(self.on)
    def like(self, x, other): return x.to(other.dtype)
    def bytes(self, x): return x.float().contiguous().cpu().numpy().tobytes()
    def silu(self, x): return torch.nn.functional.silu(x)
    def join(self, a, b, axis): return torch.cat((a, b), axis)
    def swap(self, x, a, b): return x.transpose(a, b)
    def rows(self, mask): return mask.nonzero()[:, 0]

    def largest(self, x, n):
        p = torch.softmax(x.float(), -1)
        top = torch.topk(p, n, -1)
        return torch.zeros_like(p).scatter(-1, top.indices, top.values)

    def norm(self, x, weight, eps):
        wide = x.float()
        return (wide / torch.sqrt((wide * wide).mean(-1, keepdim=True) + eps)).to(self.kind) * weight

    def layer_norm(self, x, weight, bias, eps): return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, eps)
    def gelu(self, x): return torch.nn.functional.gelu(x)

    def inside(self, x, shape, row, column):
        y = torch.zeros(shape, dtype=x.dtype, device=self.on)
        y[row : row + x.shape[0], column : column + x.shape[1]] = x
        return y

    def angles(self, at, n, frequencies):
        frequencies = torch.tensor(frequencies, dtype=torch.double, device=self.on)
        a = torch.outer(torch.arange(at, at + n, device=self.on).double(), frequencies)
        return torch.cos(a).to(self.kind), torch.sin(a).to(self.kind)

    def attend(self, q, k, v, at):
        k, v = (torch.repeat_interleave(x, len(q) // len(x), 0) for x in (k, v))
        n, mask, attention = q.shape[1], None, getattr(torch.nn.functional, "scaled_dot_product_attention", None)
        if n > 1 and (at or at == 0 and not attention):
            mask = torch.ones(n, at + n, dtype=torch.bool, device=self.on).tril(at)
        if attention:
            return attention(q[None], k[None], v[None], mask, is_causal=at == 0)[0]
        return torch.stack([self.attend_head(*head, mask) for head in zip(q, k, v)])  # before PyTorch 2, such as that of Debian 12

    def attend_head(self, q, k, v, mask):
        scores = q @ k.T / q.shape[1] ** 0.5
        return torch.softmax(scores if mask is None else scores.masked_fill(~mask, -math.inf), -1) @ v


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


class Layers:
    """What parts of decoders and of vision transformers have in common."""

    def __init__(self, xp, config, tensors, part, stack):
        self.xp, self.t, self.first, self.last = xp, tensors, part["first"], part["last"]
        self.hidden, self.width = config["hidden_size"], config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        names = (re.match(re.escape(stack) + r"\.(\d+)\.", name) for name in tensors)
        self.layers = sorted({int(m[1]) for m in names if m})

    def try_out(self):
        """Computes once, so that what cannot be computed here is seen before requests come."""
        cache, at = {}, 0
        for n in self.tries:
            with watched(COMPUTE_SECONDS), contextlib.suppress(StopIteration):
                steps, total = self.forward(bytes(self.size_of(n)), n, at, cache), None
                while True:
                    total = steps.send(total)
                    if isinstance(total, int):
                        total = self.xp.floats(struct.pack("<f", 1) * n * total, (n, total))
            at += n

    def linear(self, x, name):
        y = x @ self.t[name + ".weight"].T
        return y + self.t[name + ".bias"] if name + ".bias" in self.t else y

    def heads(self, x, name):
        """Returns queries, keys or values of each head."""
        return self.xp.swap(self.linear(x, name).reshape(x.shape[0], -1, self.width), 0, 1)


# What routes tokens to experts in families of decoders: its name, then their directory and matrices.
EXPERTS = [("block_sparse_moe.gate", "block_sparse_moe.experts.", "w1", "w3", "w2"),
           ("mlp.gate", "mlp.experts.", "gate_proj", "up_proj", "down_proj")]


class Decoder(Layers):
    """Some layers of a decoder with names as those of Llama, or some attention heads of all layers
    with rows and columns of the other matrices: of the vocabulary, those from token `offset` on. Or some
    experts of all layers: then the first part computes everything else, and decides for all parts which
    experts a token passes, so that they agree whatever their devices round."""

    def __init__(self, xp, config, tensors, part):
        super().__init__(xp, config, tensors, part, "model.layers")
        self.offset, self.eps, self.most = part.get("offset", 0), config.get("rms_norm_eps") or 1e-6, part["context"]
        self.tries = [2, 1] if self.most > 2 else [1]  # tokens, and one that follows them
        self.tied = config.get("tie_word_embeddings", False)
        self.by_experts, self.assists = part.get("experts", False), part.get("assists", False)
        self.used = config.get("num_experts_per_tok")
        self.normalized = config.get("norm_topk_prob", config["architectures"][0].startswith("Mixtral"))
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        base = rope.get("rope_theta") or config.get("rope_theta") or 10000.0
        self.frequencies = [base ** (-i / self.width) for i in range(0, self.width, 2)]
        if (rope.get("rope_type") or rope.get("type")) == "llama3":
            self.frequencies = [self.slowed(f, rope) for f in self.frequencies]

    @staticmethod
    def slowed(f, rope):
        """Returns a frequency of Llama 3.1 (transformers, modeling_rope_utils.py): slow ones are divided by
        the factor, fast ones stay, and those between pass from one to the other."""
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        turns = rope["original_max_position_embeddings"] * f / (2 * math.pi)
        kept = min(max((turns - low) / (high - low), 0.0), 1.0)
        return kept * f + (1 - kept) * f / rope["factor"]

    def size_of(self, n): return 4 * n * (1 if self.first else self.hidden)
    def accepts(self, n, at, size): return at + n <= self.most and size == self.size_of(n)

    def rotate(self, x, cos, sin):
        half = self.width // 2
        a, b = x[..., :half], x[..., half:]
        return self.xp.join(a * cos - b * sin, b * cos + a * sin, -1)

    def attention(self, x, at, angles, cache, layer):
        xp, t, n = self.xp, self.t, x.shape[0]
        name = "model.layers.%d.self_attn." % layer
        q, k, v = (self.heads(x, name + what + "_proj") for what in "qkv")
        if name + "q_norm.weight" in t:
            q, k = xp.norm(q, t[name + "q_norm.weight"], self.eps), xp.norm(k, t[name + "k_norm.weight"], self.eps)
        q, k = self.rotate(q, *angles), self.rotate(k, *angles)
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

    def feed_forward(self, x, name, gate="gate_proj", up="up_proj", down="down_proj"):
        return (self.xp.silu(self.linear(x, name + gate)) * self.linear(x, name + up)) @ self.t[name + down + ".weight"].T

    def of_heads(self, summand):
        """Returns the sum of what parts with other heads have."""
        return summand if self.by_experts else (yield summand)

    def experts(self, x, name):
        """Returns what the experts of a layer make of normalized hidden states, weighted for each token; x is
        None where another part has them."""
        xp, t = self.xp, self.t
        router, inner, *matrices = next(names for names in EXPERTS if name + names[0] + ".weight" in t)
        if x is not None:
            weights = xp.largest(self.linear(x, name + router), self.used)
            if self.normalized:
                weights = weights / weights.sum(-1)[:, None]
        if self.by_experts:
            shared = yield xp.join(x, xp.like(weights, x), 1) if x is not None else self.hidden + len(t[name + router + ".weight"])
            x, weights = shared[:, : self.hidden], shared[:, self.hidden :]
        y = x * 0
        for e in range(weights.shape[1]):
            rows = xp.rows(weights[:, e] > 0)
            if len(rows) and name + inner + "%d.%s.weight" % (e, matrices[0]) in t:
                y[rows] += xp.like(weights[rows, e][:, None], x) * self.feed_forward(x[rows], name + inner + "%d." % e, *matrices)
        return (yield y) if self.by_experts else y

    def routed(self, layer):
        return any("model.layers.%d.%s.weight" % (layer, names[0]) in self.t for names in EXPERTS)

    def forward(self, payload, n, at, cache):
        """Returns the hidden states of n tokens from position at on, or of the last one its logits.
        It yields its summands of what several parts add up, or their width if it has none, and is sent the
        sums."""
        xp, t = self.xp, self.t
        if self.assists:
            for layer in filter(self.routed, self.layers):
                yield from self.experts(None, "model.layers.%d." % layer)
            return b""
        if self.first:
            x = yield from self.of_heads(self.embed(xp.ids(payload)))
        else:
            x = xp.floats(payload, (n, self.hidden))
        angles = xp.angles(at, n, self.frequencies)
        for layer in self.layers:
            name = "model.layers.%d." % layer
            y = xp.norm(x, t[name + "input_layernorm.weight"], self.eps)
            x = x + (yield from self.of_heads(self.attention(y, at, angles, cache, layer)))
            y = xp.norm(x, t[name + "post_attention_layernorm.weight"], self.eps)
            x = x + (yield from self.experts(y, name) if self.routed(layer) else self.of_heads(self.feed_forward(y, name + "mlp.")))
        if not self.last:
            return xp.bytes(x)
        x = xp.norm(x[-1], t["model.norm.weight"], self.eps)
        return xp.bytes(t["model.embed_tokens.weight" if self.tied else "lm_head.weight"] @ x)


class Vision(Layers):
    """The same of a vision transformer with names as those of ViT. Its tokens are the patches of an
    image, and before them the one whose result classifies it. A sequence is one image after the other."""

    def __init__(self, xp, config, tensors, part):
        super().__init__(xp, config, tensors, part, "vit.encoder.layer")
        self.eps, self.column = config.get("layer_norm_eps") or 1e-12, part.get("column", 0)
        self.width = self.hidden // config["num_attention_heads"]
        self.channels, self.size, self.patch = config.get("num_channels") or 3, config["image_size"], config["patch_size"]
        self.tokens = (self.size // self.patch) ** 2 + 1
        self.tries = [self.tokens]

    def size_of(self, n): return 4 * (self.channels * self.size**2 if self.first else n * self.hidden)
    def accepts(self, n, at, size): return n == self.tokens and size == self.size_of(n)

    def norm(self, x, name):
        return self.xp.layer_norm(x, self.t[name + ".weight"], self.t[name + ".bias"], self.eps)

    def embed(self, pixels):
        """Returns the hidden values of the patches that the part computes, and 0 for all others."""
        xp, side, name = self.xp, self.size // self.patch, "vit.embeddings.patch_embeddings.projection"
        x = pixels.reshape(self.channels, side, self.patch, side, self.patch)
        x = xp.swap(xp.swap(xp.swap(x, 0, 1), 1, 3), 2, 3).reshape(side * side, -1)  # by patch, then channel, row and column
        x = x @ self.t[name + ".weight"].reshape(len(self.t[name + ".bias"]), -1).T + self.t[name + ".bias"]
        return xp.inside(x, (self.tokens, self.hidden), 1, self.column)

    def attention(self, x, name):
        q, k, v = (self.heads(x, name + "attention." + what) for what in ("query", "key", "value"))
        out = self.xp.swap(self.xp.attend(q, k, v, None), 0, 1).reshape(x.shape[0], -1)
        return out @ self.t[name + "output.dense.weight"].T

    def forward(self, payload, n, at, cache):
        """Returns the hidden states of an image, or its logits; see Decoder.forward."""
        xp, t = self.xp, self.t
        if self.first:
            x = yield self.embed(xp.floats(payload, (self.channels, self.size, self.size)))
            x = x + t["vit.embeddings.position_embeddings"][0] + xp.inside(t["vit.embeddings.cls_token"][0], x.shape, 0, 0)
        else:
            x = xp.floats(payload, (n, self.hidden))
        for layer in self.layers:
            name = "vit.encoder.layer.%d." % layer
            y = self.norm(x, name + "layernorm_before")
            x = x + (yield self.attention(y, name + "attention.")) + t[name + "attention.output.dense.bias"]
            y = xp.gelu(self.linear(self.norm(x, name + "layernorm_after"), name + "intermediate.dense"))
            x = x + (yield y @ t[name + "output.dense.weight"].T) + t[name + "output.dense.bias"]
        if not self.last:
            return xp.bytes(x)
        return xp.bytes(self.linear(self.norm(x[:1], "vit.layernorm"), "classifier"))


def part_of(xp, config, tensors, part):
    kind = Vision if config["architectures"][0].startswith("ViT") else Decoder
    return kind(xp, config, tensors, part)


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
                        name = self.part.xp.name if self.part else ""
                        send_frame(conn, {"ready": self.part is not None, "progress": self.progress, "library": name,
                                          "version": VERSION, "begun": self.begun, "computing": self.computing})
                        continue
                    if header["op"] == "begin":
                        if began:
                            raise ValueError("out of order")
                        self.begin(conn)
                        began = True
                        send_frame(conn, {})
                        continue
                    if header["op"] == "render":
                        with watched(RENDER_SECONDS):
                            text, why = render(json.loads(payload))
                        send_frame(conn, {"error": why[:500]} if why else {}, text.encode("utf-8", "replace"))
                        continue
                    n = header["tokens"]
                    if self.part is None or header["op"] != "forward" or header["at"] != at or n < 1:
                        raise ValueError("out of order")
                    if not self.part.accepts(n, at, len(payload)):
                        raise ValueError("the payload does not fit the number of tokens")
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

    def begin(self, conn):
        """Waits until another sequence can be computed: the fronts do not know of each other's."""
        while not self.sequences.acquire(timeout=0.2):
            if gone(conn):
                raise EOFError
        with self.lock:
            self.begun, self.computing = self.begun + 1, self.computing + 1

    def end(self):
        with self.lock:
            self.computing -= 1
        self.sequences.release()

    def compute(self, conn, payload, n, at, cache):
        """Returns the result of the part. What several parts add up is added by the front."""
        steps, total, width, xp = self.part.forward(payload, n, at, cache), None, 0, self.part.xp
        while True:
            with self.turn:
                if gone(conn):
                    raise EOFError
                with watched(COMPUTE_SECONDS):
                    try:
                        summand = steps.send(total if total is None else xp.floats(total, (n, width)))
                        while not self.adds:
                            summand = steps.send(summand)
                        width = summand if isinstance(summand, int) else summand.shape[1]
                        summand = b"" if isinstance(summand, int) else xp.bytes(summand)
                    except StopIteration as end:
                        return end.value
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

    xp = Torch() if torch else Numpy()
    tensors = read_tensors("/deployment/part.safetensors", xp, progress)
    loaded = part_of(xp, part["config"], tensors, part)
    loaded.try_out()
    print("loaded %d tensors with %s" % (len(tensors), xp.name), flush=True)
    return loaded


main()
