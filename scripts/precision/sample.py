#!/usr/bin/env python3
"""Draws findings on real projects for judging by hand: `docs/precision.md`.

    sample.py draw PROJECTS.tsv SCRATCH OUT.tsv [--clone URL] [--entail BIN] [--seed N] [--each N] [--count N] [--without JUDGED.tsv …]
    sample.py random FOLDER OUT.tsv [--entail BIN] [--seed N] [--most N] [--count N]
    sample.py report JUDGED.tsv

`draw` checks the projects out below SCRATCH, unless they are there (repository and folder are the first two columns of PROJECTS.tsv; URL is a
pattern for `git clone`, with {repo} and {name}), lints each folder with and without the Python around it, and writes a sample of
the findings that are of level error or warn with it or without it to OUT.tsv, with an empty verdict and reason. Modules of Python have
findings only with it. Python's generator with the seed draws: of each rule up to `--each`, by turns from the repositories that have it,
so that neither a rule nor a layout decides alone; what then lacks to `--count` comes by turns from the rules that have more. Findings
in the files of `--without` were judged before and come last.

`random` lints each folder in FOLDER as one repository, with the Python in it, and draws up to `--count` of the findings of any
code that are of level error or warn, at most `--most` of one repository. A checkout has its `.git`, which marks its root.

`report` prints the precision of each rule with Wilson intervals from a judged file: verdicts are `true` and `false`,
and in random draws `pointless` for what is so and asks nothing.
Nothing of the projects is stored but paths and lines.
"""
import argparse
import collections
import csv
import json
import math
import os
import random
import shutil
import subprocess
import sys

COLUMNS = ["repo", "path", "line", "rule", "level_alone", "level_joint", "message", "verdict", "reason"]


def projects(path):
    seen = set()
    for line in open(path, encoding="utf-8"):
        parts = line.rstrip("\n").split("\t")
        if line.startswith("#") or len(parts) < 2 or parts[0] == "repository":
            continue
        if (parts[0], parts[1]) not in seen:
            seen.add((parts[0], parts[1]))
            yield parts[0], parts[1]


def checkout(repo, scratch, url):
    to = os.path.join(scratch, repo.replace("/", "__"))
    if not os.path.isdir(to):
        source = url.format(repo=repo, name=repo.replace("/", "+"))
        command = ["git", "clone", "--quiet", "--depth", "1", source, to]
        if subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0:
            return None
    return to


def lint(binary, folders, *more):
    command = [binary, "lint", "--no-cache", "--format", "json", "--level", "info", *more, *folders]
    out = subprocess.run(command, capture_output=True, text=True).stdout
    found = {}
    for line in out.splitlines():
        row = json.loads(line)
        # Codes of rules; remarks about the format itself are no findings of lint.
        if row.get("code", "")[:1] in "LS" and row.get("line"):
            found[(row["path"], row["line"], row["column"], row["code"])] = row
    return found


