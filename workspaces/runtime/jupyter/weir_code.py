"""An extension of Jupyter's server that serves VS Code at /code/, where code-server is installed.

The program starts with the first request, and again with the next one after it has ended.
It listens on a socket that only this user reaches; Jupyter checks who asks, as for its own
pages. Connections are passed on byte by byte, so that WebSockets work as they are.
"""

import asyncio
import json
import os
import shutil
import socket
import subprocess

from tornado import httputil, iostream, web

START_SECONDS = 60
SETTINGS = {"telemetry.telemetryLevel": "off", "workbench.startupEditor": "none", "extensions.autoCheckUpdates": False}
CHUNK = 64 << 10
# What concerns one connection, RFC 9110 section 7.6.1, and what follows from the body as read.
PER_CONNECTION = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "content-length", "upgrade",
                  "authorization"}


def installed():
    """Return the program's path, or None."""
    return os.environ.get("WEIR_CODE_SERVER") or shutil.which("code-server")


class Failed(Exception):
    """VS Code does not run; the message says why."""


class CodeServer:
    """One process of code-server."""

    def __init__(self, program):
        self.program = program
        self.dir = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or os.path.expanduser("~/.cache"), "code-server")
        self.socket = os.path.join(self.dir, "http.sock")
        self.log = os.path.join(self.dir, "log")
        self.process = None
        self.starting = asyncio.Lock()

        home = os.path.expanduser("~")
        self.data = os.path.join(home, ".local/share/code-server") if os.access(home, os.W_OK) else os.path.join(self.dir, "data")

    def command(self):
        return [
            self.program, "--socket", self.socket, "--socket-mode", "600", "--auth", "none",
            "--config", os.path.join(self.dir, "config.yaml"), "--session-socket", os.path.join(self.dir, "session.sock"),
            "--user-data-dir", self.data, "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust",
            "--disable-getting-started-override", os.path.expanduser("~"),
        ]

    async def connect(self):
        """Return a stream to the program, which is started unless it runs."""
        async with self.starting:
            if self.process is None or self.process.poll() is not None:
                self.start()
            for _ in range(START_SECONDS * 20):
                try:
                    stream = iostream.IOStream(socket.socket(socket.AF_UNIX))
                    await stream.connect(self.socket)
                    return stream
                except (OSError, iostream.StreamClosedError):
                    if self.process.poll() is not None:
                        raise Failed(f"it exited with code {self.process.returncode}. {self.last_line()}") from None
                await asyncio.sleep(0.05)
        raise Failed(f"it did not start within {START_SECONDS} seconds. {self.last_line()}")

    def start(self):
        os.makedirs(self.dir, mode=0o700, exist_ok=True)
        self.write_settings()
        try:
            os.remove(self.socket)
        except FileNotFoundError:
            pass
        # A name in its environment would be the address of another server.
        env = {k: v for k, v in os.environ.items() if not k.startswith(("VSCODE_", "CODE_SERVER_", "JUPYTER_TOKEN")) and k != "PORT"}
        with open(self.log, "wb") as log:
            try:
                self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
            except OSError as e:
                raise Failed(str(e)) from None

    def write_settings(self):
        """Write the settings of somebody who has none."""
        settings = os.path.join(self.data, "User/settings.json")
        try:
            os.makedirs(os.path.dirname(settings), exist_ok=True)
            with open(settings, "x", encoding="utf-8") as f:
                json.dump(SETTINGS, f, indent=4)
        except OSError:
            pass  # they are there, or the disk is full, which the program reports

    def owns(self, pid, parent):
        """Whether a process is of the program, and not what a person runs in it."""
        if self.process is None or self.process.pid in (pid, parent):
            return self.process is not None
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return b"/bootstrap-fork\0" in f.read()
        except OSError:
            return False

    def saved(self):
        """Return when it last saved a file, as far as its history knows; None if it does not run."""
        if self.process is None or self.process.poll() is not None:
            return None
        try:
            with os.scandir(os.path.join(self.data, "User/History")) as files:
                return max((file.stat().st_mtime for file in files), default=None)
        except OSError:
            return None

    def last_line(self):
        with open(self.log, "rb") as f:
            lines = f.read()[-4096:].decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def head(request, path):
    """Return the request's head for the program."""
    upgrade = request.headers.get("Upgrade")
    lines = [f"{request.method} {path}{'?' + request.query if request.query else ''} HTTP/1.1"]
    lines += [f"{k}: {v}" for k, v in request.headers.get_all() if k.lower() not in PER_CONNECTION]
    lines += ["Connection: Upgrade", f"Upgrade: {upgrade}"] if upgrade else ["Connection: close", f"Content-Length: {len(request.body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


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

    class CodeHandler(Handler):
        @web.authenticated
        async def get(self, path):
            if server is None:
                raise web.HTTPError(404, "VS Code is not installed in this environment")
            try:
                upstream = await server.connect()
            except Failed as e:
                raise web.HTTPError(502, f"VS Code does not run: {e}") from None
            client = self.detach()
            try:
                await upstream.write(head(self.request, path) + self.request.body)
            except iostream.StreamClosedError:
                client.close()
                return
            await asyncio.gather(pump(client, upstream), pump(upstream, client))

        head = post = put = patch = delete = options = get

    base = app.web_app.settings["base_url"].rstrip("/")
    app.web_app.add_handlers(".*$", [(base + "/code", web.RedirectHandler, {"url": base + "/code/"}), (base + "/code(/.*)", CodeHandler)])


def _jupyter_server_extension_points():
    return [{"module": "weir_code"}]


def _load_jupyter_server_extension(app):
    load(app)


load_jupyter_server_extension = _load_jupyter_server_extension  # before jupyter_server 1.0
