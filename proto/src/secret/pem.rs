//! Private key blocks: a header line, perhaps lines of attributes, and key material in lines of any length.
//!
//! Every part ends where the next one cannot have begun, so the one way to read it forward is the only one.

/// How much key material makes a key; a header alone is none.
const MATERIAL: usize = 40;
/// The most blanks on either side of a line break.
const BLANKS: usize = 16;

/// Whether a private key block is anywhere in the text.
pub(super) fn is_in(text: &str) -> bool {
    text.match_indices("-----BEGIN ")
        .any(|(at, head)| text.get(at + head.len()..).is_some_and(|rest| Reader { rest }.holds_key()))
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn holds_key(mut self) -> bool {
        if !self.title() || !self.breaks(1, 4) {
            return false;
        }
        for _ in 0..8 {
            if !self.attribute() {
                break;
            }
        }
        for letter in 0..MATERIAL {
            if !self.one(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)) {
                return false;
            }
            // Breaks after the last one are no part of what is looked for.
            if letter + 1 < MATERIAL && !self.breaks(0, 2) {
                return false;
            }
        }
        true
    }

    /// Up to four words, then what the block is.
    fn title(&mut self) -> bool {
        for _ in 0..=4 {
            if let Some(rest) = self.rest.strip_prefix("PRIVATE KEY") {
                let rest = rest.strip_prefix(" BLOCK").unwrap_or(rest);
                if let Some(rest) = rest.strip_prefix("-----") {
                    self.rest = rest;
                    return true;
                }
            }
            if !self.word() {
                return false;
            }
        }
        false
    }

    /// A word of 1 to 20 capitals and digits, and the space behind it.
    fn word(&mut self) -> bool {
        let long = count(self.rest, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        let rest = self.rest.get(long..).and_then(|rest| rest.strip_prefix(' '));
        match rest {
            Some(rest) if (1..=20).contains(&long) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// `Name: value` and the breaks behind it; nothing is read where there is none.
    fn attribute(&mut self) -> bool {
        let name = count(self.rest, |byte| byte.is_ascii_alphabetic() || byte == b'-');
        let begins = self.rest.starts_with(|first: char| first.is_ascii_alphabetic());
        let value = self.rest.get(name..).and_then(|rest| rest.strip_prefix(": "));
        let Some(value) = value.filter(|_| begins && name <= 32) else { return false };
        let line = value.find(['\r', '\n', '\\']).and_then(|end| value.split_at_checked(end));
        let Some((line, behind)) = line else { return false };
        // The last blanks may count to the break.
        let bare = line.trim_end_matches([' ', '\t']);
        let blanks = (line.len() - bare.len()).min(BLANKS);
        if line.chars().count() - blanks > 200 {
            return false;
        }
        let mut after = Reader { rest: behind };
        if !after.breaks(1, 4) {
            return false;
        }
        self.rest = after.rest;
        true
    }

    /// From `min` to `max` line breaks, real or escaped, with blanks around each. As many as there are.
    fn breaks(&mut self, min: usize, max: usize) -> bool {
        let mut found = 0;
        // Blanks between two breaks are half the one's and half the other's.
        let mut room = BLANKS;
        while found < max {
            let blanks = count(self.rest, |byte| byte == b' ' || byte == b'\t');
            let Some(rest) = self.rest.get(blanks..).and_then(strip_break).filter(|_| blanks <= room) else {
                break;
            };
            self.rest = rest;
            found += 1;
            room = 2 * BLANKS;
        }
        if found > 0 {
            let blanks = count(self.rest, |byte| byte == b' ' || byte == b'\t').min(BLANKS);
            self.rest = self.rest.get(blanks..).unwrap_or_default();
        }
        found >= min
    }

    fn one(&mut self, set: fn(u8) -> bool) -> bool {
        match self.rest.as_bytes().first() {
            Some(byte) if byte.is_ascii() && set(*byte) => {
                self.rest = self.rest.get(1..).unwrap_or_default();
                true
            }
            _ => false,
        }
    }
}

fn strip_break(text: &str) -> Option<&str> {
    ["\r\n", "\n", "\r", "\\r\\n", "\\n", "\\r"].into_iter().find_map(|form| text.strip_prefix(form))
}

fn count(text: &str, set: fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| set(*byte)).count()
}
