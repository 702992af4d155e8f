"""Damage of files."""

import gzip

ODD = [
    "1e400",
    "-1e400",
    "9" * 400,
    "nan",
    "-inf",
    "",
    "\u2028",
    "\0",
    '"',
    '""',
    ",",
    "\r",
    "99999999999999999999",
    "0x10",
]
ODD += [
    "\u0661",
    "2020-02-30 00:00:00",
    "9999-12-31 23:59:59",
    "99999-12-31 10:00:00",
    "999999999-00:00:00",
    "[",
    "null",
    "1-x",
]
WHOLE = [
    b"",
    b"\n",
    b"\0",
    b"\xff",
    b"\x1f\x8b",
    b"\x1f\x8b\x08",
    b"PK\x03\x04",
    b"PAR1",
    b"[",
    b"{}",
    b"[[]]",
    b"[" * 100_000,
]
WHOLE += [
    b'[{"a":1}]',
    b"1e400",
    b"\xef\xbb\xbf",
    b",,,\n,,,",
    b'"',
    b"a,a\n1,2\n",
    b"a, a\n1,2\n",
    b"[" + b"9" * 5000 + b"]",
]


def flip(raw: bytes, rng) -> bytes:
    made = bytearray(raw)
    for _ in range(rng.choice([1, 3, 30])):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def cut(raw: bytes, rng) -> bytes:
    return raw[: rng.randrange(len(raw))]


def other_order(raw: bytes, rng) -> bytes:
    rows = [line.split(b",") for line in raw.split(b"\n")]
    order = rng.sample(range(len(rows[0])), len(rows[0]))
    return b"\n".join(b",".join(row[i] for i in order if i < len(row)) for row in rows)


def odd_values(raw: bytes, rng) -> bytes:
    mark = b"," if b"," in raw else b" "
    parts = raw.split(mark)
    for _ in range(rng.choice([1, 1, 2, 10])):
        parts[rng.randrange(len(parts))] = rng.choice(ODD).encode()
    return mark.join(parts)


def put_in(raw: bytes, rng) -> bytes:
    place = rng.randrange(len(raw))
    return raw[:place] + rng.choice([b"\0" * 20, rng.randbytes(40), b"\r", b"\xed\xa0\x80"]) + raw[place + 5 :]


def shuffled(raw: bytes, rng) -> bytes:
    lines = raw.split(b"\n")
    return b"\n".join(rng.sample(lines, len(lines)))


DAMAGE = [
    *(flip, cut, other_order, odd_values, odd_values, put_in, shuffled),
    lambda raw, rng: cut(gzip.compress(raw), rng),
    lambda raw, rng: flip(gzip.compress(raw), rng),
    lambda raw, rng: b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n"),
    lambda raw, rng: raw.replace(b",", rng.choice([b";", b"\t", b"|", b" "])),
    lambda raw, rng: raw.decode(errors="replace").encode(rng.choice(["utf-16", "utf-32", "utf-7"])),
    lambda raw, rng: rng.choice(WHOLE),
]


def damaged(raw: bytes, rng) -> bytes:
    return rng.choice(DAMAGE)(raw, rng)
