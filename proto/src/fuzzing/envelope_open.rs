//! Target `envelope_open`: any value as an envelope, and valid envelopes with one thing changed.

use super::edit::edited;
use super::samples::{Sample, sample};
use super::{Draw, World};
use crate::envelope::{
    EnvelopeError, Inspected, Kind, Sealed, open_envelope, seal_header, sign_presence_header, signed_head,
    verify_envelope,
};
use crate::json::{Value, canonicalize, parse_wire};
use crate::key::EncSecret;
use crate::payload::{Payload, Typed};
use crate::realm::RealmView;
use crate::time::Wall;

/// What no error may repeat.
const MARKER: &str = "Tr0ub4dor&3";

/// When everything here happens.
pub(super) const NOW: Wall = Wall(1_795_000_000_000);

/// Checking and opening never panic; what they accept is what was sealed and signed; and no error repeats its
/// input.
pub fn envelope_open(data: &[u8]) {
    let world = World::default();
    if data.first() == Some(&b'{') {
        if let Ok(value) = parse_wire(data, data.len()) {
            judge(&world, &Inspected::new(value));
        }
        return;
    }
    let mut draw = Draw::new(data);
    let Some(sample) = sample(&world, &mut draw) else { return };
    let Some((sealed, payload)) = seal(&world, &sample, &mut draw) else { return };
    let whole = Inspected::new(sealed.value.clone());
    assert_eq!(whole, Inspected::with_text(sealed.value.clone(), sealed.text.as_str()));
    assert!(judge(&world, &whole) == (true, true), "what was just made");
    let keys: Vec<&EncSecret> = world.machines.iter().rev().map(|one| &one.enc).collect();
    let opened = open_envelope(&whole, &keys).map(|opened| canonicalize(opened.raw()));
    assert!(opened == Ok(canonicalize(&payload)), "what was sealed comes out");

    match draw.below(3) {
        0 => changed_text(&world, &sealed.text, &mut draw),
        1 => changed_value(&world, &sealed, &mut draw),
        _ => changed_payload(&sample, &mut draw),
    }
}

/// Seals a sample, perhaps with members nobody knows; only those can make it too large or not I-JSON.
fn seal(world: &World, sample: &Sample, draw: &mut Draw<'_>) -> Option<(Sealed, Value)> {
    let mut header = sample.parts.to_value();
    let mut payload = sample.payload.clone();
    let (in_header, in_payload) = (draw.below(3) == 0, draw.below(3) == 0);
    if in_header {
        add_unknown(&mut header, draw);
    }
    if in_payload {
        add_unknown(&mut payload, draw);
    }
    let from = world.machines.first()?;
    let sealed = if sample.parts.kind == Kind::Presence {
        sign_presence_header(&from.signing, header, payload.clone())
    } else {
        let to = sample.parts.to.end().and_then(|end| world.device(&end.device))?;
        let ephemeral = EncSecret::from_bytes(draw.array());
        seal_header(&from.signing, header, &payload, &to.enc, &ephemeral, draw.array())
    };
    match sealed {
        Ok(sealed) => Some((sealed, payload)),
        Err(error) => {
            assert!(
                matches!(error, EnvelopeError::Shape(_) | EnvelopeError::HeaderSize),
                "unexpected refusal"
            );
            silent(&error);
            None
        }
    }
}

fn add_unknown(value: &mut Value, draw: &mut Draw<'_>) {
    if let Value::Object(object) = value {
        object.set(format!("{MARKER}{}", draw.text()), draw.value(3));
    }
}

/// Whether it is accepted and opens, by the machine it names.
fn judge(world: &World, envelope: &Inspected) -> (bool, bool) {
    let me = envelope
        .envelope()
        .ok()
        .and_then(|envelope| envelope.header.to.end())
        .and_then(|to| world.machines.iter().find(|one| one.signing.machine() == to.device));
    let machine = me.map(|me| me.signing.machine());
    let verified = verify_envelope(envelope, world, NOW, machine.as_ref());
    let keys: Vec<&EncSecret> = world.machines.iter().map(|one| &one.enc).collect();
    let opened = open_envelope(envelope, &keys);
    verified.as_ref().err().into_iter().chain(opened.as_ref().err()).for_each(silent);
    assert!(verified.is_err() || signed_head(envelope, &world.realm()).is_some());
    assert!(envelope.header_bytes() <= envelope.jcs().map_or(0, |text| text.len()));
    if let Ok(payload) = &opened {
        assert!(canonicalize(payload.raw()).is_ok(), "a payload is I-JSON");
    }
    (verified.is_ok(), opened.is_ok())
}

/// One byte of the text changed: not accepted, unless it is another spelling of the same value.
fn changed_text(world: &World, text: &str, draw: &mut Draw<'_>) {
    let mut bytes = text.as_bytes().to_vec();
    let at = usize::from(u16::from_le_bytes(draw.array())) % bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= draw.byte().max(1);
    }
    if let Ok(value) = parse_wire(&bytes, bytes.len()) {
        differs(world, text, value);
    }
}

/// One place of the value changed: not accepted, unless that is how it was.
fn changed_value(world: &World, sealed: &Sealed, draw: &mut Draw<'_>) {
    differs(world, &sealed.text, edited(&sealed.value, draw));
}

fn differs(world: &World, text: &str, value: Value) {
    let inspected = Inspected::new(value);
    let same = inspected.jcs().is_some_and(|other| **other == *text);
    let (verified, opened) = judge(world, &inspected);
    assert_eq!(verified, same, "every change of an envelope is seen");
    // The signature is no part of what the seal covers; presence has no seal.
    let covered = |raw: &Value| {
        let mut object = raw.as_object().cloned().unwrap_or_default();
        object.remove("sig");
        canonicalize(&object.into())
    };
    let sealed = inspected.envelope().is_ok_and(|envelope| envelope.header.kind != Kind::Presence);
    if sealed && opened {
        let original = parse_wire(text.as_bytes(), text.len());
        assert_eq!(original.and_then(|raw| covered(&raw)), covered(inspected.raw()), "the seal covers it");
    }
}

/// One place of a payload changed: read or refused, with every member that the schema names intact.
fn changed_payload(sample: &Sample, draw: &mut Draw<'_>) {
    let changed = edited(&sample.payload, draw);
    match Payload::read(sample.parts.kind, changed.clone()) {
        Ok(payload) => {
            // As text: a value made by hand may hold NaN, which equals nothing.
            assert_eq!(format!("{:?}", payload.raw()), format!("{changed:?}"));
            bounded(payload.typed());
        }
        Err(invalid) => silent(&EnvelopeError::Shape(invalid)),
    }
}

/// The bounds that must hold of whatever was read.
fn bounded(typed: &Typed) {
    match typed {
        Typed::Message(payload) => {
            assert!((1..=100).contains(&payload.message.parts.len()));
            assert_eq!(payload.delegation.is_some(), payload.kind == crate::payload::MessageKind::Task);
        }
        Typed::Receipt(receipt) => {
            assert_eq!(receipt.code.is_some(), receipt.stage == crate::payload::Stage::Rejected);
        }
        Typed::TaskArtifact(event) => assert!((1..=100).contains(&event.artifact.parts.len())),
        Typed::Presence(presence) => assert!(presence.sessions.len() <= 200 && presence.features.len() <= 32),
        Typed::TaskStatus(_) | Typed::TaskCancel(_) => {}
    }
}

fn silent(error: &EnvelopeError) {
    let told = format!("{error} {error:?} {}", error.code());
    assert!(!told.contains(MARKER), "an error repeats its input");
}
