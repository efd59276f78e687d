//! Which sockets to drop when too much waits to be sent (`messaging/1 §7`, "Limits").

use super::io::ConnId;

/// The sockets to drop so that what remains is at most three quarters of `limit`: the furthest behind, largest
/// first; among equals the older connection. None while the total is within `limit`.
#[must_use]
pub fn furthest_behind(buffers: &[(ConnId, u64)], limit: u64) -> Vec<ConnId> {
    let mut total: u64 = buffers.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes));
    if total <= limit {
        return Vec::new();
    }
    let goal = limit - limit / 4;
    let mut largest = buffers.to_vec();
    largest.sort_by_key(|(conn, bytes)| (std::cmp::Reverse(*bytes), *conn));
    let mut dropped = Vec::new();
    for (conn, bytes) in largest {
        if total <= goal {
            break;
        }
        total = total.saturating_sub(bytes);
        dropped.push(conn);
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conns(numbers: &[u64]) -> Vec<ConnId> {
        numbers.iter().copied().map(ConnId).collect()
    }

    #[test]
    fn drops_the_largest_until_three_quarters_remain() {
        let buffers: Vec<_> = [(1, 10), (2, 50), (3, 20), (4, 21)].map(|(c, b)| (ConnId(c), b)).into();
        assert_eq!(furthest_behind(&buffers, 101), []);
        assert_eq!(furthest_behind(&buffers, 100), conns(&[2]));
        assert_eq!(furthest_behind(&buffers, 60), conns(&[2, 4]));
        assert_eq!(furthest_behind(&buffers, 1), conns(&[2, 4, 3, 1]));
        assert_eq!(furthest_behind(&[], 1), []);
    }

    #[test]
    fn equals_go_by_age() {
        let buffers: Vec<_> = [(9, 5), (3, 5), (4, 5)].map(|(c, b)| (ConnId(c), b)).into();
        assert_eq!(furthest_behind(&buffers, 14), conns(&[3]), "10 of 14 is within three quarters");
    }
}
