//! The fence around peer text for a model (`messaging/1 §12`; contract ipc §9).

use super::points::{LF, Points, TAB, is_hidden_at, push, push_label, with_plain_breaks};
use super::reading::{
    is_closer, is_hidden, is_mark, is_opener, is_separator, is_slash, is_spacing, read, read_all,
};
use super::tables::HOST_TAGS;

/// The first word of the fence's tag. Peer text that opens anything with it is neutralised.
const OWN_WORD: &[u8; 9] = b"messaging";

/// RFC 4648 base32, in lower case.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// More letters than any name that could be on the list.
const LONGEST_NAME: usize = 64;

/// Fences a text (`createFence`): a tag with a nonce and the attributes, the neutralised text, the closing tag.
///
/// `attrs` are names of ours and values of a peer, in order. `draw` gives ten fresh random bytes each time: it is
/// asked again while the text or the values could be read as the nonce, so it must not repeat itself.
pub fn create_fence<T: Points + ?Sized>(
    attrs: &[(&str, &str)],
    text: &T,
    mut draw: impl FnMut() -> [u8; 10],
) -> String {
    let body = text.points();
    let mut letters = Vec::with_capacity(body.len());
    read_all(&body, &mut letters);
    attrs.iter().for_each(|(_, value)| read_all(&value.points(), &mut letters));
    let nonce = loop {
        let nonce = base32(draw());
        if !letters.windows(nonce.len()).any(|window| window == nonce.as_bytes()) {
            break nonce;
        }
    };
    let mut out = String::with_capacity(body.len() + 128);
    out.push_str("<messaging-peer-");
    out.push_str(&nonce);
    for (name, value) in attrs {
        out.push(' ');
        out.push_str(name);
        out.push_str("=\"");
        push_value(&mut out, value);
        out.push('"');
    }
    out.push_str(">\n");
    push_neutralised(&mut out, with_plain_breaks(body));
    out.push_str("\n</messaging-peer-");
    out.push_str(&nonce);
    out.push('>');
    out
}

/// The letters and digits a text reads as (`letters`, contract ipc §9.2): what a reader could take it for.
pub fn letters<T: Points + ?Sized>(text: &T) -> String {
    let mut letters = Vec::new();
    read_all(&text.points(), &mut letters);
    letters.into_iter().map(char::from).collect()
}

/// The text of a fence's inside: no tag of the fence, no tag of a host, and every hidden point labelled.
pub fn neutralise<T: Points + ?Sized>(text: &T) -> String {
    let points = with_plain_breaks(text.points());
    let mut out = String::with_capacity(points.len());
    push_neutralised(&mut out, points);
    out
}

fn push_neutralised(out: &mut String, points: Vec<u32>) {
    let flagged = flagged_openers(&points);
    let mut flagged = flagged.iter().rev().peekable();
    for (at, point) in points.iter().copied().enumerate() {
        if flagged.next_if(|opener| **opener == at).is_some() {
            out.push_str("&lt;");
        } else if is_hidden_at(&points, at) {
            push_label(out, point);
        } else {
            push(out, point);
        }
    }
}

/// The positions of the openers to neutralise, last first. Judged on the text as it is, in one walk from its end:
/// the walk knows the letters that follow, and an opener ends the look at the tag before it.
fn flagged_openers(points: &[u32]) -> Vec<usize> {
    let mut flagged = Vec::new();
    let mut following = Following::default();
    for (at, point) in points.iter().copied().enumerate().rev() {
        if is_opener(point) {
            let after = points.get(at + 1..).unwrap_or_default();
            if following.begins_with_own_word() || opens_host_tag(after) {
                flagged.push(at);
            }
        }
        following.put_before(point);
    }
    flagged
}

/// The next letters of a text from some point on, everything but `a`–`z` skipped.
#[derive(Default)]
struct Following {
    letters: [u8; OWN_WORD.len()],
}

impl Following {
    fn begins_with_own_word(&self) -> bool {
        self.letters == *OWN_WORD
    }

    fn put_before(&mut self, point: u32) {
        let mut read_as = [0; OWN_WORD.len()];
        let mut count = 0;
        read(point, |letter| {
            if letter.is_ascii_lowercase() {
                if let Some(slot) = read_as.get_mut(count) {
                    *slot = letter;
                }
                count += 1;
            }
        });
        let count = count.min(read_as.len());
        self.letters.rotate_right(count);
        self.letters.iter_mut().zip(read_as).take(count).for_each(|(slot, letter)| *slot = letter);
    }
}

/// Whether what follows an opener makes it a tag of a host.
fn opens_host_tag(after: &[u32]) -> bool {
    let unseen = |point: &u32| is_hidden(*point) || is_mark(*point);
    let mut rest = after.iter().copied().skip_while(unseen).peekable();
    if rest.next_if(|point| is_slash(*point)).is_some() {
        while rest.next_if(unseen).is_some() {}
    }
    let mut name = Name::default();
    // The name begins here or there is none.
    let Some(true) = rest.next().map(|point| name.add(point)) else { return false };
    for point in rest {
        let inside = name.add(point) || is_separator(point) || unseen(&point);
        if is_spacing(point) || !inside {
            return (is_spacing(point) || is_slash(point) || is_closer(point)) && name.is_host_tag();
        }
    }
    name.is_host_tag()
}

/// A tag's name as it reads, cut where it is too long to be on the list.
#[derive(Default)]
struct Name(Vec<u8>);

impl Name {
    /// Appends what a point reads as; whether that is anything.
    fn add(&mut self, point: u32) -> bool {
        let mut any = false;
        read(point, |letter| {
            any = true;
            if self.0.len() < LONGEST_NAME {
                self.0.push(letter);
            }
        });
        any
    }

    fn is_host_tag(&self) -> bool {
        HOST_TAGS.iter().any(|tag| match tag.strip_suffix('*') {
            Some(start) => self.0.starts_with(start.as_bytes()),
            None => tag.bytes().filter(|byte| !is_separator(u32::from(*byte))).eq(self.0.iter().copied()),
        })
    }
}

/// An attribute's value: hidden points labelled, one line, entities for what could end it.
fn push_value(out: &mut String, value: &str) {
    let points = value.points();
    for (at, point) in points.iter().copied().enumerate() {
        match point {
            _ if is_hidden_at(&points, at) => push_label(out, point),
            LF | TAB => out.push(' '),
            0x26 => out.push_str("&amp;"),
            0x3C => out.push_str("&lt;"),
            0x3E => out.push_str("&gt;"),
            0x22 => out.push_str("&quot;"),
            0x27 => out.push_str("&#39;"),
            _ => push(out, point),
        }
    }
}

/// Ten bytes as sixteen characters.
fn base32(bytes: [u8; 10]) -> String {
    let bits = bytes.iter().fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
    (0..16)
        .rev()
        .map(|digit| {
            ALPHABET.get((bits >> (5 * digit)) as usize & 31).map_or('a', |letter| char::from(*letter))
        })
        .collect()
}
