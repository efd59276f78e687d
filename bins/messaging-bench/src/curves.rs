//! How costs grow: the relay's start after a crash with its store's size, founding with the number of teams, a roster
//! and the fan-out with the number of members, all of a roster with the number of its entries. Senders, bodies, connections and backlogs grow by options of the other
//! workloads.

use crate::Fault;
use crate::link::{Link, now};
use crate::relay::Relay;
use crate::team::Team;
use messaging_proto::json::canonicalize;
use messaging_proto::key::{EncSecret, SigningKey};
use messaging_proto::name::TeamName;
use messaging_proto::roster::{ApplyOptions, Author, Role, Roster, genesis};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// Sends under way at once while filling.
const UNDER_WAY: usize = 64;

/// A backlog of `count` envelopes, then `kill -9`, and how long the relay takes to serve again; then once more, when
/// nothing was in its journal.
pub(crate) fn reopen(program: &Path, folder: &Path, bytes: usize, count: usize) -> Result<Value, Fault> {
    let mut relay = Relay::start(program, folder)?;
    let team = Team::found(relay.port, 2)?;
    let mut sender = Link::live(relay.port, &team.machines[0].key, &team.id)?;
    let mut index = 0;
    while index < count {
        let batch = (index..count.min(index + UNDER_WAY))
            .map(|index| team.one(0, 1, index as u64, bytes / 4 * 3))
            .collect::<Result<Vec<_>, _>>()?;
        index += batch.len();
        for envelope in &batch {
            sender.say(envelope.frame.clone())?;
        }
        for envelope in &batch {
            sender.acked(&envelope.id)?;
        }
    }
    let (store, journals) = (relay.store_bytes()?, relay.journal_bytes()?);
    let crashed = relay.crash(program)?;
    // Everything that was acked is there.
    let mut recipient = Link::live(relay.port, &team.machines[1].key, &team.id)?;
    while !recipient.text()?.contains("\"deliver\"") {}
    std::thread::sleep(std::time::Duration::from_secs(5));
    drop(recipient);
    let again = relay.crash(program)?;
    Ok(json!({
        "store_mib": store >> 20,
        "journals_mib": journals >> 20,
        "reopen_ms": crashed,
        "reopen_settled_ms": again,
        "rss_kib": relay.resident()? / 1024,
    }))
}

/// Founds `count` teams: the time of each of the last tenth.
pub(crate) fn teams(program: &Path, folder: &Path, count: usize) -> Result<Value, Fault> {
    let relay = Relay::start(program, folder)?;
    let helper = Team::found(relay.port, 1)?;
    let name = TeamName::parse("one").ok_or("team name")?;
    let (mut begun, mut first) = (Instant::now(), 0);
    for index in 0..count {
        if index == count - count.div_ceil(10) {
            (begun, first) = (Instant::now(), index);
        }
        let mut seed = [9; 32];
        seed[..8].copy_from_slice(&(index as u64).to_be_bytes());
        let key = SigningKey::from_seed(seed);
        let mut member = helper.machines[0].member(Role::Admin);
        member.machine = key.machine();
        let entry = canonicalize(&genesis(&key, now()?, &name, &member)?)?;
        Link::open(relay.port)?.append(&entry)?;
    }
    let micros = u64::try_from(begun.elapsed().as_micros())? / (count - first) as u64;
    Ok(
        json!({ "us_per_team": micros, "rss_kib": relay.resident()? / 1024, "store_kib": relay.store_bytes()? / 1024 }),
    )
}

/// A team of `count` machines: the time of one append while nobody is there, and of one with everybody online.
pub(crate) fn members(program: &Path, folder: &Path, count: usize) -> Result<Value, Fault> {
    let relay = Relay::start(program, folder)?;
    let begun = Instant::now();
    let team = Team::found(relay.port, count)?;
    let append = u64::try_from(begun.elapsed().as_micros())? / count as u64;
    let begun = Instant::now();
    let mut links = Vec::with_capacity(count);
    let cpu = relay.cpu_micros()?;
    for machine in &team.machines {
        links.push(Link::live(relay.port, &machine.key, &team.id)?);
    }
    let hello = u64::try_from(begun.elapsed().as_micros())? / count as u64;
    let cpu = (relay.cpu_micros()? - cpu) / count as u64;
    Ok(json!({ "us_per_append": append, "us_per_hello": hello, "server_cpu_us_per_hello": cpu }))
}

/// A roster of `count` entries, nearly all of them new keys: an entry appended at the end, the whole read by somebody who
/// joins, and the relay's start and its first `hello` after a crash.
pub(crate) fn roster(program: &Path, folder: &Path, count: usize) -> Result<Value, Fault> {
    let mut relay = Relay::start(program, folder)?;
    let founder = &Team::found(relay.port, 1)?.machines[0];
    let key = SigningKey::from_seed([8; 32]);
    let mut member = founder.member(Role::Admin);
    member.machine = key.machine();
    let name = TeamName::parse("long").ok_or("team name")?;
    let entry = genesis(&key, now()?, &name, &member)?;
    Link::open(relay.port)?.append(&canonicalize(&entry)?)?;
    let mut roster = Roster::from_entries(&[entry])?;
    let team = roster.team().ok_or("no team")?;
    let mut link = Link::live(relay.port, &key, &team)?;
    let (mut micros, mut index) = (0, 1);
    while index < count {
        let mut batch = Vec::new();
        while index < count && batch.len() < UNDER_WAY {
            let mut secret = [9; 32];
            secret[..8].copy_from_slice(&(index as u64).to_be_bytes());
            let enc = EncSecret::from_bytes(secret).public();
            let entry =
                Author::new(&key, &roster, now()?).ok_or("no head")?.member_rekey(&key.machine(), &enc)?;
            roster.apply(&entry, ApplyOptions::default())?;
            batch.push(format!(r#"{{"t":"roster.append","req":"r","entry":{}}}"#, canonicalize(&entry)?));
            index += 1;
        }
        let (begun, appended) = (Instant::now(), batch.len());
        for frame in batch {
            link.say(frame)?;
        }
        for _ in 0..appended {
            while !link.text()?.contains("\"roster.ok\"") {}
        }
        micros = u64::try_from(begun.elapsed().as_micros())? / appended as u64;
    }
    let begun = Instant::now();
    let (mut read, mut pages) = (0, 0_u64);
    loop {
        let after = i64::try_from(read)? - 1;
        link.say(format!(r#"{{"t":"roster.sync","req":"s","after":{after}}}"#))?;
        let page = link.value()?;
        read += page["entries"].as_array().map_or(0, Vec::len);
        pages += 1;
        if page["more"] != true {
            break;
        }
    }
    let sync = begun.elapsed();
    let reopen = relay.crash(program)?;
    let begun = Instant::now();
    drop(Link::live(relay.port, &key, &team)?);
    let hello = begun.elapsed();
    if read != count {
        return Err(format!("{read} entries").into());
    }
    Ok(json!({
        "us_per_append": micros,
        "sync_ms": sync.as_secs_f64() * 1000.0,
        "sync_pages": pages,
        "reopen_ms": reopen,
        "first_hello_ms": hello.as_secs_f64() * 1000.0,
        "rss_kib": relay.resident()? / 1024,
    }))
}
