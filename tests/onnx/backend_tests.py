#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's own backend tests through `cyb-llm import` and `cyb-llm run`.

    backend_tests.py                    all cases; the list not_passing.txt must be exact
    backend_tests.py --only REGEX [-v]  some of them, without looking at the list; -v prints what went wrong
    backend_tests.py --update-list      rewrites the list; new entries get the error as their reason

$CYB_LLM is the program. Ends with 0 where exactly the listed cases fail, each in the way that its entry says, and every operator that a model of the catalog uses passes all of its cases.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import environment

HERE = pathlib.Path(__file__).resolve().parent
LIST = HERE / "not_passing.txt"
COUNTED = ("node", "simple", "pytorch-converted", "pytorch-operator")
BESIDE = ("expanded", "training", "ai.onnx.ml")
# What no two programs draw alike.
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
ROUNDING = 8
# Verdicts: pass; error, a clear message; rounding, within ROUNDING times the tolerance; random, right but for what was
# drawn; wrong; crash.
Outcome = collections.namedtuple("Outcome", "verdict detail")


class Case:
    def __init__(self, folder):
        described = json.loads((folder / "case.json").read_text())
        self.name, self.folder = folder.name, folder
        self.group, self.operators = described["group"], described["operators"]
        self.rtol, self.atol, self.sets = described["rtol"], described["atol"], described["sets"]


def first_lines(text):
    lines = [line.strip() for line in text.strip().splitlines() if not line.startswith("advice:")]
    return " | ".join(lines[:8]).removeprefix("error: ")[:400]


def call(program, arguments, timeout):
    """None, or the Outcome of a command that did not end well."""
    try:
        done = subprocess.run([program, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=timeout)
    except subprocess.TimeoutExpired:
        return Outcome("crash", f"{arguments[0]} did not end within {timeout} s")
    if done.returncode == 0:
        return None
    text = done.stderr.decode(errors="replace")
    if done.returncode < 0 or done.returncode > 2 or not re.search(r"^error: ", text, re.M):
        return Outcome("crash", f"{arguments[0]} ended with {done.returncode}: {first_lines(text)}")
    return Outcome("error", first_lines(text))


def run_case(case, program, timeout):
    import values

    with tempfile.TemporaryDirectory(prefix="cyb-onnx-") as scratch:
        scratch = pathlib.Path(scratch)
        model = scratch / "m.model"
        failed = call(program, ["import", case.folder / "model.onnx", "-o", model], timeout)
        if failed:
            return failed._replace(detail=failed.detail.replace(f"{case.folder}/", ""))
        found = Outcome("pass", "")
        for number, data in enumerate(case.sets):
            arguments, wanted = ["run", model, "--threads", 1], []
            for item in data["inputs"]:
                for name, path in values.input_files(case.folder, item, scratch):
                    arguments += ["--input", f"{name}={path}"]
            for i, item in enumerate(data["outputs"]):
                files = values.output_files(item, scratch, f"{number}_{i}")
                wanted.append(files)
                for name, path in files:
                    arguments += ["--output", f"{name}={path}"]
            failed = call(program, arguments, timeout)
            if failed:
                return failed
            for item, files in zip(data["outputs"], wanted):
                different = values.compare(case.folder, item, files, case.rtol, case.atol)
                if different:
                    kind = kind_of_difference(case, item, files)
                    if kind == "wrong":
                        return Outcome(kind, f"output '{item['name']}': {different}")
                    found = Outcome(kind, f"output '{item['name']}': {different}")
    return found


def kind_of_difference(case, item, files):
    import values

    if not values.compare(case.folder, item, files, ROUNDING * case.rtol, ROUNDING * case.atol):
        return "rounding"
    return "random" if RANDOM.intersection(case.operators) and values.drawn(case.folder, item, files) else "wrong"


def run_all(cases, arguments):
    """Name -> Outcome."""
    found = {}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(run_case, case, arguments.program, arguments.timeout): case for case in cases}
        for future in concurrent.futures.as_completed(running):
            case = running[future]
            found[case.name] = future.result()
            if arguments.verbose and found[case.name].verdict != "pass":
                print(f"{case.name}: {found[case.name].verdict}: {found[case.name].detail}", flush=True)
    return found


