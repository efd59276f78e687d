//! The `cards` of `roster.json`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod files;

use files::{cases, load, text};
use messaging_proto::b64u;
use messaging_proto::json::{Object, Value};
use messaging_proto::ticket::{AdmitCard, InviteTicket, TeamCard, TicketError};

const ROSTER: &str = include_str!("../../vectors/messaging/roster.json");

/// The known members of what was read, and the text it encodes to.
type Decoded = (Vec<(&'static str, Value)>, String);

fn decode(kind: &str, line: &str) -> Result<Decoded, TicketError> {
    Ok(match kind {
        "ticket" => {
            let ticket = InviteTicket::decode(line)?;
            let members = vec![
                ("relay", Value::text(ticket.relay.as_str())),
                ("team", Value::text(ticket.team.to_string())),
                ("inviteId", Value::text(ticket.invite_id.to_string())),
                ("person", Value::text(ticket.person.as_str())),
                ("expires", Value::int(ticket.expires.0)),
                ("secret", Value::text(b64u::encode(&ticket.secret.seed()[..]))),
            ];
            (members, ticket.encode()?.to_string())
        }
        "team" => {
            let card = TeamCard::decode(line)?;
            let members = vec![
                ("relay", Value::text(card.relay.as_str())),
                ("team", Value::text(card.team.to_string())),
                ("name", Value::text(card.name.as_str())),
            ];
            (members, card.encode()?)
        }
        "admit" => {
            let card = AdmitCard::decode(line)?;
            let members = vec![
                ("machine", Value::text(card.machine.to_string())),
                ("enc", Value::text(card.enc.to_string())),
                ("person", Value::text(card.person.as_str())),
                ("label", Value::text(card.label.as_str())),
            ];
            (members, card.encode()?)
        }
        other => panic!("{other}"),
    })
}

#[test]
fn cards() {
    let file = load(ROSTER);
    for case in cases(&file, "cards") {
        let name = text(case, "name");
        let line = text(case, "text");
        let decoded = decode(text(case, "kind"), line);
        let Some(value) = case.get("value") else {
            assert_eq!(decoded.unwrap_err().code().as_str(), text(case, "error"), "{name}");
            continue;
        };
        let (members, encoded) = decoded.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut known: Object =
            members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        known.push("v".to_owned(), Value::text("messaging/1"));
        for (member, expected) in &members {
            assert_eq!(value.get(member), Some(expected), "{name}: {member}");
        }
        // Canonical text without unknown members comes back as it was.
        if value.as_object().unwrap().len() == known.len() && !name.contains("not canonical") {
            assert_eq!(encoded, line, "{name}");
        }
    }
}
