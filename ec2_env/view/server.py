"""Serves the page to a browser on this machine, and to nobody else."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from ec2_env.view.site import Site

HOST = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """Answers from a site. It listens on the loopback address only.

    Args:
        site: What is served.
        port: Port; 0 for any that is free.
    """

    daemon_threads = True

    def __init__(self, site: Site, port: int = 0) -> None:
        self.site = site
        super().__init__((HOST, port), _Answering)

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://{HOST}:{self.server_address[1]}/"


class _Answering(BaseHTTPRequestHandler):
    server: Server
    timeout = 30  # seconds that a silent connection may last

    def do_GET(self) -> None:
        content = self._content()
        if content is not None:
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self._content()

    def _content(self) -> bytes | None:
        """Sends the head of the answer and returns its body."""
        if self.headers.get("Host", "").partition(":")[0] not in (HOST, "localhost"):  # another site's name for this address
            self.send_error(421)
            return None
        name = urlsplit(self.path).path.removeprefix("/")
        content = self.server.site.file(name)
        if content is None:
            self.send_error(404)
            return None
        self.send_response(200)
        kind = "text/javascript" if name.endswith(".js") else "text/html"
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        return content

    def log_message(self, format: str, *values: object) -> None:
        """Says nothing: the terminal shows where the page is."""