def read_list():
    """Name -> reason. A line is: name, white space, reason."""
    listed = {}
    for number, line in enumerate(LIST.read_text().splitlines() if LIST.exists() else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, reason = line.partition(" ")
        if not reason.strip() or name in listed:
            sys.exit(f"{LIST}:{number}: a case with its reason, each once")
        listed[name] = reason.strip()
    return listed


def listed_verdict(reason):
    word = reason.partition(":")[0]
    return word if word in ("rounding", "random", "wrong", "crash") else "error"


def write_list(cases, found, listed):
    groups = collections.defaultdict(list)
    for case in cases:
        if found[case.name].verdict != "pass":
            groups[case.group].append(case)
    with open(LIST, "w") as file:
        file.write("# The backend tests of ONNX that do not pass, each with the reason. backend_tests.py compares.\n"
                   "# They end in a clear error, unless the reason begins with\n"
                   f"#   rounding:  the result is within {ROUNDING} times the case's tolerance (checked);\n"
                   "#   random:    the result is right but for which elements were drawn (checked);\n"
                   "#   wrong: or crash:, of which there should be none.\n")
        for group in (*COUNTED, *BESIDE):
            if groups[group]:
                file.write(f"\n# {group}\n")
            for case in sorted(groups[group], key=lambda c: c.name):
                outcome = found[case.name]
                reason = listed.get(case.name)
                if not reason or listed_verdict(reason) != outcome.verdict:
                    reason = ("" if outcome.verdict == "error" else outcome.verdict + ": ") + outcome.detail
                file.write(f"{case.name} {reason}\n")


def percent(passed, total):
    return f"{passed:4} of {total:4}" + (f"  {100 * passed / total:6.2f} %" if total else "")


def print_table(cases, found, used):
    """By operator, then by group. Returns the operators of real models that do not pass everywhere."""
    by_operator = collections.defaultdict(lambda: [0, 0])
    by_group = collections.defaultdict(lambda: [0, 0])
    for case in cases:
        good = found[case.name].verdict == "pass"
        by_group[case.group][0] += good
        by_group[case.group][1] += 1
        if case.group == "node":
            for operator in case.operators:
                by_operator[operator][0] += good
                by_operator[operator][1] += 1
    print("operator (* used by a model of the catalog)   passed of all")
    for operator, (passed, total) in sorted(by_operator.items()):
        if passed != total or len(cases) < 100:
            print(f"  {'*' if operator in used else ' '} {operator:40} {percent(passed, total)}")
    whole = sum(passed == total for passed, total in by_operator.values())
    print(f"    all cases pass: {whole} of {len(by_operator)} operators")
    for group in (*COUNTED, *BESIDE):
        print(f"{group:44}  {percent(*by_group[group])}")
    print(f"{'counted: ' + ', '.join(COUNTED):44}  {percent(*(sum(by_group[g][i] for g in COUNTED) for i in (0, 1)))}")
    return sorted(o for o in used if by_operator[o][0] != by_operator[o][1])


def check_list(cases, found, listed):
    """What is not as the list says, one line each."""
    problems = []
    names = {case.name for case in cases}
    problems += [f"{name} is listed, but there is no such case" for name in sorted(set(listed) - names)]
    for case in sorted(cases, key=lambda c: c.name):
        verdict, detail = found[case.name]
        reason = listed.get(case.name)
        if verdict == "pass" and reason:
            problems.append(f"{case.name} passes now: take it off the list")
        elif verdict != "pass" and not reason:
            problems.append(f"{case.name}: {verdict}: {detail}")
        elif verdict != "pass" and listed_verdict(reason) != verdict:
            problems.append(f"{case.name} is listed with '{reason}', but: {verdict}: {detail}")
    return problems


def main():
    parser = argparse.ArgumentParser(description="Runs ONNX's own backend tests.")
    parser.add_argument("--program", default=os.environ.get("CYB_LLM", "build/release/cyb-llm"))
    parser.add_argument("--only", metavar="REGEX", help="cases whose name matches")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one command")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what went wrong")
    parser.add_argument("--update-list", action="store_true")
    parser.add_argument("--keep-cases", metavar="DIR", help="copy the files of the chosen cases there, and end")
    arguments = parser.parse_args()
    arguments.program = shutil.which(arguments.program) or sys.exit(f"there is no program {arguments.program}; set CYB_LLM")
    arguments.program = os.path.abspath(arguments.program)

    import cases as files

    start = time.monotonic()
    folder = files.cases_folder()
    cases = [Case(f) for f in sorted(folder.iterdir()) if not arguments.only or re.search(arguments.only, f.name)]
    if not cases:
        sys.exit("no such case")
    if arguments.keep_cases:
        for case in cases:
            shutil.copytree(case.folder, pathlib.Path(arguments.keep_cases, case.name), dirs_exist_ok=True)
        return
    found = run_all(cases, arguments)
    used = set((HERE / "used_operators.txt").read_text().splitlines()[1:])
    lacking = print_table(cases, found, used)
    print(f"{len(cases)} cases, {time.monotonic() - start:.0f} s")
    if arguments.only:
        sys.exit(any(o.verdict != "pass" for o in found.values()))
    listed = read_list()
    if arguments.update_list:
        write_list(cases, found, listed)
        return
    problems = check_list(cases, found, listed)
    problems += [f"a model of the catalog uses {o}, not all of whose cases pass" for o in lacking]
    for problem in problems:
        print(problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    environment.skip_unless("CYB_TEST_ONNX")
    environment.enter()
    main()
