//! `team …`.

use super::args::{STDIN, TeamCreate, TeamJoin, TeamVerb};
use super::cause;
use super::failure::Failure;
use super::output::{self, FAINT, STRONG};
use super::shell::{Shell, text_or_stdin};
use super::value::{Read, number, object, string};
use messaging_proto::ticket::{AdmitCard, TeamCard};
use serde_json::Value;

pub(super) fn run(shell: &mut Shell, verb: TeamVerb) -> Result<(), Failure> {
    // The first thing a new home hears: nothing is gained by asking for another command before it.
    if matches!(verb, TeamVerb::Create(_) | TeamVerb::Prepare(_) | TeamVerb::Join(_) | TeamVerb::Pair(_)) {
        shell.autostart()?;
    }
    match verb {
        TeamVerb::Create(args) => create(shell, &args),
        TeamVerb::Prepare(_) => {
            let keys = shell.call("team.prepare", object([]))?;
            shell.out.result(&keys, || {
                format!(
                    "{}\n{FAINT}The id of this machine. Whoever runs the relay allows it to found a team: messaging relay \
                     --genesis <id>\nThen run here: messaging team create{FAINT:#}",
                    keys.text("machine")
                )
            });
            Ok(())
        }
        TeamVerb::Invite(args) => {
            let ttl = args.ttl.saturating_mul(3_600_000);
            let params = object([("person", string(&args.person)), ("ttlMs", number(ttl))]);
            let invite = shell.call("team.invite", params)?;
            shell.out.result(&invite, || {
                format!(
                    "{}\n{FAINT}A ticket for {}: whoever has it can join as them, once, until {}. Invite {}.\nOn the \
                     other machine: messaging team join <ticket> --label <name>{FAINT:#}",
                    invite.text("ticket"),
                    output::clean(&args.person),
                    output::when(invite.int("expires").unwrap_or_default()),
                    invite.text("inviteId"),
                )
            });
            Ok(())
        }
        TeamVerb::Revoke(args) => {
            let done = shell.call("team.revoke", object([("inviteId", string(&args.invite))]))?;
            shell.out.result(&done, || "The ticket is useless now.".to_owned());
            Ok(())
        }
        TeamVerb::Join(args) => join(shell, &args),
        TeamVerb::Pair(args) => {
            let card = TeamCard::decode(&args.card).map_err(|_| {
                Failure::new("invalid_request", "the team card does not read").with_remedy("copy it whole.")
            })?;
            let params = object([
                ("relay", string(card.relay.as_str())),
                ("team", string(&card.team.to_string())),
                ("name", string(card.name.as_str())),
                ("person", string(&args.person)),
                ("label", string(&args.label)),
            ]);
            let result = shell.call("team.pair", params).map_err(not_there)?;
            shell.out.result(&result, || {
                format!(
                    "{}\n{FAINT}Give this card to an admin, who runs: messaging team add <card>\nThen run here: messaging \
                     team claim{FAINT:#}",
                    result.text("card")
                )
            });
            Ok(())
        }
        TeamVerb::Add(args) => {
            let card = AdmitCard::decode(&args.card).map_err(|_| {
                Failure::new("invalid_request", "the admit card does not read").with_remedy("copy it whole.")
            })?;
            let params = object([
                ("machine", string(&card.machine.to_string())),
                ("enc", string(&card.enc.to_string())),
                ("person", string(card.person.as_str())),
                ("label", string(card.label.as_str())),
            ]);
            let done = shell.call("team.add", params)?;
            shell.out.result(&done, || "Added. The machine can run `messaging team claim` now.".to_owned());
            Ok(())
        }
        TeamVerb::Claim(_) => {
            let result = shell.call("team.claim", object([])).map_err(|failure| match &*failure.text {
                "no pairing waits" => failure.with_remedy("run `messaging team pair <team card>` first."),
                "this machine is in a team" => {
                    failure.with_remedy("nothing: `messaging status` shows who you are.")
                }
                _ => failure,
            })?;
            shell.out.result(&result, || match result.text("state") {
                "done" => joined(&result),
                _ => "Not added yet. Try again once an admin ran `messaging team add`.".to_owned(),
            });
            Ok(())
        }
        TeamVerb::PairCancel(_) => {
            let result = shell.call("team.pairCancel", object([]))?;
            shell.out.result(&result, || {
                if result.flag("cancelled") { "The pending keys are gone." } else { "No keys were pending." }
                    .to_owned()
            });
            Ok(())
        }
        TeamVerb::Info(_) => {
            let view = shell.view()?;
            let info = shell.call("team.info", object([]))?;
            shell.out.result(&info, || describe(&info));
            shell.as_of(&view, None, true);
            Ok(())
        }
        TeamVerb::Remove(args) => {
            let machine = machine_of(shell, &args.machine)?;
            // The contract's verb has no preview and no `--yes`: where nobody can be asked, it acts.
            if !args.yes && output::can_ask() {
                let question = removal(&shell.call("team.info", object([]))?, &machine);
                shell.confirm(&question, false)?;
            }
            let done = shell.call("team.remove", object([("machine", string(&machine))]))?;
            shell.out.result(&done, || {
                format!(
                    "{} is removed for good. A new ticket brings its person back.",
                    output::clean(&args.machine)
                )
            });
            Ok(())
        }
        TeamVerb::Role(args) => {
            let machine = machine_of(shell, &args.machine)?;
            let done = shell
                .call("team.role", object([("machine", string(&machine)), ("role", string(&args.role))]))?;
            shell.out.result(&done, || {
                format!("{} is {} now.", output::clean(&args.machine), output::clean(&args.role))
            });
            Ok(())
        }
    }
}

