//! The keys of the two identity files, in memory.

use messaging_proto::identity::{Identity, IdentityError};
use messaging_proto::key::{EncKey, MachineId};
use messaging_proto::roster::Roster;
use messaging_proto::time::Wall;

/// An alarm about keys (`messaging/1 §8.9`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// The roster holds a key this machine published and does not hold.
    Restored,
    /// The store belongs to a machine whose keys are gone.
    KeysMissing,
}

impl Alarm {
    /// The alarm's name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::KeysMissing => "keys_missing",
        }
    }
}

/// The keys of `identity.json` and `pairing.json`. Only the identity and team roles change them.
#[derive(Debug, Default)]
pub struct Keys {
    current: Option<Identity>,
    pairing: Option<Identity>,
    /// An `identity.json` that is not the store's: kept out of use.
    foreign: bool,
    alarm: Option<Alarm>,
}

impl Keys {
    /// The keys read from `identity.json` and `pairing.json`.
    #[must_use]
    pub const fn new(current: Option<Identity>, pairing: Option<Identity>) -> Self {
        Self { current, pairing, foreign: false, alarm: None }
    }

    /// This machine's identity; nothing without a team, or when its keys are gone.
    #[must_use]
    pub const fn current(&self) -> Option<&Identity> {
        self.current.as_ref()
    }

    /// Keys that wait to be admitted to a team, or to found one.
    #[must_use]
    pub const fn pairing(&self) -> Option<&Identity> {
        self.pairing.as_ref()
    }

    /// The alarm that stands.
    #[must_use]
    pub const fn alarm(&self) -> Option<Alarm> {
        self.alarm
    }

    /// Whether `identity.json` holds keys, of whatever machine: it must not be overwritten.
    #[must_use]
    pub const fn file_taken(&self) -> bool {
        self.current.is_some() || self.foreign
    }

    pub(in crate::daemon) fn set_pairing(&mut self, pairing: Option<Identity>) {
        self.pairing = pairing;
    }

    /// The pairing keys become this machine's.
    pub(in crate::daemon) fn adopt(&mut self) {
        if let Some(pairing) = self.pairing.take() {
            self.current = Some(pairing);
        }
    }

    pub(super) fn disown(&mut self) {
        self.foreign |= self.current.take().is_some();
    }

    pub(super) const fn set_alarm(&mut self, alarm: Option<Alarm>) {
        self.alarm = alarm;
    }

    pub(super) const fn current_mut(&mut self) -> Option<&mut Identity> {
        self.current.as_mut()
    }

    pub(super) fn begin(&mut self, secret: [u8; 32], now: Wall) -> Result<EncKey, IdentityError> {
        self.current.as_mut().map_or(Err(IdentityError::NoRotation), |keys| keys.begin_rotation(secret, now))
    }

    /// `§8.9`: what is wrong with the keys, against the verified roster and the machine the store names.
    #[must_use]
    pub fn judge(&self, roster: Option<&Roster>, owner: Option<&MachineId>) -> Option<Alarm> {
        let roster = roster?;
        let Some(identity) = &self.current else {
            return owner.map(|_| Alarm::KeysMissing);
        };
        let machine = identity.machine();
        let published = roster.member(&machine)?.enc;
        let own_doing = roster.rekey_by(&machine) == Some(machine);
        let held = published == identity.enc()
            || identity.pending().is_some_and(|(key, _)| key == published)
            || identity.retained().any(|(key, _)| key == published);
        (own_doing && !held).then_some(Alarm::Restored)
    }
}
