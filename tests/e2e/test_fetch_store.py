# SPDX-License-Identifier: Apache-2.0
# The store: a full disk, a read-only folder, names, and the program's manners (exit status, two lines, help).
import os
import subprocess
import unittest

from fake_server import File, sha256
from fetch_case import FetchCase

DATA = bytes(i * 7919 % 251 for i in range(3_000_000))


def may_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


class Places(FetchCase):
    """Runs the program in a mount namespace of its own, where its home is a small or a read-only file system."""

    def setUp(self):
        super().setUp()
        if not may_mount():
            self.skipTest("mounting needs root")
        self.prepare = ""

    def command(self, *arguments):
        plain = super().command(*arguments)
        return ["unshare", "-m", "sh", "-c", self.prepare + ' exec "$@"', "sh", *plain]

    def test_full_disk_is_an_error_with_both_sizes_and_nothing_is_lost(self):
        self.server.routes["/m.gguf"] = File(DATA)
        url = self.server.url + "/m.gguf#sha256=" + sha256(DATA)
        self.prepare = "mkdir -p %s/cache && mount -t tmpfs -o size=1m tmpfs %s/cache &&" % (self.home, self.home)
        error = self.fetch_fails(url)
        self.assertIn("3000000 bytes are still to come", error)
        self.assertIn("free some space", error)
        self.prepare = ""
        self.assertEqual(self.read(self.fetch(url)), DATA)

    def test_disk_that_fills_up_on_the_way(self):
        def chunked(h):  # tells no size beforehand
            h.send_response(200)
            h.send_header("Transfer-Encoding", "chunked")
            h.end_headers()
            for at in range(0, len(DATA), 100_000):
                h.wfile.write(b"%x\r\n%s\r\n" % (100_000, DATA[at:at + 100_000]))
            h.wfile.write(b"0\r\n\r\n")

        self.server.routes["/m.gguf"] = chunked
        self.prepare = "mkdir -p %s/cache && mount -t tmpfs -o size=1m tmpfs %s/cache &&" % (self.home, self.home)
        error = self.fetch_fails(self.server.url + "/m.gguf")
        self.assertIn("No space left", error)
        self.assertIn("free some space", error)

    def test_read_only_store(self):
        self.server.routes["/m.gguf"] = File(DATA)
        self.prepare = "mount --bind %s %s && mount -o remount,ro,bind %s &&" % ((self.home,) * 3)
        error = self.fetch_fails(self.server.url + "/m.gguf")
        self.assertIn("Read-only file system", error)
        self.assertIn("CYB_HOME", error)
        self.assertEqual(len(self.server.requests), 0)

    def test_model_in_a_read_only_store_cannot_be_removed(self):
        self.write("models/a.model", "x")
        self.prepare = "mount --bind %s %s && mount -o remount,ro,bind %s &&" % ((self.home,) * 3)
        done = self.run_program("rm", "a")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot remove", done.stderr)
        self.assertTrue(os.path.exists(os.path.join(self.home, "models/a.model")))


class Manners(FetchCase):
    def check(self, arguments, status, *texts):
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        for text in texts:
            self.assertIn(text, done.stdout if status == 0 else done.stderr)
        if status != 0:
            self.assertEqual(done.stdout, "")
            self.assertEqual([line.split(":")[0] for line in done.stderr.strip().splitlines()], ["error", "advice"])

    def test_help_shows_examples(self):
        self.check(["--help"], 0, "Examples:", "cyb-llm fetch smollm2")
        for command in ("fetch", "list", "rm"):
            self.check([command, "--help"], 0, "Examples:", "cyb-llm " + command)
        self.check(["--version"], 0, "cyb-llm ")

    def test_wrong_usage_is_status_2(self):
        self.check([], 2, "cyb-llm --help")
        self.check(["fetch", "--nonsense"], 2, "cyb-llm fetch --help")
        self.check(["fetch", "hf:"], 2, "hf:org/repo")
        self.check(["fetch", "ftp://host/file"], 2, "https://")
        self.check(["fetch", "smollm2", "--encoding", "q3"], 2, "found the encoding 'q3'")
        self.check(["rm"], 2, "cyb-llm list")

    def test_failures_are_status_1(self):
        self.check(["fetch", "./absent.gguf"], 1, "there is no file or folder './absent.gguf'")
        self.check(["rm", "absent"], 1, "there is no model 'absent'")
        self.write("config.toml", "[network]\nretry = 3\n")
        self.check(["list"], 1, "unknown setting 'network.retry'", "[network] knows")

    def test_list_names_files_that_cannot_be_read_and_goes_on(self):
        self.write("models/broken.model", "not a model")
        done = self.run_program("list")
        self.assertEqual(done.returncode, 0)
        self.assertIn("cannot be read", done.stdout)
        self.assertIn("cyb-llm rm broken", done.stderr)
        self.assertEqual(self.run_program("rm", "broken").returncode, 0)
        self.assertIn("no models yet", self.run_program("list").stderr)

    def test_rm_removes_all_or_nothing(self):
        for name in ("a", "b"):
            self.write("models/%s.model" % name, "x")
        self.check(["rm", "a", "c"], 1, "there is no model 'c'")
        self.assertTrue(os.path.exists(os.path.join(self.home, "models/a.model")))
        self.check(["rm", "a", "b"], 0, "removed a", "removed b")

    def test_failed_import_keeps_the_fetched_file_and_leaves_no_model(self):
        self.server.routes["/m.gguf"] = File(DATA)
        done = self.run_program("fetch", self.server.url + "/m.gguf")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(self.leftovers()), 1)
        self.assertEqual(os.listdir(os.path.join(self.home, "models")), [])

    def test_progress_is_drawn_on_a_terminal_only(self):
        import pty
        self.server.routes["/m.gguf"] = File(DATA)
        url = self.server.url + "/m.gguf"
        self.assertEqual(self.run_program("fetch", url, "--no-import").stderr, "")
        self.run_program("rm", "--cache")
        parent, child = pty.openpty()
        done = subprocess.run(self.command("fetch", url, "--no-import"), env={**self.environment, "TERM": "xterm"},
                              stdout=subprocess.PIPE, stderr=child, timeout=60)
        os.close(child)
        drawn = os.read(parent, 65536).decode()
        os.close(parent)
        self.assertEqual(done.returncode, 0)
        self.assertIn("m.gguf", drawn)
        self.assertIn("3.0 MB", drawn)


if __name__ == "__main__":
    unittest.main()
