# SPDX-License-Identifier: Apache-2.0
# Downloads that break off, are resumed, and servers that lie: the file is right or there is an error, never a wrong file.
import os
import signal
import subprocess
import time
import unittest

from fake_server import File, drop_after, hang_up, ignores_range, lying_range, reply, sha256, wrong_range
from fetch_case import FetchCase

DATA = bytes(i * 7919 % 251 for i in range(300_000))


class Resume(FetchCase):
    def serve(self, file):
        self.server.routes["/m.gguf"] = file
        return self.server.url + "/m.gguf"

    def ranges(self):
        return [r.headers.get("Range") for r in self.server.seen("/m.gguf")]

    def test_plain_file_arrives(self):
        path = self.fetch(self.serve(File(DATA)))
        self.assertEqual(self.read(path), DATA)
        self.assertTrue(path.endswith("/m.gguf"))
        self.assertEqual(self.leftovers(), [path])

    def test_second_fetch_asks_for_nothing(self):
        url = self.serve(File(DATA))
        self.fetch(url)
        self.fetch(url)
        self.assertEqual(len(self.server.requests), 1)

    def test_dropped_connections_are_resumed_where_they_broke(self):
        path = self.fetch(self.serve(File(DATA, faults=[drop_after(100_000), drop_after(50_000)])))
        self.assertEqual(self.read(path), DATA)
        self.assertEqual(self.ranges(), [None, "bytes=100000-", "bytes=150000-"])
        self.assertEqual(self.server.requests[1].headers["If-Range"], '"v1"')

    def test_drops_without_progress_end_in_an_error_and_the_next_run_goes_on(self):
        url = self.serve(File(DATA, faults=[drop_after(100_000), hang_up, hang_up, hang_up]))
        error = self.fetch_fails(url + "#sha256=" + sha256(DATA))
        self.assertIn("broke off", error)
        path = self.fetch(url + "#sha256=" + sha256(DATA))
        self.assertEqual(self.read(path), DATA)
        self.assertEqual(self.ranges()[-1], "bytes=100000-")

    def test_killed_process_resumes(self):
        def slow(h, file):
            h.send_response(200)
            h.send_header("Content-Length", str(len(DATA)))
            h.send_header("ETag", '"v1"')
            h.end_headers()
            h.wfile.write(DATA[:120_000])
            h.wfile.flush()
            time.sleep(30)

        url = self.serve(File(DATA, faults=[slow])) + "#sha256=" + sha256(DATA)
        running = subprocess.Popen(self.command("fetch", url, "--no-import"), env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + 20
        while time.time() < deadline and not any(
                p.endswith(".partial") and os.path.getsize(p) == 120_000 for p in self.leftovers()):
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
        running.wait()
        path = self.fetch(url)
        self.assertEqual(self.read(path), DATA)
        self.assertEqual(self.ranges(), [None, "bytes=120000-"])

    def test_file_that_changed_on_the_server_is_fetched_anew(self):
        self.serve(File(DATA, faults=[drop_after(100_000), hang_up, hang_up, hang_up]))
        self.fetch_fails(self.server.url + "/m.gguf")
        path = self.fetch(self.serve(File(DATA[::-1] + b"more", etag='"v2"')))
        self.assertEqual(self.read(path), DATA[::-1] + b"more")

    def test_without_validator_and_digest_nothing_is_continued(self):
        path = self.fetch(self.serve(File(DATA, etag=None, faults=[drop_after(100_000)])))
        self.assertEqual(self.read(path), DATA)
        self.assertEqual(self.ranges(), [None, None])

    def test_server_that_ignores_ranges(self):
        path = self.fetch(self.serve(File(DATA, faults=[drop_after(100_000), ignores_range])))
        self.assertEqual(self.read(path), DATA)

    def test_range_from_another_place_is_noticed_and_fetched_anew(self):
        for shift in (-10, 10, -100_000):
            with self.subTest(shift=shift):
                self.run_program("rm", "--cache")
                path = self.fetch(self.serve(File(DATA, faults=[drop_after(100_000), wrong_range(shift)])))
                self.assertEqual(self.read(path), DATA)

    def test_range_always_from_another_place_is_an_error(self):
        url = self.serve(File(DATA, faults=[drop_after(100_000), wrong_range(10), drop_after(100_000), wrong_range(10)]))
        self.assertIn("answers wrongly to a resumed download", self.fetch_fails(url))
        self.assertEqual(self.leftovers(), [])

    def test_lying_range_is_found_by_the_digest_and_fetched_anew(self):
        url = self.serve(File(DATA, faults=[drop_after(100_000), lying_range])) + "#sha256=" + sha256(DATA)
        path = self.fetch(url)
        self.assertEqual(self.read(path), DATA)
        self.assertIn("fetching it anew", self.notes)

    def test_damaged_partial_file_is_found_by_the_digest(self):
        url = self.serve(File(DATA, faults=[drop_after(100_000), hang_up, hang_up, hang_up])) + "#sha256=" + sha256(DATA)
        self.fetch_fails(url)
        partial = [p for p in self.leftovers() if p.endswith(".partial")][0]
        with open(partial, "r+b") as file:
            file.write(b"spoilt")
        path = self.fetch(url)
        self.assertEqual(self.read(path), DATA)

    def test_corrupt_file_is_an_error_and_leaves_nothing(self):
        url = self.serve(File(DATA[:-1] + b"x")) + "#sha256=" + sha256(DATA)
        error = self.fetch_fails(url)
        self.assertIn("SHA-256 is " + sha256(DATA[:-1] + b"x"), error)
        self.assertIn(sha256(DATA), error)
        self.assertEqual(self.leftovers(), [])

    def test_body_shorter_than_announced_is_never_taken_for_the_file(self):
        def short(h, file):
            h.answer(200, DATA[:1000], {}, length=len(DATA))

        self.assertIn("broke off", self.fetch_fails(self.serve(File(DATA, faults=[short] * 10))))

    def test_empty_body_is_an_error(self):
        self.assertIn("empty", self.fetch_fails(self.serve(reply(b""))))
        self.assertEqual(self.leftovers(), [])

    def test_complete_partial_needs_no_further_byte(self):
        """The process ended between the last byte and the rename."""
        url = self.serve(File(DATA, faults=[drop_after(len(DATA) - 1), hang_up, hang_up, hang_up]))
        self.fetch_fails(url + "#sha256=" + sha256(DATA))
        partial = [p for p in self.leftovers() if p.endswith(".partial")][0]
        with open(partial, "ab") as file:
            file.write(DATA[-1:])
        before = len(self.server.requests)
        path = self.fetch(url + "#sha256=" + sha256(DATA))
        self.assertEqual(self.read(path), DATA)
        self.assertEqual(len(self.server.requests), before)

    def test_second_process_is_refused(self):
        def slow(h, file):
            h.send_response(200)
            h.send_header("Content-Length", str(len(DATA)))
            h.end_headers()
            h.wfile.write(DATA[:1000])
            h.wfile.flush()
            time.sleep(3)
            h.wfile.write(DATA[1000:])

        url = self.serve(File(DATA, faults=[slow]))
        first = subprocess.Popen(self.command("fetch", url, "--no-import"), env=self.environment,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + 20
        while time.time() < deadline and not any(p.endswith(".partial") for p in self.leftovers()):
            time.sleep(0.02)
        self.assertIn("another process", self.fetch_fails(url))
        self.assertEqual(first.wait(timeout=30), 0)

    def test_body_without_length_is_taken_to_its_end(self):
        def chunked(h):
            h.send_response(200)
            h.send_header("Transfer-Encoding", "chunked")
            h.end_headers()
            for at in range(0, len(DATA), 70_000):
                piece = DATA[at:at + 70_000]
                h.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            h.wfile.write(b"0\r\n\r\n")

        self.assertEqual(self.read(self.fetch(self.serve(chunked))), DATA)

    def test_web_page_in_place_of_the_file(self):
        url = self.serve(reply("<html>sign in</html>", headers={"Content-Type": "text/html; charset=utf-8"}))
        self.assertIn("web page", self.fetch_fails(url))

    def test_encoded_body_is_refused(self):
        url = self.serve(reply(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}))
        self.assertIn("encoded", self.fetch_fails(url))

    def test_lfs_pointer_in_place_of_the_file(self):
        url = self.serve(reply("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 300000\n" % sha256(DATA)))
        self.assertIn("LFS pointer", self.fetch_fails(url))
        path = self.write("pointer.gguf", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n")
        self.assertIn("LFS pointer", self.fetch_fails(path))

    def test_silent_server_times_out(self):
        def silent(h, file):
            time.sleep(8)

        error = self.fetch_fails(self.serve(File(DATA, faults=[silent] * 5)))
        self.assertIn("broke off", error)

    def test_unreachable_host_fails_at_once(self):
        started = time.time()
        self.assertIn("cannot reach", self.fetch_fails("http://127.0.0.1:9/m.gguf"))
        self.assertIn("cannot reach", self.fetch_fails("http://nowhere.invalid/m.gguf"))
        self.assertLess(time.time() - started, 10)

    def test_out_places_the_file_and_overwrites_nothing(self):
        url = self.serve(File(DATA))
        folder = os.path.join(self.home, "mine")
        path = self.fetch(url + "#sha256=" + sha256(DATA), "--out", folder)
        self.assertEqual(path, folder + "/m.gguf")
        self.fetch(url + "#sha256=" + sha256(DATA), "--out", folder)  # proven the same
        with open(path, "wb") as file:
            file.write(b"mine")
        self.assertIn("already there", self.fetch_fails(url + "#sha256=" + sha256(DATA), "--out", folder))
        self.assertEqual(self.read(path), b"mine")


if __name__ == "__main__":
    unittest.main()
