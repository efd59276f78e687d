//! Refusals as the local API says them (`contract ipc §1`, "Error object").

use crate::daemon::ctx::obj;
use messaging_proto::Code;
use messaging_proto::json::{Invalid, Object, Value};
use std::borrow::Cow;

/// A refusal of a request. Names fields, never values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    number: i32,
    code: Code,
    text: Cow<'static, str>,
    field: Option<String>,
    retry_after_ms: Option<u64>,
}

impl RpcError {
    /// A refusal by a method: JSON-RPC −32000 with a code of `messaging/1 §13`.
    #[must_use]
    pub const fn new(code: Code, text: &'static str) -> Self {
        let number = match code {
            Code::Internal => -32603,
            _ => -32000,
        };
        Self { number, code, text: Cow::Borrowed(text), field: None, retry_after_ms: None }
    }

    /// Params that break their method's table: −32602 with the path of the first that does.
    #[must_use]
    pub fn params(invalid: &Invalid) -> Self {
        let path = invalid.path();
        let text = if path.is_empty() {
            Cow::Borrowed("the params hold a member the method does not take")
        } else {
            Cow::Owned(format!("{path} is missing or not of its form"))
        };
        let field = (!path.is_empty()).then(|| path.to_owned());
        Self { number: -32602, code: Code::InvalidRequest, text, field, retry_after_ms: None }
    }

    /// A line that is not wire JSON: −32700.
    #[must_use]
    pub fn parse() -> Self {
        Self { number: -32700, ..Self::new(Code::InvalidRequest, "the line is not wire JSON") }
    }

    /// A line that is no request, or too long: −32600.
    #[must_use]
    pub fn request(code: Code, text: &'static str) -> Self {
        Self { number: -32600, ..Self::new(code, text) }
    }

    /// A method that does not exist: −32601.
    #[must_use]
    pub fn method() -> Self {
        Self { number: -32601, ..Self::new(Code::NotFound, "no such method") }
    }

    /// The same refusal, naming the param at fault.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// The same refusal with words made from names of our own tables and numbers.
    #[must_use]
    pub fn saying(mut self, text: String) -> Self {
        self.text = Cow::Owned(text);
        self
    }

    /// The same refusal, saying when to ask again.
    #[must_use]
    pub const fn after(mut self, ms: u64) -> Self {
        self.retry_after_ms = Some(ms);
        self
    }

    /// The code of `messaging/1 §13`.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The JSON-RPC number.
    #[must_use]
    pub const fn number(&self) -> i32 {
        self.number
    }

    /// The path of the param at fault.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// When to ask again, in milliseconds.
    #[must_use]
    pub const fn retry_after_ms(&self) -> Option<u64> {
        self.retry_after_ms
    }

    /// The error object on the wire.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut data = Object::new();
        data.set("code", Value::text(self.code.as_str()));
        if let Some(field) = &self.field {
            data.set("field", Value::text(field.as_str()));
        }
        if let Some(ms) = self.retry_after_ms {
            data.set("retryAfterMs", Value::int(ms));
        }
        obj([
            ("code", Value::Number(f64::from(self.number))),
            ("message", Value::text(format!("{}: {}", self.code, self.text))),
            ("data", data.into()),
        ])
    }
}
