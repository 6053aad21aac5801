"""An extension of Jupyter's server that reports whether anything works in it.

GET /weir/activity returns ages and totals, never code, names or paths. Open tabs,
their polls and their connections to kernels do not count as work.
"""

import json
import os
import time

from tornado import ioloop, web

DELIMITER = b"<IDS|MSG>"
TICKS = os.sysconf("SC_CLK_TCK")
EVENTS = ("restart", "dead")  # of a kernel that has ended by itself
PAGE = os.sysconf("SC_PAGE_SIZE")


class Kernel:
    """What one kernel executes, read from what it publishes."""

    def __init__(self, manager, watched):
        self.manager = manager
        self.watched = watched
        # None until it publishes something about a cell or a question: the subscription takes
        # effect some time after it was made, and what was published before is missed.
        self.executing = None
        self.executed = time.monotonic()  # its start is work, too
        self.stream = manager.connect_iopub()
        self.stream.on_recv(self.published)
        self.shell = manager.connect_shell()
        self.shell.on_recv(self.answered)
        self.asked = None  # the ID of the last question
        self.owes = False  # an answer to it
        for event in EVENTS:
            manager.add_restart_callback(self.restarted, event)

    def close(self):
        for event in EVENTS:
            self.manager.remove_restart_callback(self.restarted, event)
        self.stream.close()
        self.shell.close()

    def restarted(self):
        """The process of before, which may have executed, has ended by itself."""
        self.executing = False

    def ask(self):
        """Ask the kernel something that it answers once no cell executes, until it is seen to
        publish that. What the server knows is not enough: each new connection to the kernel
        asks it on another channel, which answers beside a cell, and ends as idle."""
        if self.executing is None and not self.owes:
            self.owes = True
            self.asked = self.manager.session.send(self.shell, "kernel_info_request")["header"]["msg_id"]

    def answered(self, _):
        self.owes = False

    def published(self, frames):
        try:
            at = frames.index(DELIMITER)
            header, parent = (json.loads(frames[at + n]) for n in (2, 3))
            if self.executing is None and parent.get("msg_id") == self.asked and json.loads(frames[at + 5])["execution_state"] == "idle":
                self.executing = False
            if parent.get("msg_type") != "execute_request":
                return
            self.executed = time.monotonic()
            if header.get("msg_type") == "status":
                self.executing = json.loads(frames[at + 5])["execution_state"] == "busy"
            elif self.executing is None:
                self.executing = True
        except (ValueError, KeyError, IndexError, AttributeError):
            pass  # not a message of Jupyter's protocol

    @property
    def busy(self):
        """Whether it executes; until the subscription works, whether it owes an answer."""
        return self.owes if self.executing is None else self.executing


class Activity:
    """The kernels, terminals and processes of a server."""

    def __init__(self, app):
        self.app = app
        self.kernels = {}
        # Between two requests a kernel can start and execute.
        self.timer = ioloop.PeriodicCallback(self.follow, 1000)
        self.timer.start()

    def follow(self):
        manager = self.app.kernel_manager
        running = {key: manager.get_kernel(key) for key in manager.list_kernel_ids()}
        for key in list(self.kernels):
            if key not in running or self.kernels[key].watched is not watched(running[key]):
                self.kernels.pop(key).close()
        for key, kernel in running.items():
            if key not in self.kernels and watched(kernel):
                self.kernels[key] = Kernel(kernel, watched(kernel))
        for kernel in self.kernels.values():
            kernel.ask()

    def typed(self):
        """Return the seconds since each terminal read a key, and since VS Code saved a file."""
        yield from terminals()
        code = self.app.web_app.settings.get("weir_code")
        saved = code.saved() if code else None
        if saved is not None:
            yield time.time() - saved

    def report(self):
        self.follow()
        now = time.monotonic()
        code = self.app.web_app.settings.get("weir_code")
        cpu, io, memory = totals(code)
        return {
            "kernels": [{"busy": k.busy, "executed": now - k.executed} for k in self.kernels.values()],
            "terminals": [{"typed": seconds} for seconds in self.typed()],
            "cpu_seconds": cpu,
            "io_bytes": io,
            "memory_bytes": memory,
        }


def watched(kernel):
    """Return the server's own stream of what a kernel publishes: None while the kernel
    starts, and another one when it publishes elsewhere after a restart."""
    return getattr(kernel, "_activity_stream", None)


def processes():
    """Return the id of each process and what /proc/[pid]/stat says after its name; see proc(5)."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                yield int(pid), f.read().rpartition(b")")[2].split()
        except OSError:
            continue  # it has ended


def terminals():
    """Return the seconds since each terminal, of Jupyter or of another program, read a key."""
    for pid, fields in processes():
        session, terminal = int(fields[3]), int(fields[4])
        if session == pid and terminal != 0:
            try:
                # Only what the shell reads from its terminal changes this time, and
                # it is precise to 8 seconds.
                yield time.time() - os.stat(f"/proc/{pid}/fd/0").st_atime
            except OSError:
                pass  # closed meanwhile


def totals(code):
    """Return the CPU seconds and the bytes read and written of all processes, with
    those that they have waited for, except what this server and VS Code themselves used; and the bytes
    of memory of all processes, of which what they share is counted once, by the process
    that shares most."""
    ticks = io = private = shared = 0
    for pid, fields in processes():
        try:
            with open(f"/proc/{pid}/statm", "rb") as f:
                resident, common = map(int, f.read().split()[1:3])
            private, shared = private + resident - common, max(shared, common)
            part = "fork" if pid == os.getpid() else code and code.part(pid, int(fields[1]))
            # The server of VS Code has waited for its own forks only.
            ticks += sum(map(int, {"server": [], "fork": fields[13:15]}.get(part, fields[11:15])))
            if not part:
                with open(f"/proc/{pid}/io", "rb") as f:
                    io += sum(int(line.split()[1]) for line in f if line[1:6] == b"char:")
        except (OSError, ValueError, IndexError):
            continue  # it has ended, or is not the user's
    return ticks / TICKS, io, (private + shared) * PAGE


def load(app):
    if type(app).__module__.startswith("notebook."):  # before version 7
        from notebook.base.handlers import APIHandler
    else:
        from jupyter_server.base.handlers import APIHandler
    activity = Activity(app)

    class ActivityHandler(APIHandler):
        @web.authenticated
        def get(self):
            self.finish(json.dumps(activity.report()))

    base = app.web_app.settings["base_url"].rstrip("/")
    app.web_app.add_handlers(".*$", [(base + "/weir/activity", ActivityHandler)])


def _jupyter_server_extension_points():
    return [{"module": "weir_activity"}]


def _load_jupyter_server_extension(app):
    load(app)


load_jupyter_server_extension = _load_jupyter_server_extension  # before jupyter_server 1.0
