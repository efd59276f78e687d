//! Target `ticket`: any text as a ticket or a card, and valid ones with one thing changed.

use super::Draw;
use super::edit::edited;
use super::envelope_open::NOW;
use crate::b64u;
use crate::json::{Value, canonicalize};
use crate::limits;
use crate::ticket::{AdmitCard, InviteTicket, TeamCard, TicketError};

/// What no error may repeat.
const MARKER: &str = "Tr0ub4dor&3";

const PREFIXES: [&str; 3] = ["messaging1.", "messaging-team.", "messaging-admit."];

/// What is read is written again as a text that reads back the same; a text is of one kind at most; no error
/// repeats its input.
pub fn ticket(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && text.starts_with("messaging")
    {
        judge(text);
        return;
    }
    let mut draw = Draw::new(data);
    let kind = draw.below(3);
    let id = b64u::encode(&[7; 32]);
    let relay = ["wss://relay.example/v1/connect", "ws://127.0.0.1:9/", "ws://relay.example/"][draw.below(3)];
    let machine = crate::key::SigningKey::from_seed(draw.array()).machine().to_string();
    let mut value = match kind {
        0 => Value::from([
            ("v", Value::text("messaging/1")),
            ("relay", Value::text(relay)),
            ("team", Value::text(id.as_str())),
            ("inviteId", Value::text(crate::ulid::Ulid::new(NOW, draw.array()).as_str())),
            ("person", Value::text("bob")),
            ("expires", Value::int(NOW.0)),
            ("secret", Value::text(id.as_str())),
        ]),
        1 => Value::from([
            ("v", Value::text("messaging/1")),
            ("relay", Value::text(relay)),
            ("team", Value::text(id.as_str())),
            ("name", Value::text(draw.text())),
        ]),
        _ => Value::from([
            ("v", Value::text("messaging/1")),
            ("machine", Value::text(machine)),
            ("enc", Value::text(id.as_str())),
            ("person", Value::text("bob")),
            ("label", Value::text("laptop")),
        ]),
    };
    if draw.below(2) == 0 {
        value = edited(&value, &mut draw);
    }
    if let (Value::Object(object), 0) = (&mut value, draw.below(4)) {
        object.set(MARKER, draw.value(3));
    }
    let Ok(object) = canonicalize(&value) else { return };
    let mut text = format!("{}{}", PREFIXES[kind], b64u::encode(object.as_bytes()));
    if draw.below(4) == 0 {
        text.insert_str(draw.below(text.len() + 1), &draw.text());
    }
    judge(&text);
}

fn judge(text: &str) {
    let ticket = InviteTicket::decode(text).map(|read| read.encode().map(|text| text.to_string()));
    let team = TeamCard::decode(text).map(|read| read.encode());
    let admit = AdmitCard::decode(text).map(|read| read.encode());
    let ok = [ticket.is_ok(), team.is_ok(), admit.is_ok()];
    assert!(ok.iter().filter(|ok| **ok).count() <= 1, "one kind at most");
    for (at, read) in [ticket, team, admit].into_iter().enumerate() {
        match read {
            Err(error) => silent(&error),
            // Unknown members are not written again, so it can only shrink.
            Ok(written) => {
                let written = written.unwrap_or_default();
                assert!(!written.is_empty() && written.len() <= text.len().max(limits::TICKET_BYTES));
                let again = match at {
                    0 => InviteTicket::decode(&written)
                        .and_then(|read| read.encode().map(|text| text.to_string())),
                    1 => TeamCard::decode(&written).and_then(|read| read.encode()),
                    _ => AdmitCard::decode(&written).and_then(|read| read.encode()),
                };
                assert_eq!(again, Ok(written), "a fixed point");
            }
        }
    }
}

fn silent(error: &TicketError) {
    assert_eq!(error.code(), crate::Code::InvalidRequest);
    let told = format!("{error} {error:?}");
    assert!(!told.contains(MARKER), "an error repeats its input");
}
