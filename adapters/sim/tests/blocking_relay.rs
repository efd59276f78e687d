//! The example of a relay in a plain blocking loop, run.
#![allow(clippy::unwrap_used, unreachable_pub)]

#[path = "../examples/blocking_relay.rs"]
mod example;

use messaging_machines::relay::Config;
use messaging_machines::relay::io::Event;
use messaging_sim::{json, text};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn the_example_challenges_answers_and_stops() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, news) = channel();
    let events = sender.clone();
    std::thread::spawn(move || example::accept(&listener, &events));
    let relay = std::thread::spawn(move || example::serve(Config::new("ws://127.0.0.1"), &news));
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    let challenge = json(&lines.next().unwrap().unwrap());
    assert_eq!((text(&challenge, "t"), text(&challenge, "relay")), ("challenge", "ws://127.0.0.1"));
    // Whoever says anything but `hello` first is told so, and closed.
    (&socket).write_all(b"{\"t\":\"send\",\"env\":{}}\n").unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(rest.iter().any(|line| line.contains("\"t\":\"error\"")), "{rest:?}");
    sender.send(example::News::Event(Event::Stop)).unwrap();
    relay.join().unwrap().unwrap();
}
