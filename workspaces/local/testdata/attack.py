"""Tries from a workspace what is not its own. Each line is “got KIND WHAT” or “denied KIND WHAT: WHY”."""
import ctypes, errno, mmap, os, platform, signal, socket, threading

libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": dict(ptrace=101, mount=165, unshare=272, add_key=248, request_key=249, keyctl=250, bpf=321, io_uring_setup=425,
                   perf_event_open=298, userfaultfd=323, kexec_load=246, init_module=175, setns=308, open_by_handle_at=304,
                   pivot_root=155, chroot=161, reboot=169, swapon=167, settimeofday=164, acct=163, quotactl=179),
    "aarch64": dict(ptrace=117, mount=40, unshare=97, add_key=217, request_key=218, keyctl=219, bpf=280, io_uring_setup=425,
                    perf_event_open=241, userfaultfd=282, kexec_load=104, init_module=105, setns=268, open_by_handle_at=265,
                    pivot_root=41, chroot=51, reboot=142, swapon=224, settimeofday=170, acct=89, quotactl=60),
}[platform.machine()]


def attempt(kind, what, do):
    try:
        got = do()
        print("got" if got else "denied", kind, what + ("" if got else ": nothing there"), flush=True)
    except OSError as e:
        print("denied", kind, what + ":", errno.errorcode.get(e.errno, e), flush=True)


def call(name, *args):
    def do():
        if libc.syscall(NUMBERS[name], *args) < 0:
            raise OSError(ctypes.get_errno(), name)
        return True
    return do


def connect(address, port):
    def do():
        with socket.create_connection((address, port), 5) as c:
            return c.recv(5)
    return do


def abstract():
    with socket.socket(socket.AF_UNIX) as c:
        c.connect("\0" + os.environ["ABSTRACT"])
    return True


port = int(os.environ["PORT"])
for address in ["127.0.0.1", "::1", "203.0.113.2", *os.environ["HOST_ADDRESSES"].split()]:
    attempt("network", f"a port of the host at {address}", connect(address, port))
for address in ["169.254.169.254", "100.100.100.200", "168.63.129.16"]:
    attempt("network", f"metadata at {address}", connect(address, 80))
attempt("network", "an abstract socket of the host", abstract)
for family, kind, proto, what in [(socket.AF_INET, socket.SOCK_RAW, 1, "a raw socket"), (socket.AF_PACKET, socket.SOCK_RAW, 3, "a packet socket"),
                                  (40, socket.SOCK_STREAM, 0, "a socket to the hypervisor")]:
    attempt("socket", what, lambda: socket.socket(family, kind, proto).close() or True)

other, other_dir = int(os.environ["OTHER_PID"]), os.environ["OTHER_DIR"]
attempt("process", "a process of another workspace", lambda: os.path.exists(f"/proc/{other}"))
attempt("process", "a signal to it", lambda: os.kill(other, signal.SIGKILL) is None)
attempt("own", "the memory of pid 1", lambda: open("/proc/1/mem", "rb") and True)
attempt("own", "the descriptors of pid 1", lambda: os.listdir("/proc/1/fd"))
attempt("process", "ptrace of a process of the host", call("ptrace", 16, other, 0, 0))
attempt("files", "the directory of another workspace", lambda: os.listdir(other_dir))
attempt("files", "the root of pid 1", lambda: os.listdir("/proc/1/root/var"))
for path in ["/etc/shadow", "/root", "/var/lib", "/run/docker.sock", "/run/systemd", "/sys/kernel", "/sys/fs/cgroup", "/sys/class", "/proc/kcore", "/proc/kmsg"]:
    attempt("files", path, lambda: os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1))
for path in ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/usr/bin/x", "/etc/passwd", "/proc/sys/net/ipv4/ip_forward"]:
    attempt("files", "writing " + path, lambda: open(path, "w") and True)
attempt("devices", "devices of the host", lambda: [d for d in os.listdir("/dev") if d not in
        ("console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero")])
attempt("devices", "a new device", lambda: os.mknod("/tmp/device", 0o600 | 0o020000, os.makedev(1, 1)) is None)
attempt("keys", "keys of others in /proc/keys", lambda: os.path.exists("/proc/keys") and any(
    str(os.getuid()) not in line.split()[5] and "_ses" not in line for line in open("/proc/keys")))
attempt("memory", "shared memory of others", lambda: os.listdir("/dev/shm") or len(open("/proc/sysvipc/shm").readlines()) > 1)

attempt("calls", "ptrace of pid 1", call("ptrace", 16, 1, 0, 0))
attempt("calls", "a user namespace", call("unshare", 0x10000000))
attempt("calls", "a network namespace", call("unshare", 0x40000000))
attempt("calls", "the namespaces of pid 1", lambda: call("setns", os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)())
attempt("calls", "a mount", call("mount", b"none", b"/tmp", b"tmpfs", 0, 0))
attempt("calls", "bpf", call("bpf", 0, ctypes.create_string_buffer(bytes([1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1]), 128), 128))
attempt("calls", "io_uring", call("io_uring_setup", 8, ctypes.create_string_buffer(256)))
attempt("calls", "add_key", call("add_key", b"user", b"weir", b"secret", 6, -3))
attempt("calls", "keyctl", call("keyctl", 0, -3, 0))
attempt("calls", "request_key", call("request_key", b"user", b"weir", 0, 0))
for name in ["perf_event_open", "userfaultfd", "kexec_load", "init_module", "open_by_handle_at", "pivot_root", "chroot", "reboot", "swapon",
             "settimeofday", "acct", "quotactl"]:
    attempt("calls", name, call(name, 0, 0, 0, 0, 0))


def tasks():
    """Starts more threads, which count as processes, than a workspace may have."""
    end, threads = threading.Event(), []
    threading.stack_size(64 << 10)
    try:
        for _ in range(1200):
            thread = threading.Thread(target=end.wait)
            thread.start()
            threads.append(thread)
    except RuntimeError:
        raise OSError(errno.EAGAIN, "no more threads")
    finally:
        end.set()
        for thread in threads:
            thread.join()
    return True


def memory():
    """Takes twice its memory in a child, which must be killed."""
    pid = os.fork()
    if pid == 0:
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write("1000")
        m = mmap.mmap(-1, 512 << 20)
        for i in range(0, len(m), 4096):
            m[i] = 1
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


attempt("pids", "1200 tasks", tasks)
attempt("memory", "twice its memory", memory)
attempt("log", "truncating or reading the log by its descriptor", lambda: os.pread(1, 1, 0))
attempt("log", "the log's directory by its descriptor", lambda: os.listdir("/proc/self/fd/1/.."))
print("done")
