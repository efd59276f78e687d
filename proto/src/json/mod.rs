//! Wire JSON, I-JSON and canonical text (`messaging/1 §2`).
//!
//! [`parse_wire`] is the only way from bytes to a [`Value`], and [`canonicalize`] the only way back to bytes
//! that are signed, hashed or used as AAD. A [`Value`] keeps the order and the unknown members of what was
//! received, so a signature made by a newer peer still verifies.

mod canonical;
mod fields;
mod order;
mod parse;
mod scan;
mod swar;
mod value;
mod value_serde;

pub use canonical::{append_canonical, canonicalize, is_ijson};
pub use fields::{Fields, FromValue, Invalid};
pub use parse::{parse_wire, parse_wire_noting};
pub use value::{Object, Value};
