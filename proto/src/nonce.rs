//! The relay's challenge nonce (`messaging/1 §7`, "Connecting").

use crate::text_form::bytes_type;

bytes_type! {
    /// 32 bytes that a relay draws for one connection. A `hello` or a join proof made for it is good there only.
    Nonce, 32, "a nonce"
}
