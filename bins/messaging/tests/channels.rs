//! A person who was removed from a channel and is invited again: their machine refuses for a week (`messaging/1 §6.8`), and
//! nothing here claims otherwise.

#![allow(clippy::unwrap_used)]

mod world;

use world::{World, wait};

#[test]
fn an_invitation_back_does_not_claim_to_be_taken() {
    let mut world = World::new();
    world.pair();
    let said = |arguments: &[&str]| {
        let output = world.cli("alice", arguments);
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let has = |wanted: bool| {
        wait("bob's list", || {
            let list = world.cli_json("bob", &["chats"]);
            let all = list["conversations"].as_array().unwrap();
            (all.iter().any(|one| one["conversation"] == "channel:eng") == wanted).then_some(())
        });
    };
    said(&["channel", "create", "eng", "bob"]);
    has(true);
    let removed = said(&["channel", "remove", "eng", "bob"]);
    assert!(removed.contains("take no invitation back to this channel for a week"), "{removed}");
    has(false);
    let invited = said(&["channel", "invite", "eng", "bob"]);
    assert!(invited.contains("shows as a notice in channel:eng"), "{invited}");
    wait("the notice", || said(&["read", "--with", "channel:eng"]).contains("forbidden").then_some(()));
}
