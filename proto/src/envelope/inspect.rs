//! The heavy work on a received envelope, done once and away from any machine.

use super::cut::{Cuts, without};
use super::header::{Body, Envelope};
use super::loose::Loose;
use crate::domain::Domain;
use crate::json::{FromValue, Invalid, Value, canonicalize};
use crate::key::{Sig, VerifyKey, verify};
use std::ops::Range;
use std::sync::Arc;

/// One received envelope with everything about it that needs neither a realm nor a clock.
///
/// Never refuses: an envelope that breaks its schema is still here, to be answered and counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    raw: Value,
    envelope: Result<Envelope, Invalid>,
    text: Option<Arc<str>>,
    cuts: Cuts,
    signature_ok: bool,
}

impl Inspected {
    /// Inspects a value: its schema, its canonical text and its signature under `from.device`.
    #[must_use]
    pub fn new(raw: Value) -> Self {
        let text = canonicalize(&raw).ok().map(Arc::from);
        Self::inspect(raw, text, None)
    }

    /// As [`Self::new`], for a caller that holds the canonical text of `raw` already: the text a peer sent, when
    /// [`crate::json::parse_wire_noting`] said so.
    #[must_use]
    pub fn with_text(raw: Value, text: impl Into<Arc<str>>) -> Self {
        Self::inspect(raw, Some(text.into()), None)
    }

    /// As the other two, for a caller that holds the key of the machine that probably signed it. Finds the same, sooner.
    #[must_use]
    pub fn knowing(raw: Value, text: Option<&str>, sender: Option<&VerifyKey>) -> Self {
        let text = text.map(Arc::from).or_else(|| canonicalize(&raw).ok().map(Arc::from));
        Self::inspect(raw, text, sender)
    }

    fn inspect(raw: Value, text: Option<Arc<str>>, sender: Option<&VerifyKey>) -> Self {
        // §5 step 1: an envelope that is not I-JSON has no canonical text, and fails its schema.
        let envelope = if text.is_some() { Envelope::from_value(&raw) } else { Err(Invalid::new()) };
        let cuts =
            text.as_deref().map_or_else(Cuts::default, |text| Cuts::find(text, plain_body(&raw, &envelope)));
        let signature_ok =
            text.as_deref().is_some_and(|text| signature_holds(&raw, &envelope, text, &cuts, sender));
        Self { raw, envelope, text, cuts, signature_ok }
    }

    /// The value as it was received, unknown members included.
    #[must_use]
    pub const fn raw(&self) -> &Value {
        &self.raw
    }

    /// The value itself.
    #[must_use]
    pub fn into_raw(self) -> Value {
        self.raw
    }

    /// The known members, when the schema and the agreement hold and the whole value is I-JSON.
    ///
    /// # Errors
    /// [`Invalid`] with the first member that fails.
    pub const fn envelope(&self) -> Result<&Envelope, &Invalid> {
        self.envelope.as_ref()
    }

    /// Whether `sig` verifies under `from.device`. Also known of an envelope whose schema fails elsewhere.
    #[must_use]
    pub const fn signature_ok(&self) -> bool {
        self.signature_ok
    }

    /// The canonical text of the whole envelope; nothing when it is not I-JSON.
    #[must_use]
    pub const fn jcs(&self) -> Option<&Arc<str>> {
        self.text.as_ref()
    }

    /// Bytes of the canonical text without `body`: what `headerBytes` bounds. 0 when it is not I-JSON.
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        let body = self.cuts.body.as_ref().map_or(0, |member| member.cut.len());
        self.text.as_ref().map_or(0, |text| text.len() - body)
    }

    /// Bytes of `body`: decoded when sealed, canonical text when presence. 0 when the schema fails.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        match &self.envelope {
            Ok(Envelope { body: Body::Sealed(bytes), .. }) => bytes.len(),
            Ok(_) => self.cuts.body.as_ref().map_or(0, |member| member.value.len()),
            Err(_) => 0,
        }
    }

    /// What can be read of it even when the schema fails.
    #[must_use]
    pub fn loose(&self) -> Loose {
        Loose::of(&self.raw)
    }

    /// The AAD: the canonical text of the header, without `body` and `sig`.
    pub(super) fn header_text(&self) -> String {
        let text = self.text.as_deref().unwrap_or_default();
        let cuts: Vec<&Range<usize>> =
            [&self.cuts.body, &self.cuts.sig].into_iter().flatten().map(|member| &member.cut).collect();
        close(without(text, &cuts))
    }
}

/// The length of the body's string when the schema says that it holds only base64url.
fn plain_body(raw: &Value, envelope: &Result<Envelope, Invalid>) -> Option<usize> {
    match envelope {
        Ok(Envelope { body: Body::Sealed(_), .. }) => raw.get("body").and_then(Value::as_str).map(str::len),
        _ => None,
    }
}

/// §5 step 5, over the raw value: every member but `sig`, known or not.
fn signature_holds(
    raw: &Value,
    envelope: &Result<Envelope, Invalid>,
    text: &str,
    cuts: &Cuts,
    sender: Option<&VerifyKey>,
) -> bool {
    let signed_by = match envelope {
        Ok(envelope) => Some((envelope.header.from.device, envelope.sig)),
        Err(_) => Loose::of(raw).from_device.zip(raw.get("sig").and_then(|sig| Sig::from_value(sig).ok())),
    };
    let (Some((device, sig)), Some(member)) = (signed_by, &cuts.sig) else { return false };
    let mut signed = String::with_capacity(text.len() + 32);
    signed.push_str(Domain::Envelope.prefix());
    signed.push_str(text.get(..member.cut.start).unwrap_or_default());
    signed.push_str(text.get(member.cut.end..).unwrap_or_default());
    match sender.filter(|key| key.machine() == device) {
        Some(key) => key.verify(signed.as_bytes(), &sig),
        None => verify(&device, &sig, signed.as_bytes()),
    }
}

/// Takes away the comma that stays before the closing brace when the last two members were cut.
fn close(mut text: String) -> String {
    if text.ends_with(",}") {
        text.truncate(text.len() - 2);
        text.push('}');
    }
    text
}
