#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks find what they are for: each test makes a small tree with one fault."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


class Checks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("src/base/error.h", SPDX + "// Errors.\n#pragma once\n")
        self.write("src/base/README.md", "Errors.\n")
        self.write("src/import/README.md", "Importers.\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def check(self, tool):
        done = subprocess.run([sys.executable, TOOLS / tool, "--root", self.root], stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout

    def assert_found(self, tool, what):
        status, output = self.check(tool)
        self.assertEqual(status, 1, output)
        self.assertIn(what, output)

    def test_a_clean_tree_passes(self):
        self.write("src/import/a.cc", SPDX + '#include "base/error.h"\n#include <vector>\n')
        self.assertEqual(self.check("check_includes.py")[0], 0)
        self.assertEqual(self.check("check_tree.py")[0], 0)

    def test_an_include_against_the_direction_is_found(self):
        self.write("src/runtime/session.h", SPDX)
        self.write("src/import/a.cc", SPDX + '#include "runtime/session.h"\n')
        self.assert_found("check_includes.py", "src/import/a.cc:2: import/ may not include runtime/")

    def test_an_include_of_nothing_is_found(self):
        self.write("src/import/a.cc", SPDX + '#include "base/gone.h"\n')
        self.assert_found("check_includes.py", "there is no src/base/gone.h")

    def test_a_system_call_outside_base_is_found(self):
        self.write("src/import/a.cc", SPDX + "#include <sys/mman.h>\n")
        self.assert_found("check_includes.py", "<sys/mman.h> belongs into src/base/")

    def test_a_heavy_header_in_a_header_is_found(self):
        self.write("src/import/a.h", SPDX + "#include <nlohmann/json.hpp>\n")
        self.assert_found("check_includes.py", "slow to compile")

    def test_a_folder_that_no_rule_knows_is_found(self):
        self.write("src/misc/a.cc", SPDX)
        self.assert_found("check_includes.py", "src/misc/ is not in the list")

    def test_a_missing_licence_line_is_found(self):
        self.write("src/import/a.cc", "int a;\n")
        self.assert_found("check_tree.py", "src/import/a.cc:1: the first line must be")

    def test_a_long_file_is_found(self):
        self.write("src/import/a.cc", SPDX + "\n" * 700)
        self.assert_found("check_tree.py", "701 lines")

    def test_a_folder_without_readme_is_found(self):
        self.write("src/text/a.cc", SPDX)
        self.assert_found("check_tree.py", "src/text/: has no README.md")

    def test_a_dead_link_and_a_dead_path_are_found(self):
        self.write("README.md", "See [this](docs/gone.md).\nAnd `src/base/gone.h`, but `src/FOLDER/x.cc` is a pattern.\n")
        self.assert_found("check_tree.py", "README.md:1: links to docs/gone.md")
        self.assert_found("check_tree.py", "README.md:2: names src/base/gone.h")
        self.assertNotIn("FOLDER", self.check("check_tree.py")[1])


if __name__ == "__main__":
    unittest.main()
