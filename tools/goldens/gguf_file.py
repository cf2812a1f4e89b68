# SPDX-License-Identifier: Apache-2.0
"""A small GGUF file with every kind of metadata value, written by the `gguf` package (0.19.0) and read by the tests.

Run from the repository root: python tools/goldens/gguf_file.py
"""
import gguf
import numpy as np

w = gguf.GGUFWriter("tests/data/gguf/values.gguf", "llama")
w.add_uint8("test.u8", 200)
w.add_int8("test.i8", -100)
w.add_uint16("test.u16", 60000)
w.add_int16("test.i16", -30000)
w.add_uint32("test.u32", 4000000000)
w.add_int32("test.i32", -2000000000)
w.add_uint64("test.u64", 1 << 63)
w.add_int64("test.i64", -(1 << 62))
w.add_float32("test.f32", 0.1)
w.add_float64("test.f64", 0.1)
w.add_bool("test.bool", True)
w.add_string("test.string", "grün")
w.add_array("test.strings", ["", "a", "▁the"])
w.add_array("test.ints", [1, -2, 3])
w.add_array("test.floats", [0.5, -1.25])
w.add_array("test.bools", [True, False])
w.add_tensor("b.weight", np.arange(12, dtype=np.float32).reshape(3, 4))
w.add_tensor("a.weight", np.arange(64, dtype=np.float16).reshape(2, 32))
blocks = gguf.quants.quantize(np.linspace(-1, 1, 2 * 64, dtype=np.float32).reshape(2, 64), gguf.GGMLQuantizationType.Q4_0)
w.add_tensor("q.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
