//! One text form for a type, used everywhere: display, wire values and serde.

/// Gives a type with `parse(&str) -> Option<Self>` and `Display` its wire and serde forms.
macro_rules! text_form {
    ($type:ty, $what:literal) => {
        impl $crate::json::FromValue for $type {
            fn from_value(value: &$crate::json::Value) -> Result<Self, $crate::json::Invalid> {
                value.as_str().and_then(Self::parse).ok_or_else($crate::json::Invalid::new)
            }
        }

        impl From<&$type> for $crate::json::Value {
            fn from(one: &$type) -> Self {
                Self::String(one.to_string())
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                // The message names the type only: the text may be a peer's.
                Self::parse(&text).ok_or_else(|| serde::de::Error::custom(concat!("not ", $what)))
            }
        }
    };
}

/// A newtype over bytes of fixed length, written in base64url.
macro_rules! bytes_type {
    ($(#[$doc:meta])* $name:ident, $len:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub [u8; $len]);

        impl $name {
            /// Reads canonical base64url of exactly this many bytes.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                $crate::b64u::decode_array(text).map(Self)
            }

            /// The raw bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::b64u::fmt(&self.0, f)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        $crate::text_form::text_form!($name, $what);
    };
}

pub(crate) use {bytes_type, text_form};
