//! Lines and channel changes (`messaging/1 §6.8`). This daemon holds no chats: it refuses what belongs to one.

use super::Mail;
use super::receipts::Fate;
use crate::daemon::ctx::Ctx;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::envelope::Envelope;
use messaging_proto::json::Value;
use messaging_proto::payload::MessagePayload;

/// A message to this machine's person.
#[allow(clippy::unnecessary_wraps, clippy::needless_pass_by_ref_mut)]
pub(crate) fn arrived(
    _mail: &mut Mail,
    _cx: &mut Ctx<'_, '_>,
    _envelope: &Envelope,
    _raw: &Value,
    _payload: &MessagePayload,
) -> Result<Option<Fate>, StoreDown> {
    Ok(Some(Fate::Rejected(Code::Refused)))
}
