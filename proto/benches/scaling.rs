//! How parsing and canonicalizing grow from 1 KiB to 1 MiB, for the shapes that hurt: `cargo bench -p
//! messaging-proto --bench scaling`. The throughput column should hardly depend on the size.
#![allow(missing_docs, clippy::unwrap_used)]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use messaging_proto::json::{canonicalize, parse_wire, parse_wire_noting};
use std::fmt::Write;

fn main() {
    divan::main();
}

const KIB: usize = 1024;
const SIZES: [usize; 4] = [KIB, 16 * KIB, 256 * KIB, 1024 * KIB];

type Shape = (&'static str, fn(usize) -> String);

/// One array of pieces, about `len` bytes long.
fn array_of(len: usize, piece: impl Fn(usize) -> String) -> String {
    let mut text = String::from("[");
    for index in 0.. {
        let piece = piece(index);
        if text.len() + piece.len() + 2 > len {
            break;
        }
        if index > 0 {
            text.push(',');
        }
        text.push_str(&piece);
    }
    text + "]"
}

fn deep(len: usize) -> String {
    array_of(len, |_| format!("{}1{}", "[".repeat(31), "]".repeat(31)))
}

/// One object whose names are in no order, so that they must be sorted.
fn wide(len: usize) -> String {
    let mut text = String::from("{");
    for index in 0_u64.. {
        if text.len() + 24 > len {
            break;
        }
        if index > 0 {
            text.push(',');
        }
        write!(text, "\"{:016x}\":1", index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap();
    }
    text + "}"
}

fn escaped(len: usize) -> String {
    array_of(len, |_| r#""\u00e9\n\"\\\ud83d\ude02\/ \u0000""#.to_owned())
}

fn numbers(len: usize) -> String {
    array_of(len, |index| format!("{}.{:017}e-{}", index % 10, index * 7919 + 1, index % 300))
}

/// Numbers beside the middle of the two smallest doubles: the costliest to read that we know.
fn hard_numbers(len: usize) -> String {
    array_of(len, |index| format!("2.470328229206232720882843964341106861{:04}e-324", index % 10_000))
}

fn text(len: usize) -> String {
    array_of(len, |_| format!("\"{}\"", "plain text, as most bytes are ".repeat(8)))
}

const SHAPES: [Shape; 6] = [
    ("deep", deep),
    ("wide", wide),
    ("escaped", escaped),
    ("numbers", numbers),
    ("hard numbers", hard_numbers),
    ("text", text),
];

/// One shape at one size.
#[derive(Clone, Copy)]
struct Case(Shape, usize);

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:>4} KiB", self.0.0, self.1 / KIB)
    }
}

fn all() -> impl Iterator<Item = Case> {
    SHAPES.into_iter().flat_map(|shape| SIZES.map(|size| Case(shape, size)))
}

#[divan::bench(args = all())]
fn parse(bencher: Bencher<'_, '_>, Case((_, make), size): Case) {
    let text = make(size);
    let bencher = bencher.counter(BytesCount::of_str(&text));
    bencher.bench(|| parse_wire(black_box(text.as_bytes()), usize::MAX).unwrap());
}

#[divan::bench(args = all())]
fn canonical(bencher: Bencher<'_, '_>, Case((_, make), size): Case) {
    let text = make(size);
    let value = parse_wire(text.as_bytes(), usize::MAX).unwrap();
    let bencher = bencher.counter(BytesCount::of_str(&text));
    bencher.bench(|| canonicalize(black_box(&value)).unwrap());
}

/// A sealed envelope of 2 KiB, in canonical text as a sender should write it.
fn envelope() -> String {
    let id = "nVq3wGBirlQGNePR60JUlsDyPssDkoUamYXpppfRpI0";
    format!(
        concat!(
            r#"{{"anchor":{{"hash":"{id}","kind":"roster","seq":12}},"body":"{body}","class":"a2a","#,
            r#""enc":{{"alg":"x25519-hkdf-aes256gcm","epk":"{id}","nonce":"AAAAAAAAAAAAAAAA"}},"#,
            r#""exp":1770604800000,"from":{{"agent":"builder","device":"{id}","person":"alice"}},"#,
            r#""id":"01M7Q5CQG0B6CF8BHJAKRXAX3R","realm":"{id}","sig":"{id}{id}","#,
            r#""to":{{"agent":"reviewer","device":"{id}","person":"bob"}},"ts":1770000000000,"#,
            r#""type":"message","v":"messaging/1"}}"#
        ),
        id = id,
        body = "A".repeat(1300)
    )
}

#[divan::bench]
fn envelope_parse(bencher: Bencher<'_, '_>) {
    let text = envelope();
    assert!(parse_wire_noting(text.as_bytes(), usize::MAX).unwrap().1);
    let bencher = bencher.counter(BytesCount::of_str(&text));
    bencher.bench(|| parse_wire_noting(black_box(text.as_bytes()), usize::MAX).unwrap());
}

#[divan::bench]
fn envelope_canonical(bencher: Bencher<'_, '_>) {
    let text = envelope();
    let value = parse_wire(text.as_bytes(), usize::MAX).unwrap();
    let bencher = bencher.counter(BytesCount::of_str(&text));
    bencher.bench(|| canonicalize(black_box(&value)).unwrap());
}
