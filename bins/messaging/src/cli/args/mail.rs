//! Verbs about mail and tasks.

use argh::{ArgsInfo, FromArgs};
use std::path::PathBuf;

/// write to an agent, a person, a channel, or give an agent a task
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "send",
    example = "messaging send bob/agent \"Is the build green?\"\nmessaging send bob/agent --task \"Run the migration on staging\"\nmessaging send \"#eng\" \"Deploying at five\"\ngit diff | messaging send bob/agent -"
)]
pub(crate) struct Send {
    /// person/agent, person/agent@label, person, #channel or me
    #[argh(positional)]
    pub(crate) to: String,
    /// the text, or - to read it from standard input
    #[argh(positional)]
    pub(crate) text: Option<String>,
    /// give the agent a task instead of a message
    #[argh(switch)]
    pub(crate) task: bool,
    /// attach a file; repeat for more
    #[argh(option, arg_name = "path")]
    pub(crate) file: Vec<PathBuf>,
    /// the message this answers
    #[argh(option, arg_name = "id")]
    pub(crate) reply_to: Option<String>,
    /// the task this continues
    #[argh(option, arg_name = "id")]
    pub(crate) task_id: Option<String>,
    /// a task you were given, of which this is a part
    #[argh(option, arg_name = "id")]
    pub(crate) on_behalf_of: Option<String>,
    /// a key that makes a repeated call send once
    #[argh(option, arg_name = "text")]
    pub(crate) key: Option<String>,
    /// do not wake a sleeping agent
    #[argh(switch)]
    pub(crate) no_wake: bool,
    /// wait for the agent to show up and for the message to be on its machine, at most this many seconds; the exit status is
    /// 1 when it was refused
    #[argh(option, arg_name = "seconds")]
    pub(crate) wait: Option<u64>,
}

/// messages and task requests to this terminal: the unread ones, with --all the others too
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "inbox",
    example = "messaging inbox\nmessaging inbox --all --limit 100\nmessaging inbox --wait 60",
    note = "An item is unread until `messaging read <id>` shows it. A script that waits again reads what it found first."
)]
pub(crate) struct Inbox {
    /// read ones too
    #[argh(switch)]
    pub(crate) all: bool,
    /// at most this many (default 50)
    #[argh(option, default = "50", arg_name = "n")]
    pub(crate) limit: u64,
    /// wait until something is unread, at most this many seconds
    #[argh(option, arg_name = "seconds")]
    pub(crate) wait: Option<u64>,
}

/// read one message or a conversation
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "read",
    example = "messaging read 01M7Q5F6K8FS28ZVG7YPT2PQY9\nmessaging read --with dm:bob\nmessaging read --with agent:bob/agent\nmessaging read 01M7Q5F6K8FS28ZVG7YPT2PQY9 --save ."
)]
pub(crate) struct Read {
    /// an inbox item or something you sent
    #[argh(positional)]
    pub(crate) id: Option<String>,
    /// dm:<person>, channel:<name> or agent:<person>/<agent>
    #[argh(option, arg_name = "conversation")]
    pub(crate) with: Option<String>,
    /// only what came before this cursor
    #[argh(option, arg_name = "cursor")]
    pub(crate) before: Option<String>,
    /// at most this many (default 50)
    #[argh(option, arg_name = "n")]
    pub(crate) limit: Option<u64>,
    /// write the message's files into this folder, over nothing that is there
    #[argh(option, arg_name = "folder")]
    pub(crate) save: Option<PathBuf>,
}

/// what is not read yet of all your agents sent, how long, why, and to whom; or how far one message has come
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "sent", example = "messaging sent\nmessaging sent 01M7Q5F6K8FS28ZVG7YPT2PQY9")]
pub(crate) struct Sent {
    /// the id that `send` printed, or a task's
    #[argh(positional)]
    pub(crate) id: Option<String>,
}

/// tasks this terminal asked for or was asked
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "tasks",
    example = "messaging tasks\nmessaging tasks --role executor --state working"
)]
pub(crate) struct Tasks {
    /// requester or executor
    #[argh(option)]
    pub(crate) role: Option<String>,
    /// a state, such as working or input_required
    #[argh(option)]
    pub(crate) state: Option<String>,
}

/// look at, work on or cancel one task
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "task",
    example = "messaging task show 01M7Q5F6K8FS28ZVG7YPT2PQY9\nmessaging task cancel 01M7Q5F6K8FS28ZVG7YPT2PQY9"
)]
pub(crate) struct Task {
    #[argh(subcommand)]
    pub(crate) verb: TaskVerb,
}

#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand)]
pub(crate) enum TaskVerb {
    Show(TaskShow),
    Update(TaskUpdate),
    Cancel(TaskCancel),
}

/// the request, its history, its state and what came of it
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "show", example = "messaging task show 01M7Q5F6K8FS28ZVG7YPT2PQY9")]
pub(crate) struct TaskShow {
    /// the task's id
    #[argh(positional)]
    pub(crate) id: String,
}

/// report progress or a result, as the one who works on it
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "update",
    example = "messaging task update 01M7… --state working --message \"on it\"\nmessaging task update 01M7… --state completed --artifact report.txt"
)]
pub(crate) struct TaskUpdate {
    /// the task's id
    #[argh(positional)]
    pub(crate) id: String,
    /// working, input_required, auth_required, completed, failed or rejected
    #[argh(option)]
    pub(crate) state: Option<String>,
    /// a status text
    #[argh(option, arg_name = "text")]
    pub(crate) message: Option<String>,
    /// a file that is the result
    #[argh(option, arg_name = "path")]
    pub(crate) artifact: Option<PathBuf>,
}

/// ask the one who works on it to stop
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "cancel",
    example = "messaging task cancel 01M7Q5F6K8FS28ZVG7YPT2PQY9 --reason \"not needed any more\""
)]
pub(crate) struct TaskCancel {
    /// the task's id
    #[argh(positional)]
    pub(crate) id: String,
    /// why
    #[argh(option, arg_name = "text")]
    pub(crate) reason: Option<String>,
}
