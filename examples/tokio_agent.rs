//! The client machine in tokio: a program that prints what arrives for its session.
//!
//! ```text
//! cargo run -p messaging-examples --example tokio_agent            # $MESSAGING_HOME, else ~/.messaging
//! cargo run -p messaging-examples --example tokio_agent -- --once  # say who is there, and end
//! ```
//!
//! [`ClientMachine`] does no I/O, so any runtime can drive it: whoever owns the socket gives it the bytes and writes the lines
//! it returns. Here one task owns both, and callers reach it over a channel. Nothing of tokio is in the machine, and nothing
//! of the protocol is here.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use messaging_machines::client::{CallId, ClientError, ClientMachine, IPC_CONNECT_MS, Notice, call_timeout};
use messaging_proto::b64u;
use messaging_proto::text::clean_peer_text;
use messaging_smol::client::{Options, connect_error};
use messaging_smol::entropy::Entropy;
use messaging_smol::home::Home;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

type Reply = oneshot::Sender<Result<Value, ClientError>>;

/// A call on its way to the task that owns the connection.
struct Call {
    method: String,
    params: Value,
    reply: Reply,
}

/// What callers hold.
#[derive(Clone)]
struct Daemon(mpsc::Sender<Call>);

impl Daemon {
    /// Connects, waits for the hello, and leaves the connection to a task of its own. Events go to `events`.
    async fn connect(options: &Options, events: mpsc::Sender<Value>) -> Result<Self, ClientError> {
        // The home, `run/` and the socket are private, or nothing is said to whoever listens there.
        let socket = options.checked_socket()?;
        let mut stream = UnixStream::connect(socket).await.map_err(|error| connect_error(&error))?;
        let mut machine = ClientMachine::new(&options.version);
        let hello = hello(&mut stream, &mut machine);
        let early = tokio::time::timeout(Duration::from_millis(IPC_CONNECT_MS), hello)
            .await
            .map_err(|_| ClientError::mismatch("what answers on the socket says no hello"))??;
        let (sender, calls) = mpsc::channel(16);
        tokio::spawn(drive(stream, machine, early, calls, events));
        Ok(Self(sender))
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        let timeout = call_timeout(method, &params);
        let (reply, answer) = oneshot::channel();
        let gone = || ClientError::unavailable("the connection was lost");
        self.0.send(Call { method: method.to_owned(), params, reply }).await.map_err(|_| gone())?;
        match tokio::time::timeout(timeout, answer).await {
            Ok(answer) => answer.map_err(|_| gone())?,
            Err(_) => Err(ClientError::unavailable("the daemon did not answer in time")),
        }
    }
}

/// Reads until the machine knows who answers; what came after the hello is returned.
async fn hello(stream: &mut UnixStream, machine: &mut ClientMachine) -> Result<Vec<Notice>, ClientError> {
    let mut notices = Vec::new();
    while notices.is_empty() {
        read(stream, machine, &mut notices).await;
    }
    match notices.remove(0) {
        Notice::Ended(why) => Err(why),
        _ => Ok(notices),
    }
}

/// Gives the machine what one read brings; the end of the stream too.
async fn read(stream: &mut UnixStream, machine: &mut ClientMachine, notices: &mut Vec<Notice>) {
    let mut buffer = [0; 16_384];
    match stream.read(&mut buffer).await {
        Ok(count @ 1..) => machine.received(buffer.get(..count).unwrap_or_default(), notices),
        _ => machine.closed(notices),
    }
}

/// Owns the connection: bytes in, lines out, replies and events sorted, until either end goes.
async fn drive(
    mut stream: UnixStream,
    mut machine: ClientMachine,
    mut notices: Vec<Notice>,
    mut calls: mpsc::Receiver<Call>,
    events: mpsc::Sender<Value>,
) {
    let mut waiting: BTreeMap<CallId, Reply> = BTreeMap::new();
    loop {
        for notice in notices.drain(..) {
            match notice {
                Notice::Reply(id, result) => {
                    if let Some(reply) = waiting.remove(&id) {
                        let _ = reply.send(result);
                    }
                }
                Notice::Event(event) => {
                    if events.send(event).await.is_err() {
                        return;
                    }
                }
                Notice::Ended(_) => return,
                Notice::Ready(_) => {}
            }
        }
        tokio::select! {
            () = read(&mut stream, &mut machine, &mut notices) => {}
            call = calls.recv() => {
                let Some(Call { method, params, reply }) = call else { return };
                match machine.call(&method, params) {
                    Ok((id, line)) => {
                        waiting.insert(id, reply);
                        if stream.write_all(&line).await.is_err() {
                            machine.closed(&mut notices);
                        }
                    }
                    Err(error) => drop(reply.send(Err(error))),
                }
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let once = std::env::args().any(|argument| argument == "--once");
    let home = Home::from_env().ok_or("neither $MESSAGING_HOME nor $HOME is set")?;
    let key = b64u::encode(&Entropy::new().draw()?);
    let (sender, mut events) = mpsc::channel(64);
    let daemon = Daemon::connect(&Options::agent(home), sender).await?;
    let register = json!({"key": key, "name": "tokio", "agent": "tokio", "tier": "push"});
    let session = daemon.call("session.register", register).await?;
    println!("registered as {}", session["address"].as_str().unwrap_or_default());
    let contacts = daemon.call("contacts.list", json!({})).await?;
    for entry in contacts["entries"].as_array().into_iter().flatten() {
        println!(
            "{} is {}",
            entry["address"].as_str().unwrap_or_default(),
            entry["state"].as_str().unwrap_or_default()
        );
    }
    if once {
        daemon.call("session.unregister", json!({"key": key, "keep": false})).await?;
        return Ok(());
    }
    daemon.call("events.subscribe", json!({ "key": key })).await?;
    while let Some(event) = events.recv().await {
        if event["type"] == "inbox" {
            let item = &event["item"];
            let preview = clean_peer_text(item["preview"].as_str().unwrap_or_default(), Some(200));
            println!("{}: {preview}", item["from"]["address"].as_str().unwrap_or_default());
            let ids = json!([item["id"]]);
            daemon.call("inbox.ack", json!({"key": key, "ids": ids, "stage": "handed_to_agent"})).await?;
        }
    }
    Ok(())
}
