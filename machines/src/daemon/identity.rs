//! This machine's keys.

use messaging_proto::identity::Identity;

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

/// The keys of the two identity files. Only this module changes them.
#[derive(Debug, Default)]
pub struct Keys {
    current: Option<Identity>,
    pairing: Option<Identity>,
    alarm: Option<Alarm>,
}

impl Keys {
    /// The keys read from `identity.json` and `pairing.json`.
    #[must_use]
    pub const fn new(current: Option<Identity>, pairing: Option<Identity>) -> Self {
        Self { current, pairing, alarm: None }
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
}
