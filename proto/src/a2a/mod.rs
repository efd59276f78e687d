//! The A2A v1 objects that payloads hold, in proto3 JSON (`messaging/1 §6`).
//!
//! Objects are open: members not listed here stay in the raw value. Bounds and the few narrowings are
//! Messaging's own: ids are 1 … 128 units, an object has 1 … 100 parts, a task id is a ULID.

mod message;
mod stamp;
mod task;

pub use message::{Id, Message, PARTS, Part, PartContent, Role};
pub use stamp::is_timestamp;
pub use task::{Artifact, Task, TaskState, TaskStatus};
