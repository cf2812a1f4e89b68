# SPDX-License-Identifier: Apache-2.0
# NumPy's files without NumPy: what tests give to the program and read back.
import ast
import struct
import zipfile

CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|b1": "?", "|u1": "B", "|i1": "b"}


def array_bytes(values, shape, descr="<f4"):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (descr, "".join("%d, " % d for d in shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = struct.pack("<%d%s" % (len(values), CODES[descr]), *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def parse(data):
    """shape, values"""
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    assert not header["fortran_order"]
    code, body = CODES[header["descr"]], data[10 + length:]
    return header["shape"], list(struct.unpack("<%d%s" % (len(body) // struct.calcsize("<" + code), code), body))


def write(path, values, shape=None, descr="<f4"):
    with open(path, "wb") as file:
        file.write(array_bytes(values, (len(values),) if shape is None else shape, descr))


def read(path):
    with open(path, "rb") as file:
        return parse(file.read())


def read_archive(path):
    with zipfile.ZipFile(path) as archive:
        return {name[:-4]: parse(archive.read(name)) for name in archive.namelist()}


def write_archive(path, arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in arrays.items():
            archive.writestr(name + ".npy", data)
