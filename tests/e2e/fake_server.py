# SPDX-License-Identifier: Apache-2.0
# A local HTTP server whose answers a test writes down route by route: honest, broken off, lying, corrupt.
import hashlib
import http.server
import json
import threading
import zipfile
import io


class Request:
    def __init__(self, path, headers):
        self.path = path
        self.headers = headers


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        owner = self.server.owner
        path = self.path
        request = Request(path, self.headers)
        with owner.lock:
            owner.requests.append(request)
        route = owner.routes.get(path) or owner.routes.get(path.split("?")[0])
        if route is None:
            self.answer(404, b"not here")
            return
        route(self)

    def answer(self, status, body=b"", headers=None, length=None):
        """A whole answer; `length` announces another size than the body has."""
        if isinstance(body, str):
            body = body.encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        try:
            self.wfile.write(body)
            self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass
        if length is not None and length != len(body):
            self.hang_up()

    def hang_up(self):
        self.close_connection = True
        try:
            self.connection.shutdown(2)
        except OSError:
            pass

    def log_message(self, *args):
        pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients that hang up belong to the tests


class FakeServer:
    def __init__(self, host="127.0.0.1"):
        self.routes = {}
        self.requests = []
        self.lock = threading.Lock()
        self._server = _Server((host, 0), _Handler)
        self._server.owner = self
        self.url = "http://%s:%d" % (host, self._server.server_port)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def seen(self, path):
        return [r for r in self.requests if r.path.split("?")[0] == path]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def reply(body, status=200, headers=None):
    return lambda h: h.answer(status, body, headers)


def reply_json(value, status=200, headers=None):
    return reply(json.dumps(value), status, {"Content-Type": "application/json", **(headers or {})})


def redirect(url, headers=None, status=302):
    return lambda h: h.answer(status, b"", {"Location": url, **(headers or {})})


class File:
    """A file that answers ranges as it should, with one fault for each of its first answers if `faults` says so."""

    def __init__(self, data, etag='"v1"', faults=(), headers=None):
        self.data = data
        self.etag = etag
        self.faults = list(faults)
        self.headers = headers or {}

    def __call__(self, h):
        fault = self.faults.pop(0) if self.faults else None
        if callable(fault):
            return fault(h, self)
        headers = {"Accept-Ranges": "bytes", **self.headers}
        if self.etag:
            headers["ETag"] = self.etag
        start = 0
        asked = h.headers.get("Range")
        condition = h.headers.get("If-Range")
        if asked and (condition is None or condition == self.etag):
            start = int(asked.split("=")[1].rstrip("-"))
            if start >= len(self.data):
                return h.answer(416, b"", {"Content-Range": "bytes */%d" % len(self.data)})
        body = self.data[start:]
        if start:
            headers["Content-Range"] = "bytes %d-%d/%d" % (start, len(self.data) - 1, len(self.data))
        h.answer(206 if start else 200, body, headers)


def drop_after(count):
    """Announces everything that was asked for, sends `count` bytes of it and hangs up."""

    def fault(h, file):
        start = 0
        asked = h.headers.get("Range")
        headers = {"ETag": file.etag} if file.etag else {}
        if asked and h.headers.get("If-Range") in (None, file.etag):
            start = int(asked.split("=")[1].rstrip("-"))
            headers["Content-Range"] = "bytes %d-%d/%d" % (start, len(file.data) - 1, len(file.data))
        h.answer(206 if start else 200, file.data[start:start + count], headers, length=len(file.data) - start)

    return fault


def wrong_range(shift):
    """Answers a range with bytes from another place."""

    def fault(h, file):
        start = max(0, int(h.headers["Range"].split("=")[1].rstrip("-")) + shift)
        h.answer(206, file.data[start:], {"ETag": file.etag,
                                          "Content-Range": "bytes %d-%d/%d" % (start, len(file.data) - 1, len(file.data))})

    return fault


def lying_range(h, file):
    """Claims the bytes that were asked for and sends others."""
    start = int(h.headers["Range"].split("=")[1].rstrip("-"))
    h.answer(206, b"\0" * (len(file.data) - start),
             {"ETag": file.etag, "Content-Range": "bytes %d-%d/%d" % (start, len(file.data) - 1, len(file.data))})


def ignores_range(h, file):
    h.answer(200, file.data, {"ETag": file.etag})


def hang_up(h, file=None):
    h.hang_up()


def make_zip(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()