/// A relay that was named just now is more likely misspelt than gone.
fn not_there(failure: Failure) -> Failure {
    if failure.code != "relay_unavailable" {
        return failure;
    }
    let step = cause::step(&failure.text).unwrap_or_else(|| cause::reach("").to_owned());
    failure.with_remedy(format!("{step}."))
}

fn create(shell: &mut Shell, args: &TeamCreate) -> Result<(), Failure> {
    let params = object([
        ("relay", string(&args.relay)),
        ("name", string(&args.name)),
        ("person", string(&args.person)),
        ("label", string(&args.label)),
    ]);
    let result = shell.call("team.create", params).map_err(|failure| match &*failure.code {
        "invalid_request" if failure.text.starts_with("name is") => {
            failure.with_remedy("give the team a name of 1 to 64 characters, with --name.")
        }
        _ => not_there(failure),
    })?;
    shell.out.result(&result, || {
        format!(
            "Team {} is founded. {}\n{FAINT}Bring someone in: messaging team invite <person>{FAINT:#}",
            output::clean(&args.name),
            joined(&result)
        )
    });
    Ok(())
}

fn join(shell: &mut Shell, args: &TeamJoin) -> Result<(), Failure> {
    let ticket = if args.ticket == STDIN { text_or_stdin(STDIN)? } else { args.ticket.clone() };
    let label = match &args.label {
        Some(label) => label.clone(),
        None => host_label()?,
    };
    let params = object([("ticket", string(ticket.trim())), ("label", string(&label))]);
    let result = shell.call("team.join", params).map_err(not_there)?;
    shell.out.result(&result, || joined(&result));
    Ok(())
}

fn joined(result: &Value) -> String {
    format!(
        "You are {STRONG}{}@{}{STRONG:#}.",
        output::clean(result.text("person")),
        output::clean(result.text("label"))
    )
}

/// This machine's host name as a label.
fn host_label() -> Result<String, Failure> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut label: String = name
        .trim()
        .split('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '-' })
        .collect();
    label = label.trim_start_matches('-').chars().take(32).collect();
    if label.is_empty() {
        return Err(Failure::usage("this machine has no usable host name").with_remedy("add --label <name>."));
    }
    Ok(label)
}

/// What removing a machine means, for the question before it.
fn removal(info: &Value, machine: &str) -> String {
    let member = info.items("members").iter().find(|member| member.text("machine") == machine);
    let own = member.is_some_and(|member| member.flag("self"));
    let who = member.map_or_else(
        || "a machine that is not in the team".to_owned(),
        |member| format!("{}@{}", member.text("person"), member.text("label")),
    );
    format!(
        "This removes {who}{} for good: its keys are refused from then on, and mail that waits for it is dropped.",
        if own { ", this machine" } else { "" }
    )
}

/// The machine id for `person@label`, or the id itself.
fn machine_of(shell: &mut Shell, text: &str) -> Result<String, Failure> {
    let Some((person, label)) = text.split_once('@') else { return Ok(text.to_owned()) };
    let info = shell.call("team.info", object([]))?;
    info.items("members")
        .iter()
        .find(|member| member.text("person") == person && member.text("label") == label)
        .map(|member| member.text("machine").to_owned())
        .ok_or_else(|| {
            Failure::new("not_found", "no machine of the team has that person and label")
                .with_remedy("run `messaging team info`.")
        })
}

fn describe(info: &Value) -> String {
    let head = info.get("head").and_then(|head| head.int("seq")).unwrap_or_default();
    let mut text = format!(
        "{STRONG}{}{STRONG:#}  {}\nteam {}, at change {head}, you are {}\n\n",
        output::clean(info.text("name")),
        output::clean(info.text("relay")),
        info.text("team"),
        info.text("role"),
    );
    let mut sorted: Vec<&Value> = info.items("members").iter().collect();
    sorted.sort_by_key(|member| (member.text("person"), member.text("label")));
    let members: Vec<Vec<String>> = sorted
        .iter()
        .map(|member| {
            vec![
                format!("{}@{}", output::clean(member.text("person")), output::clean(member.text("label"))),
                member.text("role").to_owned(),
                member.text("machine").to_owned(),
                if member.flag("self") { "this machine" } else { "" }.to_owned(),
            ]
        })
        .collect();
    text.push_str(&output::table(&["MEMBER", "ROLE", "MACHINE", ""], &members));
    let mut sorted: Vec<&Value> = info.items("invites").iter().collect();
    sorted.sort_by_key(|invite| invite.text("inviteId"));
    let invites: Vec<Vec<String>> = sorted
        .iter()
        .map(|invite| {
            vec![
                invite.text("inviteId").to_owned(),
                output::clean(invite.text("person")),
                invite.text("state").to_owned(),
                output::when(invite.int("expires").unwrap_or_default()),
            ]
        })
        .collect();
    if !invites.is_empty() {
        text.push_str("\n\n");
        text.push_str(&output::table(&["INVITE", "PERSON", "STATE", "EXPIRES"], &invites));
    }
    text.push_str(&format!("\n\n{FAINT}team card (public):{FAINT:#}\n{}", info.text("card")));
    text
}
