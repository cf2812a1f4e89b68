# SPDX-License-Identifier: Apache-2.0
"""Tiny reference models by kind; importing a module fills core.REGISTRY."""
