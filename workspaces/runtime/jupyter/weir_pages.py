"""An extension of Jupyter's server that adds weir_notice.js to its pages and to VS Code's, so that an open
tab says why its workspace no longer answers, and takes out of them a terminal that stays blank.

Only these pages are changed, never the files that it serves.
"""

import os

from tornado import web

NAME = "weir_notice.js"
PAGES = ("tree", "notebooks", "edit", "terminals", "consoles", "lab", "doc", "code")


def blank_terminal(app):
    """Whether the terminal's page cannot work: in Debian's package of the classic notebook,
    xterm.js loads files that are not installed."""
    for static in getattr(app, "static_file_path", []):
        try:
            with open(os.path.join(static, "components/xterm.js/index.js"), encoding="utf-8") as f:
                return 'require("./public/Terminal")' in f.read(1000)
        except OSError:
            continue
    return False


def load(app):
    if blank_terminal(app):
        app.web_app.settings["terminals_available"] = False
    base = app.web_app.settings["base_url"].rstrip("/")
    pages = tuple(f"{base}/{page}" for page in PAGES)
    tag = f'<script src="{base}/weir/{NAME}"></script>'.encode()

    class AddScript(web.OutputTransform):
        def __init__(self, request):
            self.added = request.path.startswith(pages)

        def transform_first_chunk(self, status_code, headers, chunk, finishing):
            if self.added and finishing and status_code == 200 and headers.get("Content-Type", "").startswith("text/html"):
                head, end, body = chunk.partition(b"</head>")
                if end:
                    chunk = head + tag + end + body
                    headers["Content-Length"] = str(len(chunk))
            return status_code, headers, chunk

    app.web_app.transforms.insert(0, AddScript)  # before one that compresses
    script = {"path": os.path.dirname(os.path.abspath(__file__))}
    app.web_app.add_handlers(".*$", [(f"{base}/weir/({NAME})", web.StaticFileHandler, script)])


def _jupyter_server_extension_points():
    return [{"module": "weir_pages"}]


def _load_jupyter_server_extension(app):
    load(app)


load_jupyter_server_extension = _load_jupyter_server_extension  # before jupyter_server 1.0
