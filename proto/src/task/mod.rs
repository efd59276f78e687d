//! Tasks (`messaging/1 §6.1–§6.4`): the states of a task, who may speak about earlier traffic, and how far a
//! delivery has come. All of it pure: records are read through [`Records`], the clock is an argument.

pub mod binding;
pub mod stage;
mod state;

pub use binding::{BindError, Bound, Incoming, Records, Role, TaskView, bind, same};
pub use stage::Stage;
pub use state::{
    Ending, TASK_IDLE_MS, TRANSITIONS, TaskError, apply_update, can_transition, delivery_expired,
    delivery_rejected, timeout,
};
