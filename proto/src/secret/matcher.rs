//! How a row of the table is looked for: in linear time, and without going back.
//!
//! No repeated set of a row holds a character that may follow it, so the longest run is the only one that can
//! match, and a start matches or not without trying shorter ones.

use super::pem;

/// A set of ASCII bytes.
pub(super) type Set = fn(u8) -> bool;

/// One row: a kind of credential and what it looks like.
pub(super) struct Row {
    pub(super) kind: &'static str,
    pub(super) shape: Shape,
}

pub(super) enum Shape {
    /// A private key block.
    Pem,
    /// One token, perhaps behind a name.
    Token(Token),
}

pub(super) struct Token {
    /// Whether no letter or digit may stand before it.
    pub(super) alone: bool,
    /// Whether its start is read in any case.
    pub(super) any_case: bool,
    /// How it starts: one of these.
    pub(super) starts: &'static [&'static str],
    /// What follows the start.
    pub(super) rest: &'static [Piece],
    /// The part that is secret.
    pub(super) tail: Tail,
    /// How many of digits, lower-case and upper-case letters the tail must hold.
    pub(super) mix: usize,
    /// What must not follow the tail.
    pub(super) ended_by_other_than: Option<Set>,
    /// How the tail of a published example ends.
    pub(super) example: Option<&'static str>,
}

pub(super) enum Piece {
    /// Exactly this.
    Text(&'static str),
    /// This in any case.
    AnyCase(&'static str),
    /// The first of these that is there, in any case.
    OneOfAnyCase(&'static [&'static str]),
    /// One of the set, if it is there.
    Maybe(Set),
    /// So many of the set, as many as there are.
    Run(Set, usize, usize),
}

/// So many of the set, as many as there are.
pub(super) struct Tail {
    pub(super) set: Set,
    pub(super) min: usize,
    pub(super) max: usize,
}

impl Row {
    /// Whether the row matches anywhere.
    pub(super) fn is_in(&self, text: &str) -> bool {
        match &self.shape {
            Shape::Pem => pem::is_in(text),
            Shape::Token(token) => {
                token.starts.iter().any(|start| Search::new(token, text.as_bytes()).finds(start))
            }
        }
    }
}

/// The look for one token that starts in one way.
struct Search<'a> {
    token: &'a Token,
    text: &'a [u8],
    /// For each piece and the tail, the last run that was measured: many starts may share one.
    runs: Vec<(usize, usize)>,
}

impl<'a> Search<'a> {
    fn new(token: &'a Token, text: &'a [u8]) -> Self {
        Self { token, text, runs: vec![(0, 0); token.rest.len() + 1] }
    }

    fn finds(&mut self, start: &str) -> bool {
        let mut from = 0;
        while let Some(at) = self.next_start(start, from) {
            if self.matches(at, at + start.len()) {
                return true;
            }
            // A match that is no credential is passed over, and the look goes on behind where it starts.
            from = at + 1;
        }
        false
    }

    fn next_start(&self, start: &str, from: usize) -> Option<usize> {
        let rest = self.text.get(from..)?;
        let is_start = |window: &[u8]| equal(window, start, self.token.any_case);
        rest.windows(start.len()).position(is_start).map(|at| from + at)
    }

    /// Whether a credential starts at `start` and goes on at `at`.
    fn matches(&mut self, start: usize, mut at: usize) -> bool {
        let before = start.checked_sub(1).and_then(|at| self.text.get(at));
        if self.token.alone && before.is_some_and(u8::is_ascii_alphanumeric) {
            return false;
        }
        for (index, piece) in self.token.rest.iter().enumerate() {
            match self.after(index, piece, at) {
                Some(next) => at = next,
                None => return false,
            }
        }
        let tail = &self.token.tail;
        let end = self.run_end(self.token.rest.len(), tail.set, at).min(at + tail.max);
        let secret = self.text.get(at..end).unwrap_or_default();
        let follows = self.text.get(end).copied();
        secret.len() >= tail.min
            && !self.token.ended_by_other_than.is_some_and(|set| follows.is_some_and(set))
            && mixes(secret, self.token.mix)
            && !self.token.example.is_some_and(|example| secret.ends_with(example.as_bytes()))
    }

    /// Where a piece that begins at `at` ends.
    fn after(&mut self, index: usize, piece: &Piece, at: usize) -> Option<usize> {
        let rest = self.text.get(at..)?;
        let starts = |word: &str, any_case| {
            rest.get(..word.len()).is_some_and(|head| equal(head, word, any_case)).then_some(at + word.len())
        };
        match piece {
            Piece::Text(word) => starts(word, false),
            Piece::AnyCase(word) => starts(word, true),
            Piece::OneOfAnyCase(words) => words.iter().find_map(|word| starts(word, true)),
            Piece::Maybe(set) => Some(at + usize::from(rest.first().copied().is_some_and(set))),
            Piece::Run(set, min, max) => {
                let end = self.run_end(index, *set, at).min(at + max);
                (end - at >= *min).then_some(end)
            }
        }
    }

    /// Where the run of the set that holds `at` ends; `at` itself when it is in none.
    fn run_end(&mut self, index: usize, set: Set, at: usize) -> usize {
        let text = self.text;
        let measure = || at + text.iter().skip(at).take_while(|byte| set(**byte)).count();
        let Some(run) = self.runs.get_mut(index) else { return measure() };
        if !(run.0..run.1).contains(&at) {
            *run = (at, measure());
        }
        run.1
    }
}

fn equal(bytes: &[u8], word: &str, any_case: bool) -> bool {
    if any_case { bytes.eq_ignore_ascii_case(word.as_bytes()) } else { bytes == word.as_bytes() }
}

/// Whether the secret holds at least `classes` of digits, lower-case and upper-case letters.
fn mixes(secret: &[u8], classes: usize) -> bool {
    let has = |set: fn(&u8) -> bool| usize::from(secret.iter().any(set));
    let mut held = has(u8::is_ascii_digit);
    held += has(u8::is_ascii_lowercase);
    held += has(u8::is_ascii_uppercase);
    held >= classes
}