def draw(args):
    folders = collections.defaultdict(list)
    for repo, folder in projects(args.projects):
        root = checkout(repo, args.scratch, args.clone)
        where = root and os.path.join(root, folder)
        if where and os.path.isdir(where):
            folders[repo].append(where)
    rows = {}
    for repo, where in sorted(folders.items()):
        root = checkout(repo, args.scratch, args.clone)
        alone, joint = lint(args.entail, where, "--no-python"), lint(args.entail, where)
        for key in alone.keys() | joint.keys():
            before, after = alone.get(key, {"level": "none"}), joint.get(key, {"level": "none"})
            if {before["level"], after["level"]} & {"error", "warn"}:
                row = joint.get(key) or before
                path = os.path.relpath(row["path"], root)
                said = (row["message"] + " | " + row.get("help", "")).replace("\t", " ").replace("\n", " ")
                rows[(repo, path, key[1], key[2], row["code"])] = (before["level"], after["level"], said)
        print(f"{repo}: {len(where)} folders, {sum(k[0] == repo for k in rows)} findings", file=sys.stderr)
    counts = collections.Counter((code, a, j) for (*_, code), (a, j, _) in rows.items())
    for (code, a, j), n in sorted(counts.items()):
        print(f"{n:>6}  {code} alone {a}, joint {j}", file=sys.stderr)
    seen = set()
    for judged in args.without:
        for row in csv.DictReader(open(judged, encoding="utf-8"), delimiter="\t"):
            seen.add((row["repo"], row["path"], row["line"], row["rule"]))
    fresh = {k for k in rows if (k[0], k[1], str(k[2]), k[4]) not in seen}
    chosen = sorted(stratified(sorted(rows), fresh, args.seed, args.each, args.count))
    with open(args.out, "w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        for key in chosen:
            repo, path, line, _, code = key
            alone, joint, said = rows[key]
            writer.writerow([repo, path, line, code, alone, joint, said, "", ""])
    new = sum(k in fresh for k in chosen)
    print(f"{len(chosen)} of {len(rows)} are in {args.out}, {new} of them not judged before", file=sys.stderr)


def random_draw(args):
    rows = []
    for repo in sorted(os.listdir(args.folder)):
        root = os.path.join(args.folder, repo)
        # As its maintainer would: in the folder, so that folders above it say nothing about its files.
        binary = os.path.abspath(shutil.which(args.entail) or args.entail)
        command = [binary, "lint", "--no-cache", "--format", "json", "--level", "warn", "."]
        out = subprocess.run(command, capture_output=True, text=True, cwd=root).stdout
        found = {}
        for row in map(json.loads, out.splitlines()):
            if row.get("code"):
                path = os.path.normpath(row["path"])
                key = (repo, path, row.get("line") or 0, row.get("column") or 0, row["code"])
                found.setdefault(key, row)
        rows += found.items()
    rows.sort(key=lambda r: r[0])
    random.Random(args.seed).shuffle(rows)
    taken, chosen = collections.Counter(), []
    for key, row in rows:
        if taken[key[0]] < args.most and len(chosen) < args.count:
            taken[key[0]] += 1
            chosen.append((key, row))
    with open(args.out, "w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        for (repo, path, line, _, code), row in sorted(chosen, key=lambda r: (r[0][4], r[0])):
            said = row["message"] + " | " + row.get("help", "")
            writer.writerow([repo, path, line, code, "", row["level"], said.replace("\t", " ").replace("\n", " "), "", ""])
    print(f"{len(chosen)} of {len(rows)} findings of {len(taken)} repositories", file=sys.stderr)


def stratified(keys, fresh, seed, each, count):
    """Of each rule up to `each`, by turns from the repositories that have it, both in an order drawn with the seed, those that are
    fresh first; then, as long as there are fewer than `count`, one more of each rule that has some left."""
    source = random.Random(seed)
    queues = {}
    for rule in sorted({k[4] for k in keys}):
        of = collections.defaultdict(list)
        for key in keys:
            if key[4] == rule:
                of[key[0]].append(key)
        for found in of.values():
            source.shuffle(found)
        order = sorted(of)
        source.shuffle(order)
        turns = [of[repo][i] for i in range(len(keys)) for repo in order if i < len(of[repo])]
        queues[rule] = [k for k in turns if k in fresh] + [k for k in turns if k not in fresh]
    chosen = [key for rule in queues for key in queues[rule][:each]]
    for i in range(each, len(keys)):
        for rule in queues:
            if len(chosen) < count and i < len(queues[rule]):
                chosen.append(queues[rule][i])
    return chosen


def wilson(good, n, z=1.96):
    if n == 0:
        return 0.0, 1.0
    p = good / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def report(args):
    rows = list(csv.DictReader(open(args.judged, encoding="utf-8"), delimiter="\t"))
    if any(r["verdict"] == "pointless" for r in rows):
        print("| rule | true | pointless | false | true, 95 % |")
        print("|---|---|---|---|---|")
        for rule in sorted({r["rule"] for r in rows}) + ["all"]:
            of = [r["verdict"] for r in rows if rule in ("all", r["rule"])]
            low, high = wilson(of.count("true"), len(of))
            counts = " | ".join(str(of.count(v)) for v in ("true", "pointless", "false"))
            print(f"| {rule} | {counts} | {100 * low:.0f}–{100 * high:.0f} % |")
        return
    rows = [r for r in rows if r["verdict"] in ("true", "false")]
    print("| rule | alone: true of findings | 95 % | joint: true of findings | 95 % |")
    print("|---|---|---|---|---|")
    for rule in sorted({r["rule"] for r in rows}) + ["all"]:
        of = [r for r in rows if rule in ("all", r["rule"])]
        cells = []
        for column in ("level_alone", "level_joint"):
            said = [r for r in of if r[column] in ("error", "warn")]
            good = sum(r["verdict"] == "true" for r in said)
            low, high = wilson(good, len(said))
            share = f"{good} of {len(said)}" + (f" ({100 * good / len(said):.0f} %)" if said else "")
            cells += [share, f"{100 * low:.0f}–{100 * high:.0f} %" if said else "–"]
        print(f"| {rule} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    d = commands.add_parser("draw")
    d.add_argument("projects")
    d.add_argument("scratch")
    d.add_argument("out")
    d.add_argument("--clone", default="https://github.com/{repo}.git")
    d.add_argument("--entail", default="entail")
    d.add_argument("--seed", type=int, default=42)
    d.add_argument("--each", type=int, default=12, help="findings of one rule, unless there are too few in all")
    d.add_argument("--count", type=int, default=150)
    d.add_argument("--without", nargs="*", default=[], help="judged files of earlier draws")
    d.set_defaults(run=draw)
    n = commands.add_parser("random")
    n.add_argument("folder")
    n.add_argument("out")
    n.add_argument("--entail", default="entail")
    n.add_argument("--seed", type=int, default=42)
    n.add_argument("--most", type=int, default=3, help="findings of one repository")
    n.add_argument("--count", type=int, default=150)
    n.set_defaults(run=random_draw)
    r = commands.add_parser("report")
    r.add_argument("judged")
    r.set_defaults(run=report)
    args = parser.parse_args()
    args.run(args)


main()
