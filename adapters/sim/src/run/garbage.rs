//! What a member says whose program is not ours.

use super::Play;
use crate::plan::Garbage;
use messaging_machines::daemon::io::{Event, Tier};

impl Play {
    /// A client says a line on a connection of its own, which it leaves again.
    pub(super) fn line(&mut self, number: usize, agent: bool, text: &str) {
        self.world.settle();
        let conn = self.world.connect(number, if agent { Tier::Agent } else { Tier::Admin });
        self.world.line(number, conn, text.as_bytes());
        self.world.settle();
        self.world.event(number, Event::IpcClosed { conn });
    }

    pub(super) fn garbage(&mut self, number: usize, what: Garbage) {
        let ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let hash = "A".repeat(43);
        let frames = match what {
            Garbage::Noise => vec!["{\"t\":\"send\",".to_owned()],
            Garbage::Unknown => vec![r#"{"t":"tomorrow","n":1}"#.to_owned()],
            Garbage::Shape => vec![format!(r#"{{"t":"send","env":{{"id":"{ulid}"}}}}"#)],
            Garbage::Entry => vec![format!(
                r#"{{"t":"roster.append","req":"write:77","entry":{{"v":"messaging/1","op":"member.remove","seq":99,"prev":"{hash}","team":"{hash}","machine":"{hash}"}}}}"#
            )],
            Garbage::Ack => vec![format!(r#"{{"t":"recv.ack","ids":["{ulid}"]}}"#)],
            Garbage::Presence => {
                let sessions = vec![r#"{"name":"agent","agent":"codex"}"#; 2_000].join(",");
                vec![format!(r#"{{"t":"presence","env":{{"v":"messaging/1","sessions":[{sessions}]}}}}"#)]
            }
            Garbage::Hello => vec![format!(r#"{{"t":"hello","team":"{hash}","machine":"{hash}"}}"#)],
            Garbage::Seal => self.sent_by(number, |text| {
                let place = text.find(r#""body":""#).map(|place| place + 8);
                let (head, tail) = place.map(|place| text.split_at(place)).unwrap_or((text, ""));
                let other = if tail.starts_with('A') { "B" } else { "A" };
                format!("{head}{other}{}", tail.get(1..).unwrap_or_default())
            }),
            Garbage::Again => self.sent_by(number, str::to_owned),
            Garbage::Flood => vec![r#"{"t":"ping"}"#.to_owned(); 1_500],
        };
        for frame in frames {
            self.world.say_up(number, &frame);
        }
    }

    /// The last envelope a machine sent, changed.
    fn sent_by(&self, number: usize, change: impl Fn(&str) -> String) -> Vec<String> {
        self.world.last_sent(number).map(change).into_iter().collect()
    }
}
