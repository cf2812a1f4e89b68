# SPDX-License-Identifier: Apache-2.0
# `transcribe` and `run` on recordings, with the real Whisper base of CYB_TEST_MODELS: formats, standard input, several
# files in order, and what goes wrong.
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest
import wave

PROGRAM = os.environ.get("CYB_LLM", "build/release/cyb-llm")
MODELS = os.environ.get("CYB_TEST_MODELS", "")
SOURCE = os.path.join(MODELS, "whisper-base")
JFK = str(pathlib.Path(__file__).resolve().parents[1] / "data/sound/jfk.wav")
SAID = ("And so my fellow Americans ask not what your country can do for you, ask what you can do for your country.")


@unittest.skipUnless(MODELS and os.path.exists(SOURCE), "CYB_TEST_MODELS has no whisper-base")
class Transcribe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.environment = dict(os.environ, CYB_HOME=os.path.join(cls.folder.name, "home"))
        subprocess.run([PROGRAM, "import", SOURCE, "--name", "whisper"], check=True, env=cls.environment, capture_output=True)
        cls.silence = os.path.join(cls.folder.name, "silence.wav")
        with wave.open(cls.silence, "wb") as out:
            out.setparams((1, 2, 8000, 0, "NONE", ""))
            out.writeframes(bytes(2 * 8000 * 3))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def call(self, *arguments, data=b""):
        return subprocess.run([PROGRAM, *arguments], input=data, capture_output=True, env=self.environment, timeout=240)

    def works(self, *arguments, data=b""):
        done = self.call(*arguments, data=data)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def fails(self, status, *arguments, data=b""):
        done = self.call(*arguments, data=data)
        self.assertEqual(done.returncode, status, done.stderr.decode()[:2000])
        error = done.stderr.decode()
        self.assertTrue(error.startswith("error: "), error)
        self.assertLessEqual(len(error.splitlines()), 2, error)
        return error

    def test_run_writes_what_is_said(self):
        self.assertEqual(" ".join(self.works("run", "whisper", JFK).split()), SAID)

    def test_json_has_times_of_words(self):
        out = json.loads(self.works("run", "whisper", JFK, "--json", "--words"))
        self.assertEqual(out["text"], SAID)
        self.assertEqual(out["language"], "en")
        self.assertEqual(out["duration"], 11.0)
        words = [w for s in out["segments"] for w in s["words"]]
        self.assertEqual("".join(w["word"] for w in words).strip(), SAID)
        times = [t for w in words for t in (w["start"], w["end"])]
        self.assertEqual(times, sorted(times))

    def test_subtitles(self):
        self.assertTrue(self.works("transcribe", "whisper", JFK, "--format", "srt").startswith(
            "1\n00:00:00,000 --> 00:00:07,600\nAnd so my fellow Americans"))
        self.assertTrue(self.works("transcribe", "whisper", JFK, "--format", "vtt").startswith(
            "WEBVTT\n\n00:00:00.000 --> 00:00:07.600\nAnd so"))
        self.assertTrue(self.works("transcribe", "whisper", JFK, "--format", "tsv").startswith(
            "start\tend\ttext\n0\t7600\tAnd so"))

    def test_standard_input_and_several_files_in_order(self):
        data = pathlib.Path(JFK).read_bytes()
        self.assertEqual(" ".join(self.works("run", "whisper", "-", data=data).split()), SAID)
        out = self.works("transcribe", "whisper", self.silence, JFK, self.silence, "--format", "json", "--batch", "2")
        self.assertEqual([json.loads(line)["text"] for line in out.splitlines()], ["", SAID, ""])
        folder = os.path.join(self.folder.name, "out")
        self.works("transcribe", "whisper", JFK, JFK, "--output-dir", folder)
        self.assertEqual(sorted(os.listdir(folder)), ["jfk-2.txt", "jfk.txt"])

    def test_options_of_the_language(self):
        self.assertEqual(json.loads(self.works("run", "whisper", JFK, "--json", "--language", "en"))["language"], "en")
        self.assertIn("does not know the language 'xx'", self.fails(2, "run", "whisper", JFK, "--language", "xx"))

    def test_temperatures(self):
        said = self.works("transcribe", "whisper", JFK)
        self.assertEqual(self.works("transcribe", "whisper", JFK, "--temperatures", "0"), said)
        self.assertEqual(self.works("run", "whisper", JFK, "--temperature", "0"), said)
        drawn = json.loads(self.works("transcribe", "whisper", JFK, "--temperatures", "0.1,0.4", "--json"))
        self.assertGreaterEqual(drawn["segments"][0]["temperature"], 0.1)
        self.fails(2, "transcribe", "whisper", JFK, "--temperatures", "0,3")

    def test_what_is_no_recording(self):
        self.fails(1, "transcribe", "whisper", os.path.join(self.folder.name, "not there.wav"))
        path = os.path.join(self.folder.name, "text.wav")
        pathlib.Path(path).write_text("no sound at all")
        self.assertIn("text.wav", self.fails(1, "transcribe", "whisper", path))
        # A header that promises two gigabytes.
        pathlib.Path(path).write_bytes(b"RIFF" + struct.pack("<I", 0x7fffffff) + b"WAVE")
        self.fails(1, "transcribe", "whisper", path)

    def test_wrong_usage(self):
        self.fails(2, "run", "whisper", JFK, "--words")
        self.fails(2, "run", "whisper", JFK, "--system", "Be brief.")
        self.fails(2, "transcribe", "whisper", "-", "-")


if __name__ == "__main__":
    unittest.main()
