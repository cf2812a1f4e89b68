# SPDX-License-Identifier: Apache-2.0
# `run` and its neighbours as a person uses them, on the real SmolLM2 of CYB_TEST_MODELS: answers, pipes, JSON, stop
# texts, and everything that goes wrong.
import json
import os
import pty
import select
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ.get("CYB_LLM", "build/release/cyb-llm")
MODELS = os.environ.get("CYB_TEST_MODELS", "")
SOURCE = os.path.join(MODELS, "smollm2.gguf")


def may_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


@unittest.skipUnless(os.path.exists(SOURCE), "CYB_TEST_MODELS has no smollm2.gguf")
class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = os.path.join(cls.folder.name, "home")
        cls.environment = dict(os.environ, CYB_HOME=cls.home)
        subprocess.run([PROGRAM, "import", SOURCE, "--name", "smollm2"], check=True, env=cls.environment, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def call(self, *arguments, text=None, prefix=()):
        return subprocess.run([*prefix, PROGRAM, *arguments], input=text, capture_output=True, env=self.environment, timeout=240)

    def works(self, *arguments, text=b""):
        done = self.call(*arguments, text=text)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def fails(self, status, *arguments, text=b"", prefix=()):
        done = self.call(*arguments, text=text, prefix=prefix)
        self.assertEqual(done.returncode, status, done.stderr.decode()[:2000])
        error = done.stderr.decode()
        self.assertTrue(error.startswith("error: "), error)
        self.assertLessEqual(len(error.splitlines()), 2, error)
        return error

    def answer(self, *arguments, text=b""):
        return json.loads(self.works("run", "smollm2", *arguments, "--json", text=text))

    def test_a_prompt_is_answered(self):
        text = self.works("run", "smollm2", "What is the capital of France? Answer in one word.", "--max-tokens", "12")
        self.assertIn("Paris", text)
        self.assertTrue(text.endswith("\n"))

    def test_json_has_the_promised_fields(self):
        a = self.answer("Count to three.", "--max-tokens", "8", "--seed", "5")
        self.assertEqual(list(a), ["text", "prompt_tokens", "generated_tokens", "drafted_tokens", "accepted_tokens", "finish_reason", "seed", "model", "backend", "timings"])
        self.assertEqual((a["generated_tokens"], a["finish_reason"], a["seed"], a["model"], a["backend"]), (8, "length", 5, "smollm2", "cpu"))

    def test_a_piped_prompt_is_the_same(self):
        self.assertEqual(self.answer("--max-tokens", "8", text=b"Count to three.\n")["text"], self.answer("Count to three.", "--max-tokens", "8")["text"])

    def test_same_seed_same_answer_and_another_seed_another(self):
        sampled = ("Tell me a story.", "--temperature", "1.2", "--max-tokens", "16")
        first = self.answer(*sampled, "--seed", "1")["text"]
        self.assertEqual(first, self.answer(*sampled, "--seed", "1", "--threads", "1")["text"])
        self.assertNotEqual(first, self.answer(*sampled, "--seed", "2")["text"])

    def test_stop_text_is_never_shown(self):
        whole = self.answer("Count from one to ten in digits.", "--max-tokens", "40")["text"]
        cut = whole[10:14]
        a = self.answer("Count from one to ten in digits.", "--max-tokens", "40", "--stop", cut)
        self.assertEqual(a["text"], whole[:whole.index(cut)])
        self.assertEqual(a["finish_reason"], "stop")

    def test_both_paths_say_the_same(self):
        prompt = ("Name a color.", "--max-tokens", "12")
        self.assertEqual(self.answer(*prompt, "--path", "graph")["text"], self.answer(*prompt)["text"])

    def test_generation_that_reaches_the_context_ends_with_length(self):
        a = self.answer("Once upon a time", "--raw", "--ctx", "64", "--repeat-penalty", "1.3")
        self.assertEqual(a["finish_reason"], "length")
        self.assertLessEqual(a["prompt_tokens"] + a["generated_tokens"], 65)

    def test_broken_utf8(self):
        self.assertIn("the prompt is not valid UTF-8: byte 5 is 0xff", self.fails(2, "run", "smollm2", text=b"Say \xff\xfe hi"))

    def test_empty_prompt(self):
        self.assertIn("the prompt is empty", self.fails(2, "run", "smollm2", ""))
        self.assertIn("the prompt is empty", self.fails(2, "run", "smollm2", text=b"\n"))

    def test_prompt_beyond_the_context_is_refused_with_both_numbers(self):
        error = self.fails(2, "run", "smollm2", text=b"word " * 100_000)
        self.assertRegex(error, r"the prompt has 1\d{5} tokens, the context holds 8192")

    def test_context_beyond_the_trained_one(self):
        self.assertIn("8192", self.fails(2, "run", "smollm2", "hi", "--ctx", "100000"))

    def test_unknown_model(self):
        error = self.fails(1, "run", "smollm", "hi")
        self.assertIn("smollm2", error)

    def test_unknown_backend_and_options(self):
        self.assertIn("use --backend cpu", self.fails(1, "run", "smollm2", "hi", "--backend", "cuda"))
        self.assertEqual(self.call("run", "smollm2", "hi", "--nonsense").returncode, 2)
        self.assertEqual(self.call("run", "smollm2", "hi", "--temperature", "warm").returncode, 2)

    def test_import_into_a_full_disk_leaves_nothing(self):
        if not may_mount():
            self.skipTest("mounting needs root")
        target = os.path.join(self.folder.name, "small")
        os.makedirs(target, exist_ok=True)
        script = 'mount -t tmpfs -o size=20m tmpfs %s && "$@"; status=$?; ls -A %s | wc -l; exit $status' % (target, target)
        done = self.call("import", SOURCE, "--out", target + "/m.model", prefix=("unshare", "-m", "sh", "-c", script, "sh"))
        self.assertEqual(done.returncode, 1, done.stderr.decode())
        self.assertIn("No space left", done.stderr.decode())
        self.assertEqual(done.stdout.decode().split()[-1], "0")

    def test_import_into_a_read_only_store(self):
        if not may_mount():
            self.skipTest("mounting needs root")
        script = 'mount --bind %s %s && mount -o remount,ro,bind %s && exec "$@"' % ((self.home,) * 3)
        error = self.fails(1, "import", SOURCE, "--name", "again", prefix=("unshare", "-m", "sh", "-c", script, "sh"))
        self.assertIn("Read-only file system", error)
        self.assertEqual(sorted(os.listdir(os.path.join(self.home, "models"))), ["smollm2.model"])

    def test_interrupted_import_leaves_nothing(self):
        target = os.path.join(self.folder.name, "interrupted")
        os.makedirs(target)
        process = subprocess.Popen([PROGRAM, "import", SOURCE, "--out", target + "/m.model", "--encoding", "q4"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not os.listdir(target):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertNotEqual(process.wait(60), 0)
        self.assertEqual(os.listdir(target), [])

    def test_commands_about_the_model(self):
        self.assertIn("weights", self.works("show", "smollm2"))
        self.assertIn("model.embed_tokens.weight", self.works("show", "smollm2", "--tensors"))
        self.assertIn("for i in 0..30 {", self.works("show", "smollm2", "--program"))
        self.assertIn("as the header says", self.works("show", "smollm2", "--verify"))
        self.assertEqual(self.works("tokenize", "smollm2", "Hello, world", "--ids").split(), ["19556", "28", "905"])
        self.assertEqual(self.works("tokenize", "smollm2", "--decode", "19556,28,905"), "Hello, world\n")
        self.assertIn("smollm2", self.works("list"))
        self.assertIn("sdpa", self.works("status", "--ops"))
        self.assertIn("0 failed", self.works("test", "smollm2"))
        explained = self.works("run", "smollm2", "hi", "--max-tokens", "2", "--explain")
        for part in ("before fusion", "after fusion", "fused_swi_glu", "largest live set"):
            self.assertTrue(part in explained, part)

    def test_keys_and_values_of_eight_bits(self):
        question = "What is the capital of France? Answer in one word."
        self.assertIn("Paris", self.works("run", "smollm2", question, "--max-tokens", "12", "--kv-type", "q8"))
        self.assertEqual(self.answer(question, "--kv-type", "q8", "--threads", "1")["text"], self.answer(question, "--kv-type", "q8")["text"])
        sizes = {}
        for kind in ("f16", "q8"):
            found = json.loads(self.works("bench", "smollm2", "--kv-type", kind, "--prompt", "1400", "--decode", "2", "--rounds", "1", "--json", "--profile"))
            self.assertEqual(found["kv_type"], kind)
            self.assertIn("sdpa", [k["operator"] for k in found["profile"][0]["kernels"]])
            sizes[kind] = found["state_bytes"]
        self.assertLess(sizes["q8"], 0.6 * sizes["f16"])
        self.assertIn("f16,q8", self.call("run", "smollm2", question, "--kv-type", "q7").stderr.decode().replace(", ", ","))
        self.assertEqual(self.call("run", "smollm2", question, "--kv-type", "q7").returncode, 2)
        self.assertIn("--exact", self.fails(2, "run", "smollm2", question, "--kv-type", "q8", "--exact"))
        self.assertIn("leave it out", self.fails(2, "run", "smollm2", "--kv-type", "q8", "--input", "tokens=random:1x4"))

    def test_chat_on_a_terminal(self):
        self.chat()

    def test_chat_with_keys_and_values_of_eight_bits(self):
        self.chat("--kv-type", "q8")

    def chat(self, *options):
        pid, fd = pty.fork()
        if pid == 0:
            os.environ.update(CYB_HOME=self.home, TERM="dumb")
            os.execv(PROGRAM, [PROGRAM, "run", "smollm2", "--max-tokens", "24", *options])
        seen = b""

        def until(text, seconds=120):
            nonlocal seen
            end = time.time() + seconds
            while text not in seen:
                self.assertLess(time.time(), end, seen)
                if select.select([fd], [], [], 0.2)[0]:
                    seen += os.read(fd, 4096)
            seen = seen[seen.index(text) + len(text):]

        until(b"/help lists commands")
        until(b"> ")
        os.write(fd, b"What is the capital of France? Answer in one word.\n")
        until(b"Paris")
        until(b"> ")
        os.write(fd, b"/history\n")
        until(b"assistant:")
        until(b"> ")
        os.write(fd, b"Write a very long poem about the sea.\n")
        time.sleep(0.3)
        os.write(fd, b"\x03")  # stops the answer, not the program
        until(b"> ")
        os.write(fd, b"/exit\n")
        while True:
            try:
                if not os.read(fd, 4096):
                    break
            except OSError:
                break
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)


if __name__ == "__main__":
    unittest.main()
