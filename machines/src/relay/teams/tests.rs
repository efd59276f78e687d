use super::*;
use crate::store::{MemoryBase, Writes};
use messaging_proto::key::{EncSecret, SigningKey};
use messaging_proto::name::{Label, PersonId, TeamName};
use messaging_proto::realm::Role;
use messaging_proto::roster::{Member, genesis};
use messaging_proto::time::Wall;

fn found(teams: &mut Teams, txn: &mut Txn<'_>, number: u8) -> RealmId {
    let key = SigningKey::from_seed([number; 32]);
    let founder = Member {
        machine: key.machine(),
        enc: EncSecret::from_bytes([number; 32]).public(),
        person: PersonId::parse("alice").unwrap(),
        role: Role::Admin,
        label: Label::parse("desk").unwrap(),
    };
    let entry = genesis(&key, Wall(1), &TeamName::parse("team").unwrap(), &founder).unwrap();
    teams.found(txn, Wall(1), &entry).unwrap().unwrap().hash
}

#[test]
fn a_team_with_somebody_online_stays_parsed() {
    let (base, mut open) = (MemoryBase::default(), Writes::new());
    let mut txn = Txn::new(&base, None, &mut open);
    let mut teams = Teams::start(&txn).unwrap();
    teams.most = 2;
    let first = found(&mut teams, &mut txn, 1);
    teams.link(&first);
    teams.link(&first);
    let others: Vec<RealmId> = (2..=4).map(|number| found(&mut teams, &mut txn, number)).collect();
    let parsed: Vec<bool> = others.iter().map(|id| teams.cache.contains_key(id)).collect();
    assert!(teams.cache.contains_key(&first));
    assert_eq!(parsed, [false, false, true], "of the others the newest is kept");
    teams.unlink(&first);
    found(&mut teams, &mut txn, 5);
    assert!(teams.cache.contains_key(&first), "one of two is still online");
    teams.unlink(&first);
    found(&mut teams, &mut txn, 6);
    assert!(!teams.cache.contains_key(&first));
    assert_eq!(teams.cache.len(), 2);
    assert!(teams.get(&txn, &first).unwrap().is_some(), "it is replayed when it is asked for");
}
