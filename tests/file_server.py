"""A server of files on this machine, which can break off."""

import http.server
import threading

import pytest


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `server.files`, with ranges; breaks off after `server.breaks` bytes if that is set."""

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Range")))
        body = self.server.files.get(self.path.lstrip("/"))
        if body is None:
            return self.send_error(404)
        begin = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        if begin >= len(body) > 0:
            return self.send_error(416)
        if begin and self.server.ranges:
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        else:
            begin = 0
            self.send_response(200)
        self.send_header("Content-Length", str(len(body) - begin))
        self.end_headers()
        breaks = self.server.breaks
        self.server.breaks = None
        self.wfile.write(body[begin : begin + breaks] if breaks else body[begin:])
        return None

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.files = {}
    made.asked = []
    made.breaks = None
    made.ranges = True
    made.url = f"http://127.0.0.1:{made.server_port}"
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()
