//! `config.json`: every member, its default, its bounds, and what is unknown.

use crate::common::json;
use messaging_machines::daemon::config::{CONFIG_BYTES, Settings};

fn read(text: &str) -> Result<Settings, String> {
    let parsed = Settings::parse(text.as_bytes()).map_err(|invalid| invalid.path().to_owned())?;
    Ok(parsed.settings)
}

#[test]
fn an_empty_object_is_the_defaults() {
    let settings = read("{}").unwrap();
    assert_eq!(settings, Settings::default());
    assert!(settings.relay().is_none() && settings.person().is_none() && settings.label().is_none());
    assert_eq!((settings.quota().items, settings.quota().bytes), (5_000, 67_108_864));
    let share = settings.share();
    assert!(!share.repo && !share.branch && !share.doing);
    assert!(settings.wake_bridge() && settings.refuse_secrets());
    let days = settings.retention();
    let days = [days.read_days, days.orphaned_days, days.sent_days, days.task_days, days.transcript_days];
    assert_eq!(days, [30, 7, 30, 90, 30]);
    assert_eq!((settings.rotate_enc_days(), settings.agent_group()), (7, None));
}

#[test]
fn every_member_is_read() {
    let text = r#"{"relay":"wss://relay.example/v1/connect","person":"alice","label":"laptop",
        "inbound":{"quota":{"items":1,"bytes":65536}},"presence":{"share":["repo","doing"]},
        "wake":{"bridge":false},"outbound":{"refuseSecrets":false},
        "retention":{"readDays":1,"orphanedDays":2,"sentDays":3,"taskDays":3650,"transcriptDays":5},
        "identity":{"store":"file","prompt":false,"keychain":"/k","rotateEncDays":90},
        "ipc":{"agentGroup":20}}"#;
    let settings = read(text).unwrap();
    assert_eq!(settings.relay().unwrap().as_str(), "wss://relay.example/v1/connect");
    assert_eq!(settings.person().unwrap().as_str(), "alice");
    assert_eq!((settings.quota().items, settings.quota().bytes), (1, 65_536));
    assert!(settings.share().repo && settings.share().doing && !settings.share().branch);
    assert!(!settings.wake_bridge() && !settings.refuse_secrets());
    assert_eq!((settings.retention().read_days, settings.retention().task_days), (1, 3_650));
    assert_eq!((settings.rotate_enc_days(), settings.agent_group()), (90, Some(20)));
    assert_eq!(read(settings.to_text().trim()).unwrap().retention(), settings.retention());
}

#[test]
fn a_wrong_type_or_bound_names_its_member() {
    for (text, path) in [
        ("[]", ""),
        ("", ""),
        (r#"{"relay":1}"#, "relay"),
        (r#"{"relay":null}"#, "relay"),
        (r#"{"relay":"ws://relay.example/"}"#, "relay"),
        (r#"{"person":"Alice"}"#, "person"),
        (r#"{"label":""}"#, "label"),
        (r#"{"inbound":1}"#, "inbound"),
        (r#"{"inbound":{"quota":1}}"#, "inbound.quota"),
        (r#"{"inbound":{"quota":{"items":0}}}"#, "inbound.quota.items"),
        (r#"{"inbound":{"quota":{"items":1000001}}}"#, "inbound.quota.items"),
        (r#"{"inbound":{"quota":{"bytes":65535}}}"#, "inbound.quota.bytes"),
        (r#"{"inbound":{"quota":{"bytes":1099511627777}}}"#, "inbound.quota.bytes"),
        (r#"{"presence":{"share":["name"]}}"#, "presence.share"),
        (r#"{"presence":{"share":"repo"}}"#, "presence.share"),
        (r#"{"wake":{"bridge":"no"}}"#, "wake.bridge"),
        (r#"{"outbound":{"refuseSecrets":0}}"#, "outbound.refuseSecrets"),
        (r#"{"retention":{"readDays":0}}"#, "retention.readDays"),
        (r#"{"retention":{"transcriptDays":3651}}"#, "retention.transcriptDays"),
        (r#"{"identity":{"store":"keychain"}}"#, "identity.store"),
        (r#"{"identity":{"prompt":1}}"#, "identity.prompt"),
        (r#"{"identity":{"rotateEncDays":1}}"#, "identity.rotateEncDays"),
        (r#"{"identity":{"rotateEncDays":91}}"#, "identity.rotateEncDays"),
        (r#"{"ipc":{"agentGroup":-1}}"#, "ipc.agentGroup"),
        (r#"{"realm":{"kind":"directory"}}"#, "realm"),
        (r#"{"deployment":"jelly"}"#, "deployment"),
        (r#"{"unknown":1e400}"#, ""),
    ] {
        assert_eq!(read(text).unwrap_err(), path, "{text}");
    }
    assert!(read(&format!(r#"{{"x":"{}"}}"#, "a".repeat(CONFIG_BYTES))).is_err());
    for text in [r#"{"identity":{"rotateEncDays":0}}"#, r#"{"identity":{"rotateEncDays":2}}"#] {
        assert!(read(text).is_ok(), "{text}");
    }
}

#[test]
fn unknown_members_are_named_and_kept() {
    let text = r#"{"note":1,"wake":{"bridge":true,"later":2},"inbound":{"quota":{"items":5,"x":1},"y":1}}"#;
    let parsed = Settings::parse(text.as_bytes()).unwrap();
    let mut unknown = parsed.unknown;
    unknown.sort();
    assert_eq!(unknown, ["inbound.y", "note", "quota.x", "wake.later"]);
    let kept = json(parsed.settings.to_text().trim());
    assert_eq!(kept.get("note"), json(text).get("note"));
    assert_eq!(kept.get("wake"), json(text).get("wake"));
}
