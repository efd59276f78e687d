//! Every method of the local API, over the real sockets of real daemons: its happy path and each of its errors
//! (contract ipc §3 to §5). What the table of `rows.rs` lists is what must have been seen when the story ends.

#![allow(clippy::unwrap_used)]

mod admin;
mod chats;
mod mail;
mod persons;
mod probe;
mod rows;
mod shapes;
mod tasks;
mod team;
#[path = "../world/mod.rs"]
mod world;

use probe::Probe;

#[test]
fn every_method_with_its_happy_path_and_its_errors() {
    let mut world = world::World::new();
    world.pair();
    world.start_daemon("carol");
    let mut probe = Probe::new(world);
    rows::tiers_params_and_identity(&mut probe);
    mail::sessions(&mut probe);
    mail::messages(&mut probe);
    tasks::tasks(&mut probe);
    chats::lines(&mut probe);
    chats::channels(&mut probe);
    persons::consent(&mut probe);
    persons::people_and_notices(&mut probe);
    admin::this_device(&mut probe);
    team::ways_in(&mut probe);
    team::members(&mut probe);
    admin::keys(&mut probe);
    team::without_a_relay(&mut probe);
    admin::stop(&mut probe);
    rows::all_seen(&probe);
}
