//! What one envelope costs at each hand it passes: `cargo bench -p messaging-proto --bench envelope`.
//!
//! Signature verification alone is `verify_signature`; what a receiver pays beside it is the difference to
//! `inspect`, and `judge` after that.
#![allow(missing_docs, clippy::unwrap_used)]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use messaging_proto::domain::Domain;
use messaging_proto::envelope::{
    Envelope, HeaderParts, Inspected, Kind, Sealed, To, open_envelope, seal_envelope, verify_envelope,
};
use messaging_proto::fuzzing::World;
use messaging_proto::json::{FromValue, Value, parse_wire, parse_wire_noting};
use messaging_proto::key::{EncSecret, Sig, verify};
use messaging_proto::name::SessionName;
use messaging_proto::realm::RealmView;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

fn main() {
    divan::main();
}

const NOW: Wall = Wall(1_795_000_000_000);
const SIZES: [usize; 4] = [256, 1024, 16 * 1024, 250 * 1024];

fn parts(world: &World) -> HeaderParts {
    let end = |index: usize, agent: &str| {
        let device = world.machines[index].device();
        messaging_proto::envelope::End {
            person: device.person.clone(),
            device: device.machine,
            agent: SessionName::parse(agent),
        }
    };
    HeaderParts {
        id: Ulid::new(NOW, [1; 10]),
        kind: Kind::Message,
        realm: world.realm(),
        anchor: world.anchor(),
        from: end(0, "builder"),
        to: To::Device(end(2, "reviewer")),
        ts: NOW,
        exp: NOW.plus(604_800_000),
        reply_to: None,
    }
}

fn payload(size: usize) -> Value {
    let text = format!(
        r#"{{"kind":"message","message":{{"contextId":"01M7Q5CQG0B6CF8BHJAKRXAX3R","messageId":"01M7Q5CQG0B6CF8BHJAKRXAX3R","parts":[{{"text":"{}"}}],"role":"ROLE_USER"}}}}"#,
        "x".repeat(size)
    );
    parse_wire(text.as_bytes(), text.len()).unwrap()
}

fn sealed(world: &World, size: usize) -> Sealed {
    let ephemeral = EncSecret::from_bytes([7; 32]);
    let to = world.machines[2].enc.public();
    seal_envelope(&world.machines[0].signing, &parts(world), &payload(size), &to, &ephemeral, [3; 12])
        .unwrap()
}

#[divan::bench(args = SIZES)]
fn seal(bencher: Bencher<'_, '_>, size: usize) {
    let world = World::default();
    let (parts, payload) = (parts(&world), payload(size));
    let to = world.machines[2].enc.public();
    let ephemeral = EncSecret::from_bytes([7; 32]);
    bencher.counter(BytesCount::new(size)).bench(|| {
        seal_envelope(&world.machines[0].signing, black_box(&parts), &payload, &to, &ephemeral, [3; 12])
            .unwrap()
    });
}

/// The floor under `inspect`.
#[divan::bench(args = SIZES)]
fn verify_signature(bencher: Bencher<'_, '_>, size: usize) {
    let world = World::default();
    let sealed = sealed(&world, size);
    let sig = Sig::parse(sealed.value.get("sig").and_then(Value::as_str).unwrap()).unwrap();
    let mut unsigned = sealed.value.as_object().unwrap().clone();
    unsigned.remove("sig");
    let signed = messaging_proto::domain::signed_bytes(Domain::Envelope, &unsigned.into()).unwrap();
    let machine = world.machines[0].signing.machine();
    bencher.counter(BytesCount::new(size)).bench(|| assert!(verify(&machine, &sig, black_box(&signed))));
}

#[divan::bench(args = SIZES)]
fn parse(bencher: Bencher<'_, '_>, size: usize) {
    let text = sealed(&World::default(), size).text;
    bencher
        .counter(BytesCount::new(size))
        .bench(|| parse_wire_noting(black_box(text.as_bytes()), text.len()));
}

#[divan::bench(args = SIZES)]
fn schema(bencher: Bencher<'_, '_>, size: usize) {
    let value = sealed(&World::default(), size).value;
    bencher.counter(BytesCount::new(size)).bench(|| Envelope::from_value(black_box(&value)).unwrap());
}

/// As a relay receives it in canonical text: parse, then everything but the realm.
#[divan::bench(args = SIZES)]
fn parse_and_inspect(bencher: Bencher<'_, '_>, size: usize) {
    let text = sealed(&World::default(), size).text;
    bencher.counter(BytesCount::new(size)).bench(|| {
        let (value, canonical) = parse_wire_noting(black_box(text.as_bytes()), text.len()).unwrap();
        assert!(canonical);
        let inspected = Inspected::with_text(value, text.as_str());
        assert!(inspected.signature_ok());
        inspected
    });
}

/// As `parse_and_inspect`, from a device whose key is unusable: all but the curve.
#[divan::bench(args = SIZES)]
fn parse_and_inspect_unsigned(bencher: Bencher<'_, '_>, size: usize) {
    let world = World::default();
    let machine = world.machines[0].signing.machine().to_string();
    let text = sealed(&world, size).text.replace(&machine, &"A".repeat(43));
    bencher.counter(BytesCount::new(size)).bench(|| {
        let (value, canonical) = parse_wire_noting(black_box(text.as_bytes()), text.len()).unwrap();
        assert!(canonical);
        let inspected = Inspected::with_text(value, text.as_str());
        assert!(inspected.envelope().is_ok() && !inspected.signature_ok());
        inspected
    });
}

/// The same from text that was not canonical.
#[divan::bench(args = SIZES)]
fn inspect_canonicalizing(bencher: Bencher<'_, '_>, size: usize) {
    let value = sealed(&World::default(), size).value;
    bencher.counter(BytesCount::new(size)).with_inputs(|| value.clone()).bench_values(Inspected::new);
}

#[divan::bench(args = SIZES)]
fn judge(bencher: Bencher<'_, '_>, size: usize) {
    let world = World::default();
    let inspected = Inspected::new(sealed(&world, size).value);
    let me = world.machines[2].signing.machine();
    bencher.bench(|| assert!(verify_envelope(black_box(&inspected), &world, NOW, Some(&me)).is_ok()));
}

#[divan::bench(args = SIZES)]
fn open(bencher: Bencher<'_, '_>, size: usize) {
    let world = World::default();
    let inspected = Inspected::new(sealed(&world, size).value);
    let keys = [&world.machines[2].enc];
    bencher.counter(BytesCount::new(size)).bench(|| open_envelope(black_box(&inspected), &keys).unwrap());
}
