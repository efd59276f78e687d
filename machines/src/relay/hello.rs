//! Judging a `hello` (contract wire-core §7.3).

use messaging_proto::Code;
use messaging_proto::frame::{Hello, Nonce, verify_hello};
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_proto::time::Wall;

/// The checks that need no roster, in order. The schema and `proto` were checked when the frame was read.
///
/// # Errors
/// The code of the first that fails.
pub(super) fn check_claim(hello: &Hello, relay: &str, nonce: &Nonce, now: Wall) -> Result<(), Code> {
    if hello.ts.distance(now) > CLOCK_SKEW_MS {
        return Err(Code::Expired);
    }
    if !verify_hello(hello, relay, nonce) {
        return Err(Code::BadSignature);
    }
    Ok(())
}
