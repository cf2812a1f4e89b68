# SPDX-License-Identifier: Apache-2.0
"""ONNX's own backend tests as files in the cache: CACHE/onnx/cases-KEY/NAME/{model.onnx, case.json, in_*.npy, out_*.npy}.

The wheel of `onnx` holds the node tests as Python code and the others as files."""
import glob
import hashlib
import json
import os
import pathlib
import re
import shutil
import warnings

import environment

HERE = pathlib.Path(__file__).resolve().parent
TRAINING = "ai.onnx.preview.training"
ML = "ai.onnx.ml"


def cases_folder():
    """The folder of all cases, made when it is first wanted."""
    key = hashlib.sha256()
    for name in ("requirements.txt", "cases.py", "arrays.py"):
        key.update((HERE / name).read_bytes())
    folder = environment.cache_folder() / f"cases-{key.hexdigest()[:12]}"
    if not folder.exists():
        for old in folder.parent.glob("cases-*"):
            shutil.rmtree(old)
        building = folder.with_name(f"making-{os.getpid()}")
        generate(building)
        building.rename(folder)
    return folder


def generate(folder):
    import onnx
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in load_model_tests(kind="node"):
            write_case(folder, case, case.model, [(list(i), list(o)) for i, o in case.data_sets], "node")
        for kind in ("simple", "pytorch-converted", "pytorch-operator"):
            for case in load_model_tests(kind=kind):
                model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
                sets = []
                for data in sorted(glob.glob(os.path.join(case.model_dir, "test_data_set*"))):
                    sets.append((load_values(data, "input", fed(model.graph)), load_values(data, "output", model.graph.output)))
                write_case(folder, case, model, sets, kind)


def fed(graph):
    """Inputs that are no initializers."""
    held = {t.name for t in graph.initializer}
    return [i for i in graph.input if i.name not in held]


def load_values(folder, what, declared):
    import onnx

    found = []
    for i in range(len(glob.glob(os.path.join(folder, f"{what}_*.pb")))):
        content = pathlib.Path(folder, f"{what}_{i}.pb").read_bytes()
        if declared[i].type.HasField("sequence_type"):
            found.append(onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(content)))
        else:
            found.append(onnx.TensorProto.FromString(content))
    return found


def group_of(kind, name, model):
    """Under which heading a case is counted."""
    domains = {o.domain for o in model.opset_import}
    if TRAINING in domains:
        return "training"
    if ML in domains:
        return "ai.onnx.ml"
    if kind == "node" and re.search(r"_expanded(_ver\d+)?$", name):
        return "expanded"
    return kind


def element_type(type_proto):
    if type_proto.HasField("optional_type"):
        return element_type(type_proto.optional_type.elem_type)
    if type_proto.HasField("sequence_type"):
        return element_type(type_proto.sequence_type.elem_type)
    return type_proto.tensor_type.elem_type


def form_of(type_proto):
    if type_proto.HasField("optional_type"):
        inner = form_of(type_proto.optional_type.elem_type)
        return "optional" if inner == "tensor" else f"optional {inner}"
    return "sequence" if type_proto.HasField("sequence_type") else "tensor"


def write_case(folder, case, model, sets, kind):
    import numpy as np
    import onnx

    from arrays import held

    target = folder / case.name
    target.mkdir(parents=True)
    (target / "model.onnx").write_bytes(model.SerializeToString())
    described = []
    for number, (inputs, outputs) in enumerate(sets):
        entry = {}
        for what, given, declared in (("inputs", inputs, fed(model.graph)), ("outputs", outputs, model.graph.output)):
            entry[what] = []
            for i, value in enumerate(given):
                elem = element_type(declared[i].type)
                form = form_of(declared[i].type)
                item = {"name": declared[i].name, "elem": elem, "form": form, "file": None}
                parts = [value] if not isinstance(value, (list, tuple)) else value
                files = []
                for k, part in enumerate(parts):
                    if isinstance(part, onnx.TensorProto):
                        part = onnx.numpy_helper.to_array(part)
                    if part is None:
                        continue
                    name = f"{what[:-1]}_{number}_{i}_{k}.npy"
                    np.save(target / name, held(part, elem), allow_pickle=False)
                    files.append(name)
                item["file"] = files if "sequence" in form else (files[0] if files else None)
                if value is None:
                    item["file"] = None
                entry[what].append(item)
        described.append(entry)
    operators = sorted({node.op_type for node in model.graph.node})
    text = {"kind": kind, "group": group_of(kind, case.name, model), "operators": operators, "rtol": case.rtol,
            "atol": case.atol, "sets": described}
    (target / "case.json").write_text(json.dumps(text))
