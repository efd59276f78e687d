//! From a code to the one next step and to whether trying again helps: the only place that knows.
//!
//! `docs/troubleshooting.md` has a row for each code; a test holds the two together.

use super::args::Explain;
use super::failure::Failure;
use super::output::{self, FAINT, STRONG};
use super::shell::Shell;
use super::value::{array, object, string};
use messaging_proto::Code;

/// Whether and when the same call may be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The same call fails again.
    Never,
    /// After what is wrong was put right.
    AfterFix,
    /// After a wait, with the same `--key` where one was given.
    AfterWait,
    /// It has taken effect already.
    Done,
}

impl Retry {
    /// As the documentation says it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Never => "no",
            Self::AfterFix => "after the fix",
            Self::AfterWait => "after a wait",
            Self::Done => "not needed",
        }
    }
}

/// The next step of a code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remedy {
    /// What to do, in one sentence.
    pub(crate) step: &'static str,
    /// Whether to try the same again.
    pub(crate) retry: Retry,
}

/// Closed: a new code does not compile until it has its step.
pub(crate) const fn remedy(code: Code) -> Remedy {
    use Retry::{AfterFix, AfterWait, Done, Never};
    let (step, retry) = match code {
        Code::InvalidRequest => ("correct the named field and try again.", AfterFix),
        Code::NotMember => {
            ("run `messaging team info`; a machine that was removed needs a new ticket.", AfterFix)
        }
        Code::BadSignature => {
            ("tell an admin of the team: something between you and them changes messages.", Never)
        }
        Code::UnknownSession => ("run `messaging contacts` and pick an agent that runs.", AfterFix),
        Code::AmbiguousAddress => ("add @label to the address.", AfterFix),
        Code::NoRecipients | Code::UnknownAddress => {
            ("run `messaging contacts` and use an address it lists.", AfterFix)
        }
        Code::Refused | Code::Declined => ("do not send it again; talk to them another way.", Never),
        Code::RequestRequired => ("ask them to let you write first; nothing was sent.", AfterFix),
        Code::RateLimited => ("wait a minute, then try once.", AfterWait),
        Code::LoopGuard => {
            ("stop the two agents from answering each other; it opens again in ten minutes.", AfterWait)
        }
        Code::TooLarge => ("shorten it, or attach a file.", AfterFix),
        Code::SecretRefused => ("remove the credential and send it another way.", AfterFix),
        Code::Expired => (
            "send it again if it still matters; if it keeps happening run `messaging doctor` (clock).",
            AfterFix,
        ),
        Code::Duplicate => ("nothing: it arrived before.", Done),
        Code::RelayUnavailable => {
            ("run `messaging doctor`; what is in the outbox goes out by itself.", AfterWait)
        }
        Code::NotFound => ("list again and use a name or an id from that list.", AfterFix),
        Code::InvalidState => {
            ("look at the state with `messaging status` or `messaging task show`, then act on it.", AfterFix)
        }
        Code::Forbidden => ("ask an admin of the team; if a file is named, do what the line says.", AfterFix),
        Code::GuardedTurn => ("do not try again; answer only the one who asked.", Never),
        Code::RosterConflict => ("try again; the team changed at the same moment.", AfterWait),
        Code::InviteInvalid => ("ask for a new ticket.", AfterFix),
        Code::NoIdentity => {
            ("create a team with `messaging team create`, or join one with `messaging team join`.", AfterFix)
        }
        Code::BindingInvalid | Code::DirectoryInconsistent => {
            ("tell the person who runs the directory; do not go on until it is explained.", Never)
        }
        Code::JellyUnavailable | Code::DirectoryUnavailable => ("try again later.", AfterWait),
        Code::LogConflict | Code::ConvConflict | Code::StaleEpoch => {
            ("try again; it changed at the same moment.", AfterWait)
        }
        Code::DeviceLimit => ("remove a machine you no longer use, then try again.", AfterFix),
        Code::AdmissionRequired | Code::AdmissionInvalid => ("sign in again, then try once more.", AfterFix),
        Code::UnknownDevice => ("check that the machine is still one of its person's machines.", AfterFix),
        Code::LoginUnsupported => ("use another way to bring the machine in.", Never),
        Code::LoginDenied => ("sign in again only if you meant to.", AfterFix),
        Code::GrantRequired | Code::GrantInvalid | Code::TicketRequired | Code::TicketInvalid => {
            ("use the program that runs this daemon.", Never)
        }
        Code::DaemonUnavailable => ("run `messaging daemon start`.", AfterFix),
        Code::DaemonMismatch => ("run `messaging daemon stop`, then `messaging daemon start`.", AfterFix),
        Code::StoreRefused => ("upgrade messaging and keep the home folder as it is.", AfterFix),
        Code::Internal => ("run `messaging log --level warn` and look for the cause.", Never),
    };
    Remedy { step, retry }
}

/// What this program says by itself, in the same place as a code: not one of the protocol's.
pub(super) const OWN: &[(&str, Retry, &str)] =
    &[("usage", Retry::AfterFix, USAGE), ("answered_no", Retry::Never, "nothing was changed.")];

const USAGE: &str = "run `messaging help <verb>`.";

/// The step of a code, also of one that is this program's own.
pub(super) fn step(code: &str) -> &'static str {
    match OWN.iter().find(|(own, ..)| *own == code) {
        Some((_, _, step)) => step,
        None => remedy(Code::from_text(code).unwrap_or(Code::Internal)).step,
    }
}

/// The rows of `explain`: the code, whether trying again helps, the step.
fn rows() -> impl Iterator<Item = [&'static str; 3]> {
    let codes = Code::ALL.iter().map(|code| {
        let remedy = remedy(*code);
        [code.as_str(), remedy.retry.words(), remedy.step]
    });
    codes.chain(OWN.iter().map(|(code, retry, step)| [*code, retry.words(), *step]))
}

/// `explain`: the table, or one row of it.
pub(super) fn explain(shell: &Shell, args: &Explain) -> Result<(), Failure> {
    let codes: Vec<[&str; 3]> = match args.code.as_deref() {
        None => rows().collect(),
        Some(text) => vec![rows().find(|[code, ..]| *code == text).ok_or_else(|| {
            Failure::new("not_found", "there is no such code")
                .with_remedy("run `messaging explain` for all of them.")
        })?],
    };
    let document = array(codes.iter().map(|[code, retry, step]| {
        object([("code", string(code)), ("retry", string(retry)), ("step", string(step))])
    }));
    shell.out.result(&object([("codes", document)]), || match codes.as_slice() {
        [[_, retry, step]] => format!("Trying the same again: {retry}.\nNext: {step}"),
        many => {
            if !super::on_terminal() {
                let rows: Vec<Vec<String>> = many.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
                return output::table(&["CODE", "TRY AGAIN", "NEXT"], &rows);
            }
            let lines = many.iter().map(|[code, retry, step]| {
                let step = output::hang("    ", step);
                format!("{STRONG}{code}{STRONG:#}  {FAINT}try again: {retry}{FAINT:#}\n{step}")
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    });
    Ok(())
}
