use super::*;
use crate::store::{MemoryBase, Writes};
use messaging_proto::name::{Label, PersonId, SessionName};

fn item(id: u64, kind: MessageKind, stage: Stage, read_in: Option<u32>) -> Item {
    Item {
        id: Ulid::new(Wall(id), [0; 10]),
        from: Peer {
            person: PersonId::parse("bob").unwrap(),
            device: MachineId::parse("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap(),
            label: Label::parse("laptop").unwrap(),
            agent: SessionName::parse("agent"),
        },
        kind,
        message: "m".to_owned(),
        context: "c".to_owned(),
        task: None,
        reply_to: None,
        preview: String::new(),
        at: Wall(id),
        stage,
        wake: true,
        consent: Class::Guarded,
        chain: None,
        continuation: false,
        bytes: 10,
        read_in,
    }
}

/// Writes an item as `add` does, without telling anybody.
fn write(txn: &mut Txn<'_>, mailbox: u64, number: u64, item: &Item) {
    let key = Key::new().num(mailbox).num(number);
    rows::put(txn, INBOX, &key, item);
    if item.stage != Stage::Read {
        rows::mark(txn, UNREAD, &key);
    }
    rows::put(txn, BY_ID, &Key::new().num(mailbox).text(item.id.as_str()), &number);
}

fn ids(page: &Page) -> Vec<u64> {
    page.items.iter().map(|item| item.at.0).collect()
}

#[test]
fn pages_are_newest_first_and_meet() {
    let base = MemoryBase::default();
    let mut writes = Writes::new();
    let mut txn = Txn::new(&base, None, &mut writes);
    for number in 1..=7 {
        let kind = if number % 3 == 0 { MessageKind::Task } else { MessageKind::Message };
        let stage = if number % 2 == 0 { Stage::Read } else { Stage::Delivered };
        write(&mut txn, 1, number, &item(number, kind, stage, None));
    }
    write(&mut txn, 2, 8, &item(8, MessageKind::Message, Stage::Delivered, None));
    let first = page(&txn, 1, false, None, 3, None).unwrap();
    assert_eq!(ids(&first), [7, 6, 5]);
    let second = page(&txn, 1, false, None, 3, first.next).unwrap();
    assert_eq!(ids(&second), [4, 3, 2]);
    let third = page(&txn, 1, false, None, 3, second.next).unwrap();
    assert_eq!((ids(&third), third.next), (vec![1], None));
    assert_eq!(page(&txn, 1, false, None, 7, None).unwrap().next, None, "a full last page is the last");
    assert_eq!(ids(&page(&txn, 1, true, None, 50, None).unwrap()), [7, 5, 3, 1]);
    // Few of many match: what does not match never ends a page early or twice.
    let tasks = page(&txn, 1, false, Some(MessageKind::Task), 1, None).unwrap();
    assert_eq!(ids(&tasks), [6]);
    let tasks = page(&txn, 1, false, Some(MessageKind::Task), 1, tasks.next).unwrap();
    assert_eq!((ids(&tasks), tasks.next), (vec![3], None));
}

/// §8.2: who takes over a kept session gets what was not read, not what the one before read.
#[test]
fn what_an_earlier_holder_read_is_hidden() {
    let base = MemoryBase::default();
    let mut writes = Writes::new();
    let mut txn = Txn::new(&base, None, &mut writes);
    sessions::put_mailbox(&mut txn, 1, &sessions::Mailbox { turn: 1, ..sessions::Mailbox::default() });
    write(&mut txn, 1, 1, &item(1, MessageKind::Message, Stage::Read, Some(0)));
    write(&mut txn, 1, 2, &item(2, MessageKind::Message, Stage::HandedToAgent, None));
    write(&mut txn, 1, 3, &item(3, MessageKind::Message, Stage::Read, Some(1)));
    assert_eq!(ids(&page(&txn, 1, false, None, 50, None).unwrap()), [3, 2]);
    assert!(find(&txn, 1, &item(1, MessageKind::Message, Stage::Read, None).id).unwrap().is_none());
    assert!(find(&txn, 1, &item(2, MessageKind::Message, Stage::Read, None).id).unwrap().is_some());
    assert!(find(&txn, 2, &item(2, MessageKind::Message, Stage::Read, None).id).unwrap().is_none());
}

#[test]
fn removing_gives_the_quota_back() {
    let base = MemoryBase::default();
    let mut writes = Writes::new();
    let mut txn = Txn::new(&base, None, &mut writes);
    let one = item(1, MessageKind::Message, Stage::Delivered, None);
    write(&mut txn, 1, 1, &one);
    rows::put(&mut txn, QUOTA, &Key::new().bytes(&one.from.device.0), &Held { items: 2, bytes: 25 });
    remove(&mut txn, 1, 1).unwrap();
    assert_eq!(held_from(&txn, &one.from.device).unwrap(), Held { items: 1, bytes: 15 });
    assert!(!has(&txn, 1, &one.id).unwrap());
    remove(&mut txn, 1, 1).unwrap();
    assert_eq!(held_from(&txn, &one.from.device).unwrap(), Held { items: 1, bytes: 15 }, "once");
}
