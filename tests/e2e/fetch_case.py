# SPDX-License-Identifier: Apache-2.0
# What the tests of `cyb-llm fetch` share: a store of their own, servers, and the program run to its end.
import os
import shutil
import subprocess
import tempfile
import unittest

from fake_server import FakeServer

PROGRAM = os.environ.get("CYB_LLM", os.path.join(os.path.dirname(__file__), "../../build/release/cyb-llm"))


class FetchCase(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="cyb-fetch-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.write("config.toml", "[network]\nretries = 2\nstall_timeout = 3\nconnect_timeout = 2\nmax_wait = 3\n")
        self.server = self.new_server()
        self.environment = {
            "PATH": os.environ["PATH"], "CYB_HOME": self.home, "HOME": self.home, "PIP_CONFIG_FILE": "/dev/null",
            "HF_ENDPOINT": self.server.url, "CYB_OLLAMA_REGISTRY": self.server.url,
            "PIP_INDEX_URL": self.server.url + "/simple", "no_proxy": "*",
        }
        for name in ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def new_server(self, host="127.0.0.1"):
        server = FakeServer(host)
        self.addCleanup(server.close)
        return server

    def write(self, name, text):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb" if isinstance(text, bytes) else "w") as file:
            file.write(text)
        return path

    def command(self, *arguments):
        return [PROGRAM, *arguments]

    def run_program(self, *arguments, timeout=60):
        done = subprocess.run(self.command(*arguments), env=self.environment, capture_output=True, text=True,
                              timeout=timeout, stdin=subprocess.DEVNULL)
        self.assertNotIn(done.returncode, (-6, -11), done.stderr)
        return done

    def fetch(self, source, *more):
        """Fetches without import; the path that the program prints."""
        done = self.run_program("fetch", source, "--no-import", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.notes = done.stderr
        return done.stdout.strip().splitlines()[-1]

    def fetch_fails(self, source, *more, status=1):
        """The two lines of the error."""
        done = self.run_program("fetch", source, "--no-import", *more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn("error: ", done.stderr)
        self.assertIn("advice: ", done.stderr)
        self.assertNotIn("\033", done.stderr)  # colours only on a terminal
        return done.stderr

    def read(self, *path):
        with open(os.path.join(*path), "rb") as file:
            return file.read()

    def leftovers(self):
        found = []
        for folder, _, files in os.walk(os.path.join(self.home, "cache")):
            found += [os.path.join(folder, name) for name in files]
        return found
