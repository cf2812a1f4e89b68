# SPDX-License-Identifier: Apache-2.0
"""Makers of small hostile files; the runner is tests/e2e/test_hostile_files.py."""
