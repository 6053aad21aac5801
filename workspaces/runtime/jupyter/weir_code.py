"""An extension of Jupyter's server that serves VS Code at /code/, where code-server is installed.

The program starts with the first request, and again with the next one after it has ended.
It listens on a socket that only this user reaches; Jupyter checks who asks, as for its own
pages. Connections are passed on byte by byte, so that WebSockets work as they are.
"""

import asyncio
import http.client
import io
import json
import os
import shutil
import socket
import subprocess
import time

from tornado import iostream, web

START_SECONDS = 180  # it takes half a minute on a busy machine
STARTS = 3  # in a row: it gives up when its own processes are slow
PAGE_SECONDS = 20  # for which the page itself waits: proxies cut off longer ones
STARTING_PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>VS Code</title></head>
<body style="font-family: sans-serif; color-scheme: light dark"><p>%s</p></body></html>"""
HEALTH_SECONDS = 5  # for one look at whether it serves pages
SAVED_SECONDS = 60  # for which the answer of saved is kept
# Somebody else can write the tasks of a shared directory, so none begins by itself.
SETTINGS = {
    "extensions.autoCheckUpdates": False,
    "task.allowAutomaticTasks": "off",
    "telemetry.telemetryLevel": "off",
    "workbench.startupEditor": "none",
}
CHUNK = 64 << 10
# What concerns one connection, RFC 9110 section 7.6.1, and what follows from the body as read.
PER_CONNECTION = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "content-length", "upgrade",
                  "authorization"}


def installed():
    """Return the command of the program, or None."""
    program = os.environ.get("WEIR_CODE_SERVER") or shutil.which("code-server")
    interpreter = os.environ.get("WEIR_CODE_SERVER_NODE")
    return [interpreter, program] if program and interpreter else program and [program]


class Failed(Exception):
    """VS Code does not run; the message says why."""


class Starting(Failed):
    """VS Code has not started in time, and goes on starting."""


class CodeServer:
    """One process of code-server."""

    def __init__(self, program):
        self.program = program
        self.began = self.saved_at = None
        self.begun = 0  # by a clock that nobody sets
        self.ready = False
        self.saved_until = 0
        self.dir = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or os.path.expanduser("~/.cache"), "code-server")
        self.socket = os.path.join(self.dir, "http.sock")
        self.log = os.path.join(self.dir, "log")
        self.process = None
        self.starts = 0  # in a row that it has not served
        self.starting = asyncio.Lock()

        home = os.path.expanduser("~")
        self.data = os.path.join(home, ".local/share/code-server") if os.access(home, os.W_OK) else os.path.join(self.dir, "data")

    def command(self):
        return [
            *self.program, "--socket", self.socket, "--socket-mode", "600", "--auth", "none",
            "--config", os.path.join(self.dir, "config.yaml"), "--session-socket", os.path.join(self.dir, "session.sock"),
            "--user-data-dir", self.data, "--disable-telemetry", "--disable-update-check",
            "--disable-getting-started-override", "--ignore-last-opened", os.path.expanduser("~"),
        ]

    async def connect(self, seconds=START_SECONDS):
        """Return a stream to the program, which is started unless it runs."""
        until = time.monotonic() + seconds
        try:
            await asyncio.wait_for(self.starting.acquire(), seconds)
        except asyncio.TimeoutError:
            raise Starting(f"it did not start within {seconds} seconds. {self.last_line()}") from None
        try:
            while time.monotonic() < until:
                if self.process is None or self.process.poll() is not None:
                    if self.starts == STARTS:
                        self.starts = 0
                        raise Failed(f"it exited with code {self.process.returncode}. {self.last_line()}")
                    self.start()
                try:
                    if self.ready or await asyncio.wait_for(self.healthy(), HEALTH_SECONDS):
                        self.ready, self.starts = True, 0
                        return await self.stream()
                except (OSError, iostream.StreamClosedError, asyncio.TimeoutError):
                    pass  # it does not listen or respond yet, or has just ended
                await asyncio.sleep(0.05)
        finally:
            self.starting.release()
        raise Starting(f"it did not start within {seconds} seconds. {self.last_line()}")

    async def begin(self, request, repeatable, seconds):
        """Send a request, and return the stream with the first bytes of the response."""
        for last in (not repeatable, True):
            upstream = await self.connect(seconds)
            try:
                await upstream.write(request)
                return upstream, await upstream.read_bytes(CHUNK, partial=True)
            except iostream.StreamClosedError:
                upstream.close()
                if last:
                    raise Failed("it has just ended") from None

    async def stream(self):
        return await iostream.IOStream(socket.socket(socket.AF_UNIX)).connect(self.socket)

    async def healthy(self):
        """Whether it serves pages: it listens a moment before."""
        stream = await self.stream()
        try:
            await stream.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return b" 200 " in await stream.read_until(b"\r\n", max_bytes=CHUNK)
        except iostream.UnsatisfiableReadError:
            return False
        finally:
            stream.close()

    def start(self):
        # Variables that set where it listens, and the token, which no program needs.
        env = {k: v for k, v in os.environ.items() if not k.startswith(("VSCODE_", "CODE_SERVER_")) and k not in ("JUPYTER_TOKEN", "PORT")}
        try:
            os.makedirs(self.dir, mode=0o700, exist_ok=True)
            self.write_settings()
            if os.path.exists(self.socket):
                os.remove(self.socket)
            with open(self.log, "wb") as log:
                self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        except OSError as e:
            raise Failed(str(e)) from None
        self.began, self.begun, self.ready, self.starts = time.time(), time.monotonic(), False, self.starts + 1

    def write_settings(self):
        """Write the settings of somebody who has none."""
        settings = os.path.join(self.data, "User/settings.json")
        new = f"{settings}.{os.getpid()}"
        if os.path.exists(settings):
            return
        os.makedirs(os.path.dirname(settings), exist_ok=True)
        with open(new, "w", encoding="utf-8") as f:
            json.dump(SETTINGS, f, indent=4)
        os.replace(new, settings)

    def part(self, pid, parent):
        """Return "server" for a process of the program's server, "fork" for one that it started for
        its own purposes, and None for what a person or an extension runs in it."""
        if self.process is None:
            return None
        if self.process.pid in (pid, parent):
            return "server"
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return "fork" if b"/bootstrap-fork\0" in f.read() else None
        except OSError:
            return None

    def saved(self):
        """Return when it last saved a file since it began, as far as its history knows, or None. It
        keeps files of up to 256 KiB, unless settings say otherwise."""
        if self.process is None or self.process.poll() is not None:
            return None
        if time.monotonic() >= self.saved_until:
            self.saved_until = time.monotonic() + SAVED_SECONDS
            try:
                with os.scandir(os.path.join(self.data, "User/History")) as files:
                    self.saved_at = max((file.stat().st_mtime for file in files), default=None)
            except OSError:
                self.saved_at = None
        return self.saved_at if self.saved_at is not None and self.saved_at >= self.began else None

    def last_line(self):
        with open(self.log, "rb") as f:
            lines = f.read()[-4096:].decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def request_head(request, prefix):
    """Return the head of a request for the program, whose paths have no prefix."""
    upgrade = request.headers.get("Upgrade")
    # As it came: what a pattern of paths matches is decoded, and can contain line ends.
    lines = [f"{request.method} {request.uri[len(prefix):]} HTTP/1.1"]
    lines += [f"{k}: {v}" for k, v in request.headers.get_all() if k.lower() not in PER_CONNECTION]
    lines += ["Connection: Upgrade", f"Upgrade: {upgrade}"] if upgrade else ["Connection: close", f"Content-Length: {len(request.body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Received:
    """What was received, in the place of the socket of an HTTP client."""

    def __init__(self, data):
        self.data = data

    def makefile(self, mode):
        return io.BytesIO(self.data)


def response(data):
    """Return a whole response and its body."""
    read = http.client.HTTPResponse(Received(data))
    read.begin()
    return read, read.read()


async def pump(source, target):
    """Pass on what comes until one side closes, and close the other."""
    try:
        while True:
            await target.write(await source.read_bytes(CHUNK, partial=True))
    except iostream.StreamClosedError:
        pass
    finally:
        target.close()


def load(app):
    if type(app).__module__.startswith("notebook."):  # before version 7
        from notebook.base.handlers import IPythonHandler as Handler
    else:
        from jupyter_server.base.handlers import JupyterHandler as Handler
    program = installed()
    server = app.web_app.settings["weir_code"] = CodeServer(program) if program else None
    prefix = app.web_app.settings["base_url"].rstrip("/") + "/code"

    class CodeHandler(Handler):
        @web.authenticated
        async def get(self):
            if server is None:
                raise web.HTTPError(404, "VS Code is not installed in this environment")
            workbench = self.request.path == prefix + "/" and self.request.method == "GET" and "Upgrade" not in self.request.headers
            if workbench:
                self.request.headers.pop("Accept-Encoding", None)
            request = request_head(self.request, prefix) + self.request.body
            try:
                upstream, first = await server.begin(request, self.request.method == "GET", PAGE_SECONDS if workbench else START_SECONDS)
            except Starting as e:
                if not workbench or time.monotonic() - server.begun > START_SECONDS:
                    raise web.HTTPError(504, f"VS Code does not run: {e}") from None
                chinese = self.request.headers.get("Accept-Language", "").startswith("zh")
                self.set_status(503)
                return self.finish(STARTING_PAGE % ("VS Code 正在启动…" if chinese else "VS Code is starting…"))
            except Failed as e:
                raise web.HTTPError(502, f"VS Code does not run: {e}") from None
            if workbench:
                return self.finish_with(*response(first + await upstream.read_until_close()))
            client = self.detach()
            try:
                await client.write(first)
                await asyncio.gather(pump(client, upstream), pump(upstream, client))
            except iostream.StreamClosedError:
                pass  # the client has gone
            finally:
                client.close()
                upstream.close()

        def finish_with(self, read, body):
            """Send the page itself as Jupyter's pages are sent, so that weir_pages can add to it."""
            self.set_status(read.status, read.reason)
            headers = [(name, value) for name, value in read.getheaders() if name.lower() not in PER_CONNECTION]
            for name, _ in headers:
                self.clear_header(name)
            for name, value in headers:
                self.add_header(name, value)
            self.finish(body)

        head = post = put = patch = delete = options = get

    app.web_app.add_handlers(".*$", [(prefix, web.RedirectHandler, {"url": prefix + "/"}), (prefix + "/.*", CodeHandler)])


def _jupyter_server_extension_points():
    return [{"module": "weir_code"}]


def _load_jupyter_server_extension(app):
    load(app)


load_jupyter_server_extension = _load_jupyter_server_extension  # before jupyter_server 1.0
