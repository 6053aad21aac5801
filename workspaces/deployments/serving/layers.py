"""What parts of models compute, with PyTorch if that is there, else with NumPy."""
import collections, contextlib, itertools, json, math, mmap, os, re, struct

try:
    import torch
except ImportError:
    torch = None
    import numpy as np

KINDS = "F32", "F16", "BF16"  # of weights
FEW_TOKENS = 64  # of which all heads are computed at once
SCORES = 4 << 20  # of tokens for each other that are computed at once
DRIVER_MIB = 640  # of a share, for what CUDA loads besides tensors


class Numpy:
    """The few operations of models on float32 arrays of NumPy."""

    name, on = "numpy", "cpu"

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
    def join(self, parts, axis): return np.concatenate(parts, axis)
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
        tokens for each: head by head if they are many, as those of an image. Of a long prompt, as many
        tokens at once as have few scores: memory is planned for what grows with its length, not its square."""
        if at is None and len(q) > 1 and q.shape[1] > FEW_TOKENS:
            return np.concatenate([self.attend(q[i : i + 1], k[i : i + 1], v[i : i + 1], at) for i in range(len(q))])
        n, most = q.shape[1], max(SCORES // (len(q) * k.shape[1]), 1)
        if at is not None and n > most:
            parts = [(i, at + min(i + most, n)) for i in range(0, n, most)]
            return np.concatenate([self.attend(q[:, i : i + most], k[:, :end], v[:, :end], at + i) for i, end in parts], 1)
        k, v = (np.repeat(x, len(q) // len(x), 0) for x in (k, v))
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
    def join(self, parts, axis): return torch.cat(parts, axis)
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


def library(): return Torch() if torch else Numpy()


def read_tensors(path, xp, progress):
    """Returns the tensors of a safetensors file by name, without integers, such as numbers of positions."""
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        size = struct.unpack("<Q", m[:8])[0]
        header = json.loads(m[8 : 8 + size])
        header.pop("__metadata__", None)
        header = {name: t for name, t in header.items() if t["dtype"] in KINDS}
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
    """What parts of decoders and of encoders have in common."""

    def __init__(self, xp, config, tensors, part, stack):
        self.xp, self.t, self.first, self.last, self.offset = xp, tensors, part["first"], part["last"], part.get("offset", 0)
        self.hidden, self.width = config["hidden_size"], config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        names = (re.match(re.escape(stack) + r"\.(\d+)\.", name) for name in tensors)
        self.layers = sorted({int(m[1]) for m in names if m})

    def try_out(self):
        """Computes once, so that what cannot be computed here is seen before requests come."""
        cache, at = {}, 0
        for n in self.tries:
            with contextlib.suppress(StopIteration):
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

    def rows_of(self, name, ids):
        """Returns the rows of tokens in a vocabulary of which the part has those from its offset on, and 0 for
        all others."""
        rows = self.t[name + ".weight"]
        ids = ids - self.offset
        mine = (ids >= 0) & (ids < len(rows))
        return rows[ids * mine] * mine[:, None]


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
        mixtral = config["architectures"][0].startswith("Mixtral")  # which has other defaults than the others
        self.eps, self.most = config.get("rms_norm_eps") or (1e-5 if mixtral else 1e-6), part["context"]
        self.tries = [2, 1] if self.most > 2 else [1]  # tokens, and one that follows them
        self.tied = config.get("tie_word_embeddings", False)
        self.by_experts, self.assists = part.get("experts", False), part.get("assists", False)
        self.used = config.get("num_experts_per_tok")
        self.normalized = config.get("norm_topk_prob", mixtral)
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        base = rope.get("rope_theta") or config.get("rope_theta") or (1e6 if mixtral else 1e4)
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
        return self.xp.join((a * cos - b * sin, b * cos + a * sin), -1)

    def attention(self, x, at, angles, cache, layer):
        xp, t, n = self.xp, self.t, x.shape[0]
        name = "model.layers.%d.self_attn." % layer
        q, k, v = (self.heads(x, name + what + "_proj") for what in "qkv")
        if name + "q_norm.weight" in t:
            q, k = xp.norm(q, t[name + "q_norm.weight"], self.eps), xp.norm(k, t[name + "k_norm.weight"], self.eps)
        q, k = self.rotate(q, *angles), self.rotate(k, *angles)
        if at > 0:
            k, v = xp.join((cache[layer][0], k), 1), xp.join((cache[layer][1], v), 1)
        cache[layer] = k, v
        out = xp.swap(xp.attend(q, k, v, at), 0, 1).reshape(n, -1)
        return out @ t[name + "o_proj.weight"].T

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
            shared = yield xp.join((x, xp.like(weights, x)), 1) if x is not None else self.hidden + len(t[name + router + ".weight"])
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
            x = yield from self.of_heads(self.rows_of("model.embed_tokens", xp.ids(payload)))
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


class Encoder(Layers):
    """What parts of encoders have in common: each token attends to all others, and norms have a bias."""

    def __init__(self, xp, config, tensors, part, stack):
        super().__init__(xp, config, tensors, part, stack)
        self.eps, self.column = config.get("layer_norm_eps") or 1e-12, part.get("column", 0)
        self.width = self.hidden // config["num_attention_heads"]

    def norm(self, x, name):
        return self.xp.layer_norm(x, self.t[name + ".weight"], self.t[name + ".bias"], self.eps)

    def attention(self, x, name, inner, texts=None):
        """Returns the sum of what the heads of all parts make of hidden states: of one image, or of texts."""
        q, k, v = (self.heads(x, name + inner + what) for what in ("query", "key", "value"))
        values = texts.attend(q, k, v) if texts else self.xp.attend(q, k, v, None)
        return (yield from self.added(self.xp.swap(values, 0, 1).reshape(x.shape[0], -1), name + "output.dense"))

    def added(self, x, name):
        """Returns a linear layer of which each part has some columns."""
        return (yield x @ self.t[name + ".weight"].T) + self.t[name + ".bias"]

    def feed_forward(self, x, name):
        return (yield from self.added(self.xp.gelu(self.linear(x, name + "intermediate.dense")), name + "output.dense"))


class Vision(Encoder):
    """A vision transformer with names as those of ViT. Its tokens are the patches of an image, and before
    them the one whose result classifies it. A sequence is one image after the other."""

    def __init__(self, xp, config, tensors, part):
        super().__init__(xp, config, tensors, part, "vit.encoder.layer")
        self.channels, self.size, self.patch = config.get("num_channels") or 3, config["image_size"], config["patch_size"]
        self.tokens = (self.size // self.patch) ** 2 + 1
        self.tries = [self.tokens]

    def size_of(self, n): return 4 * (self.channels * self.size**2 if self.first else n * self.hidden)
    def accepts(self, n, at, size): return n == self.tokens and size == self.size_of(n)

    def embed(self, pixels):
        """Returns the hidden values of the patches that the part computes, and 0 for all others."""
        xp, side, name = self.xp, self.size // self.patch, "vit.embeddings.patch_embeddings.projection"
        x = pixels.reshape(self.channels, side, self.patch, side, self.patch)
        x = xp.swap(xp.swap(xp.swap(x, 0, 1), 1, 3), 2, 3).reshape(side * side, -1)  # by patch, then channel, row and column
        x = x @ self.t[name + ".weight"].reshape(len(self.t[name + ".bias"]), -1).T + self.t[name + ".bias"]
        return xp.inside(x, (self.tokens, self.hidden), 1, self.column)

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
            x = x + (yield from self.attention(self.norm(x, name + "layernorm_before"), name + "attention.", "attention."))
            x = x + (yield from self.feed_forward(self.norm(x, name + "layernorm_after"), name))
        if not self.last:
            return xp.bytes(x)
        return xp.bytes(self.linear(self.norm(x[:1], "vit.layernorm"), "classifier"))


class Embedder(Encoder):
    """A text encoder with names as those of BERT. A sequence is one text after the other, of which several
    are computed at once, and its result the embedding of each: the hidden state of the first token, or
    the mean of all."""

    def __init__(self, xp, config, tensors, part):
        super().__init__(xp, config, tensors, part, "encoder.layer")
        self.most, self.pooling, self.filler = part["context"], part["pooling"], part.get("filler")
        self.tries = [self.most]  # texts are computed at once

    def size_of(self, n): return 4 * n * (1 if self.first else self.hidden)
    def accepts(self, n, at, size): return n <= self.most and size == self.size_of(n)

    def positions(self, ids):
        """Returns what is added for the positions of the tokens of a text. If they begin behind a filling token,
        such tokens have its number, and are not counted (transformers, create_position_ids_from_input_ids)."""
        table = self.t["embeddings.position_embeddings.weight"]
        if self.filler is None:
            return table[: len(ids)]
        others = (ids != self.filler) * 1
        return table[others.cumsum(0) * others + self.filler]

    def forward(self, payload, n, at, cache):
        """Returns the hidden states of texts, or their embeddings, which the first of parts with other heads
        has; see Decoder.forward. cache["texts"] is how many tokens each text has."""
        xp, t, texts = self.xp, self.t, Texts(self.xp, cache.get("texts", [n]))
        if self.first:
            ids = xp.ids(payload)
            x = yield self.rows_of("embeddings.word_embeddings", ids)
            x = x + xp.join([self.positions(ids[one]) for one in texts.each()], 0)
            x = self.norm(x + t["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        else:
            x = xp.floats(payload, (n, self.hidden))
        for layer in self.layers:
            name = "encoder.layer.%d." % layer
            x = self.norm(x + (yield from self.attention(x, name + "attention.", "self.", texts)), name + "attention.output.LayerNorm")
            x = self.norm(x + (yield from self.feed_forward(x, name)), name + "output.LayerNorm")
        if not self.last:
            return xp.bytes(x)
        if self.column:
            return b""
        return xp.bytes(texts.pooled(x, self.pooling))


class Texts:
    """Texts one after the other, by the number of tokens of each. Those of the same length that follow each
    other are computed together."""

    def __init__(self, xp, lengths):
        self.xp, self.lengths = xp, lengths
        self.runs = [(n, len(list(run))) for n, run in itertools.groupby(lengths)]  # length, and how many have it

    def each(self):
        at = 0
        for n in self.lengths:
            yield slice(at, at + n)
            at += n

    def attend(self, q, k, v):
        """Returns the values of each token, of those of its own text."""
        out, at = [], 0
        for n, count in self.runs:
            of = [x[:, at : at + n * count].reshape(-1, n, x.shape[2]) for x in (q, k, v)]  # by head and text
            out.append(self.xp.attend(*of, None).reshape(len(q), n * count, -1))
            at += n * count
        return self.xp.join(out, 1)

    def pooled(self, x, how):
        """Returns one row for each text."""
        out, at = [], 0
        for n, count in self.runs:
            of = x[at : at + n * count].reshape(count, n, -1)
            out.append(of[:, 0] if how == "cls" else of.mean(1))
            at += n * count
        return self.xp.join(out, 0)


def part_of(xp, config, tensors, part):
    if "pooling" in part:
        return Embedder(xp, config, tensors, part)
    kind = Vision if config["architectures"][0].startswith("ViT") else Decoder
    return kind(xp, config, tensors, part)
