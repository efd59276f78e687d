//! Numbers (W6).

use super::{Scanner, Token};

/// The largest magnitude an I-JSON integer may have.
pub(in crate::json) const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

impl Scanner<'_> {
    /// A number (W6); its value is the nearest double.
    pub(super) fn number(&mut self) -> Option<()> {
        let start = self.at;
        let negative = self.eat(b'-');
        let first = self.at;
        let mut integer: u64 = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            integer = integer.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        let digits = self.at - first;
        if digits == 0 || (digits > 1 && self.bytes.get(first) == Some(&b'0')) {
            return None;
        }
        let mut whole = true;
        if self.eat(b'.') {
            whole = false;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let value = if whole && digits <= 15 {
            // Fewer digits than a double holds: the integer is exact, and so is its canonical text.
            if negative && integer == 0 {
                self.canonical = false;
            }
            #[allow(clippy::cast_precision_loss)]
            let magnitude = integer as f64;
            if negative { -magnitude } else { magnitude }
        } else {
            let text = self.text.get(start..self.at)?;
            let value: f64 = text.parse().ok()?;
            self.canonical = self.canonical && is_canonical_number(text, value);
            value
        };
        self.tokens.push(Token::Number(value));
        Some(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

/// Whether `text` is how canonical text writes `value`, which must be I-JSON.
fn is_canonical_number(text: &str, value: f64) -> bool {
    // Longer than any canonical number: not worth formatting.
    text.len() <= 32 && value.abs() <= SAFE_INTEGER && ryu_js::Buffer::new().format_finite(value) == text
}
