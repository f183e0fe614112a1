"""An HTTP proxy in front of an API server: delays PATCHes, and lets watches expire on request."""
import http.client, http.server, json, socket, threading, time

EXPIRED = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old resource version"}
HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "host", "keep-alive"}


class Proxy:
    """Serves on a free port of 127.0.0.1 until closed. Requests are forwarded with the token of the control plane."""

    def __init__(self, plane, patch_delay):
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def forward(self):
                proxy.forward(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

        self.plane, self.patch_delay = plane, patch_delay
        self.watches, self.lock = {}, threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def kubeconfig(self):
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": self.url}}], "users": [{"name": "proxy", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy", "namespace": "default"}}]})

    def forward(self, request):
        length = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(length) if length else None
        if request.command == "PATCH":
            time.sleep(self.patch_delay)
        headers = {key: value for key, value in request.headers.items() if key.lower() not in HOP_BY_HOP | {"accept-encoding"}}
        headers["Authorization"] = f"Bearer {self.plane.token}"
        upstream = http.client.HTTPSConnection(self.plane.address.hostname, self.plane.address.port, context=self.plane.tls)
        upstream.request(request.command, request.path, body, headers)
        response = upstream.getresponse()
        request.send_response(response.status)
        for key, value in response.getheaders():
            if key.lower() not in HOP_BY_HOP:
                request.send_header(key, value)
        if "watch=" in request.path and response.status == 200:
            self.stream(request, upstream, response)
        else:
            content = response.read()
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            request.wfile.write(content)
        upstream.close()

    def stream(self, request, upstream, response):
        """Forwards whole lines, so that an error can follow any of them."""
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        request.wfile.flush()
        request.close_connection = True
        turn = threading.Lock()
        with self.lock:
            self.watches[request] = (turn, upstream)
        try:
            for line in response:
                with turn:
                    send(request, line)
            with turn:
                request.wfile.write(b"0\r\n\r\n")
        except (OSError, ValueError, http.client.HTTPException):
            pass  # one of both sides has disconnected, or the watch has expired
        finally:
            with self.lock:
                self.watches.pop(request, None)

    def expire(self, resource):
        """Ends the watches of a resource with `410 Gone`. Returns their number."""
        with self.lock:
            found = [(it, *ends) for it, ends in self.watches.items() if f"/{resource}?" in it.path]
        for request, turn, upstream in found:
            with turn:
                try:
                    send(request, json.dumps({"type": "ERROR", "object": EXPIRED}).encode() + b"\n")
                    request.wfile.write(b"0\r\n\r\n")
                    request.connection.shutdown(socket.SHUT_WR)
                    upstream.sock.shutdown(socket.SHUT_RDWR)
                except (OSError, AttributeError):
                    pass  # it has ended by itself
        return len(found)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def send(request, line):
    request.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
    request.wfile.flush()
