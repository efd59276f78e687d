//! One client line as a request (`contract ipc §1`, framing).

use super::error::RpcError;
use messaging_proto::Code;
use messaging_proto::json::{FromValue, Object, Value, parse_wire};

/// `ipcRequestBytes`: the longest client line, LF excluded.
pub const IPC_REQUEST_BYTES: usize = 1_048_576;

/// A request's id, echoed in its reply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestId {
    /// An integer from 0 to 2^53 − 1.
    Int(u64),
    /// A string of 1 to 64 UTF-16 code units.
    Text(String),
}

impl RequestId {
    /// The id as it was sent.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Int(number) => Value::int(*number),
            Self::Text(text) => Value::text(text.as_str()),
        }
    }

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) if (1..=64).contains(&messaging_proto::units::utf16_len(text)) => {
                Some(Self::Text(text.clone()))
            }
            _ => u64::from_value(value).ok().map(Self::Int),
        }
    }
}

/// A request of the right shape. Its method and params are not judged yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// The method's name.
    pub method: String,
    /// Its params; an empty object when there were none.
    pub params: Value,
}

/// What a line is.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A request.
    Request(Request),
    /// Refused, with the id when it could be read.
    Refused(Option<RequestId>, RpcError),
    /// An object without `id`: not run and not answered.
    Ignored,
}

fn not_a_request() -> RpcError {
    RpcError::request(Code::InvalidRequest, "the line is not a request")
}

/// Reads a line, without its LF.
#[must_use]
pub fn read(line: &[u8]) -> Line {
    let Ok(value) = parse_wire(line, IPC_REQUEST_BYTES) else {
        return Line::Refused(None, RpcError::parse());
    };
    let Value::Object(object) = value else { return Line::Refused(None, not_a_request()) };
    let Some(id) = object.get("id") else { return Line::Ignored };
    let id = RequestId::read(id);
    match (id, shape(object)) {
        (Some(id), Some((method, params))) => Line::Request(Request { id, method, params }),
        (id, _) => Line::Refused(id, not_a_request()),
    }
}

fn shape(mut object: Object) -> Option<(String, Value)> {
    let known = ["jsonrpc", "id", "method", "params", "grant"];
    let closed = object.iter().all(|(name, _)| known.contains(&name));
    let version = object.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
    let grant = object.get("grant").is_none_or(|grant| grant.as_str().is_some());
    let Some(Value::String(method)) = object.remove("method") else { return None };
    let params = object.remove("params").unwrap_or(Value::Object(Object::new()));
    (closed && version && grant && params.as_object().is_some()).then_some((method, params))
}
