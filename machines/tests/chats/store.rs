//! The shape of what chats keep.

use crate::common::World;
use crate::common::shapes::shapes;
use crate::person::{ok, say};
use messaging_machines::daemon::schema;

#[test]
fn the_stored_shapes_are_the_recorded_ones() {
    // §8.8 "The test": a change of the store is seen in review, as a change of the recorded file.
    let mut world = World::team(37, &["alice/laptop", "bob/desk"]);
    for node in &mut world.nodes {
        node.keep = true;
    }
    ok(&mut world, 0, "channel.create", r#"{"name":"eng","persons":["bob"]}"#);
    let line = say(&mut world, 0, "channel:eng", "hello");
    let reply = format!(
        r#"{{"conversation":"channel:eng","text":"x","thread":"{}"}}"#,
        line.get("id").and_then(|id| id.as_str()).expect("an id")
    );
    ok(&mut world, 0, "person.send", &reply);
    world.settle();
    ok(&mut world, 1, "grant.set", r#"{"subject":{"person":"alice"},"chat":"blocked"}"#);
    say(&mut world, 0, "dm:bob", "refused");
    world.settle();
    ok(&mut world, 1, "channel.leave", r#"{"name":"eng"}"#);
    world.settle();
    let bases: Vec<_> = world.nodes.iter().flat_map(|node| &node.kept).collect();
    let tables: Vec<&str> = schema::TABLES
        .iter()
        .map(|table| table.0)
        .filter(|table| table.starts_with("chat_") || table.starts_with("channel"))
        .collect();
    assert_eq!(tables.len(), 16);
    let found = shapes(&bases, &tables);
    let recorded = include_str!("store-1.txt");
    assert_eq!(found.trim(), recorded.trim(), "the store changed; found:\n{found}");
}
