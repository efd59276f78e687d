//! Reading `identity.json` (`messaging/1 §3`).

use super::{Identity, IdentityError, Pending, Retained};
use crate::b64u;
use crate::json::{Fields, FromValue, Invalid, Object, Value, canonicalize};
use crate::key::{EncKey, EncSecret, MachineId, SigningKey};
use crate::limits;
use crate::roster::V;
use crate::time::Wall;
use zeroize::Zeroizing;

const KNOWN: [&str; 8] = ["v", "machine", "enc", "signingKey", "encKey", "retained", "pending", "store"];

impl Identity {
    /// Reads the object of an identity file whose private keys are in it (`importIdentity`).
    ///
    /// The caller still holds the value, private keys and all; [`super::IdentityFile::read`] erases its own.
    ///
    /// # Errors
    /// [`IdentityError::Invalid`] and [`IdentityError::Mismatch`], or [`IdentityError::Keychain`] for a file
    /// whose keys are elsewhere.
    pub fn import(value: &Value) -> Result<Self, IdentityError> {
        let fields = Fields::of(value)?;
        fields.literal("v", V)?;
        let machine: MachineId = fields.req("machine")?;
        let enc: EncKey = fields.req("enc")?;
        match fields.raw("store") {
            None => {}
            Some(Value::String(store)) if store == "keychain" => return Err(IdentityError::Keychain),
            Some(_) => return Err(Invalid::at("store").into()),
        }
        let signing = SigningKey::from_seed(*secret(&fields, "signingKey")?);
        // A key derived from a seed is always usable, so this is the check of `machine` too.
        if signing.machine() != machine {
            return Err(IdentityError::Mismatch("machine"));
        }
        let enc = pair(&fields, enc, "enc")?;
        let pending = fields.raw("pending").map(pending).transpose()?;
        Ok(Self { signing, enc, retained: retained(&fields)?, pending, unknown: unknown(fields.object())? })
    }
}

fn secret(fields: &Fields<'_>, name: &'static str) -> Result<Zeroizing<[u8; 32]>, Invalid> {
    let read = || {
        let bytes = Zeroizing::new(b64u::decode(fields.raw(name)?.as_str()?)?);
        Some(Zeroizing::new(bytes.as_slice().try_into().ok()?))
    };
    read().ok_or_else(|| Invalid::at(name))
}

fn pair(fields: &Fields<'_>, enc: EncKey, path: &'static str) -> Result<EncSecret, IdentityError> {
    let key = EncSecret::from_bytes(*secret(fields, "encKey").map_err(|invalid| match path {
        "enc" => invalid,
        outer => invalid.within(outer),
    })?);
    if key.public() == enc { Ok(key) } else { Err(IdentityError::Mismatch(path)) }
}

fn pending(value: &Value) -> Result<Pending, IdentityError> {
    let within = |invalid: Invalid| invalid.within("pending");
    let fields = Fields::of(value).map_err(within)?;
    let ts = Wall(fields.req("ts").map_err(within)?);
    Ok(Pending { key: pair(&fields, fields.req("enc").map_err(within)?, "pending")?, ts })
}

fn retained(fields: &Fields<'_>) -> Result<Vec<Retained>, IdentityError> {
    let Some(value) = fields.raw("retained") else { return Ok(Vec::new()) };
    let items = value.as_array().ok_or_else(|| Invalid::at("retained"))?;
    if items.len() > limits::RETAINED_KEYS {
        return Err(Invalid::at("retained").into());
    }
    items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let within = |invalid: Invalid| invalid.within_index(index).within("retained");
            let fields = Fields::of(item).map_err(within)?;
            let until = Wall(u64::from_value(fields.raw("until").unwrap_or(&Value::Null)).map_err(within)?);
            Ok(Retained { key: pair(&fields, fields.req("enc").map_err(within)?, "retained")?, until })
        })
        .collect()
}

/// The members of other versions, so that writing the file again keeps them.
fn unknown(object: &Object) -> Result<Zeroizing<String>, Invalid> {
    let mut text = Zeroizing::new(String::new());
    for (name, value) in object.iter().filter(|(name, _)| !KNOWN.contains(name)) {
        let name = canonicalize(&Value::text(name))?;
        let value = Zeroizing::new(canonicalize(value)?);
        for part in [",", name.as_str(), ":", value.as_str()] {
            text.push_str(part);
        }
    }
    Ok(text)
}
