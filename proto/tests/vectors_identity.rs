//! The `identities` of `keys.json` (its other arrays are `vectors_keys.rs`'s).
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod files;

use files::{cases, load, text};
use messaging_proto::identity::{Identity, IdentityFile};
use messaging_proto::json::canonicalize;
use zeroize::Zeroizing;

const KEYS: &str = include_str!("../../vectors/messaging/keys.json");

#[test]
fn identities() {
    let file = load(KEYS);
    for case in cases(&file, "identities") {
        let name = text(case, "name");
        let value = case.get("file").unwrap();
        let raw = canonicalize(value).unwrap();
        let read = IdentityFile::new(Zeroizing::new(raw.clone())).read();
        match (Identity::import(value), case.get("error")) {
            (Ok(identity), None) => {
                assert_eq!(identity.machine().to_string(), text(case, "machine"), "{name}");
                assert_eq!(identity.enc().to_string(), text(case, "enc"), "{name}");
                assert_eq!(read.unwrap().export(), identity.export(), "{name}");
                // The export holds the same object, unknown members included.
                let back = files::load(identity.export().text());
                assert_eq!(canonicalize(&back).unwrap(), raw, "{name}");
            }
            (Err(error), Some(_)) => {
                assert_eq!(error.code().as_str(), text(case, "error"), "{name}");
                assert_eq!(read.unwrap_err(), error, "{name}");
            }
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
    }
}
