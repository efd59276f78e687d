//! Daemons over `wss://` to a relay that speaks TLS itself, whose certificate is replaced while they are connected.

#![allow(clippy::unwrap_used)]

mod world;

#[path = "../../../adapters/smol/testdata/tls/client.rs"]
mod client_side;

use client_side::{certificate, file};
use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::CertificateDer;
use std::net::Ipv4Addr;
use world::{Agent, World, wait};

/// The certificate that a new connection is shown.
fn shown(port: u16) -> CertificateDer<'static> {
    client_side::shown(&client_side::dial((Ipv4Addr::LOCALHOST, port).into(), "127.0.0.1").unwrap())
}

#[test]
fn daemons_keep_their_links_while_the_certificate_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let put = |name: &str| {
        std::fs::copy(file(&format!("{name}.crt")), &cert).unwrap();
        std::fs::copy(file(&format!("{name}.key")), &key).unwrap();
    };
    put("one");
    let mut world =
        World::with_relay_flags(&["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    world.environment.push(("SSL_CERT_FILE".into(), file("ca.crt").to_str().unwrap().into()));
    assert!(world.relay_url().starts_with("wss://"));
    world.pair();
    let mut alice = Agent::new(&world, "alice", "planner");
    let mut bob = Agent::new(&world, "bob", "builder");
    bob.inbox();
    let mut exchange = |text: &str| {
        let id = alice.send("bob/builder@desk", text, text);
        alice.wait_stage(&id, "delivered");
        assert_eq!(bob.read(&id)["message"]["parts"][0]["text"], text);
    };
    exchange("over TLS");
    assert_eq!(shown(world.port), certificate("one.crt"));

    let log = world.path("relay.log");
    let hang_up = |world: &mut World| {
        let pid = i32::try_from(world.relay().pid()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::HUP).unwrap();
    };
    let logged = |event: &str| std::fs::read_to_string(&log).unwrap().contains(event);
    // A key of another certificate changes nothing, and is told.
    std::fs::copy(file("two.key"), &key).unwrap();
    hang_up(&mut world);
    wait("the complaint", || logged("tls.reload_failed").then_some(()));
    assert_eq!(shown(world.port), certificate("one.crt"));
    put("two");
    hang_up(&mut world);
    wait("the new certificate", || (shown(world.port) == certificate("two.crt")).then_some(()));
    assert!(logged("tls.reloaded"));
    // Nobody had to connect again.
    exchange("on the old link");
    // And whoever does is shown the new one, which its authority vouches for.
    world.kill_relay();
    world.start_relay();
    exchange("on a new link");
    assert_eq!(world.relay().terminate(), Some(0));
}
