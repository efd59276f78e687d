#!/usr/bin/env python3
"""Makes the first corpus of each fuzz target from vectors/messaging/. Safe to run again.

    python3 fuzz/seed.py            # every target
    python3 fuzz/seed.py wire jcs   # these

A target is one function here: it yields the bytes of its seeds. Files are named by their content, so that
running it again adds nothing twice.
"""

import base64
import hashlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VECTORS = ROOT / "vectors" / "messaging"


def vectors():
    """Every vector file, by its name without the ending."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(VECTORS.glob("*.json"))}


def b64u(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def compact(value):
    """A value as wire text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def objects(value):
    """Every object inside a value, outermost first."""
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from objects(member)
    elif isinstance(value, list):
        for item in value:
            yield from objects(item)


def wire():
    for file in vectors().values():
        for case in objects(file):
            for member in ("text", "canonical"):
                if isinstance(case.get(member), str):
                    yield case[member].encode("utf-8", "surrogatepass")
            if isinstance(case.get("bytes"), str):
                yield b64u(case["bytes"])
    # Whole envelopes, entries and grants as they would arrive.
    for name, file in vectors().items():
        if name not in ("jcs", "wire"):
            for case in objects(file):
                if "sig" in case:
                    yield compact(case)


def jcs():
    # The target draws a value from bytes (`fuzzing/draw.rs`): one seed for each of the first choices.
    for kind in range(8):
        yield bytes([kind])
        yield bytes([kind] + [5, kind] * 8 + list(range(64)))
    for case in vectors()["jcs"]["numbers"]:
        yield bytes([2]) + bytes.fromhex(case["bits"])[::-1]
    yield bytes([7] * 31 + [0])
    yield bytes([7] * 33 + [0])


def envelope_open():
    for name in ("envelope", "negative"):
        for case in objects(vectors()[name]):
            if isinstance(case.get("envelope"), dict):
                yield compact(case["envelope"])
    # Else the target draws one of its samples, then what to change in it.
    for sample in range(16):
        for change in range(3):
            yield bytes([sample]) + bytes(10) + bytes([1, 1]) + bytes(44) + bytes([change]) + bytes(range(1, 64))


def chain_verify():
    file = vectors()["delegation"]
    for case in file["cases"]:
        if isinstance(case["chain"], list):
            yield compact(case["chain"])
    yield from drawn()


def grant_verify():
    for case in objects(vectors()["grants"]):
        if "sig" in case:
            yield compact(case)
    yield from drawn()


def fence():
    for name in ("fence", "clean_text"):
        for case in objects(vectors()[name]):
            if isinstance(case.get("text"), str):
                yield case["text"].encode("utf-8", "surrogatepass")
    yield from drawn()


def drawn():
    """Bytes to draw choices from: long enough for whole chains and texts."""
    for step in range(1, 32):
        yield bytes((at * step + step) % 251 for at in range(400))


def roster_apply():
    for name in ("roster", "negative"):
        for case in objects(vectors()[name]):
            if "op" in case and "by" in case:
                yield compact(case)
    # The target draws signer, target, operation and their members: one seed for each operation, then many.
    for op in range(7):
        yield bytes([0, op % 3, op] + [0] * 7) * 3
        yield bytes((seed * 7 + op) % 251 for seed in range(160))


def ticket():
    for case in vectors()["roster"]["cards"]:
        yield case["text"].encode("utf-8")
    for kind in range(3):
        yield bytes([kind, 0]) + bytes(range(64))


def frame():
    for case in vectors()["wire"]["frames"]:
        yield case["text"].encode("utf-8")
    for template in range(19):
        for edits in range(3):
            yield bytes([template, edits]) + bytes(range(2, 40))


def relay_machine():
    # The target draws events from bytes with `arbitrary`: an event's kind is four bytes, then its members.
    yield from drawn()


def daemon_machine():
    yield from drawn()


TARGETS = {
    "wire": wire,
    "jcs": jcs,
    "envelope_open": envelope_open,
    "chain_verify": chain_verify,
    "grant_verify": grant_verify,
    "fence": fence,
    "roster_apply": roster_apply,
    "ticket": ticket,
    "frame": frame,
    "relay_machine": relay_machine,
    "daemon_machine": daemon_machine,
}


def main():
    for name in sys.argv[1:] or TARGETS:
        folder = ROOT / "fuzz" / "corpus" / name
        folder.mkdir(parents=True, exist_ok=True)
        seeds = set(TARGETS[name]())
        for seed in seeds:
            (folder / hashlib.sha256(seed).hexdigest()[:20]).write_bytes(seed)
        print(f"{name}: {len(seeds)} seeds")


if __name__ == "__main__":
    main()
