//! Makes a failing plan small: items are left out as long as the same thing still fails, then times move together.

use crate::plan::Plan;

/// The smallest plan found that still `fails`, within `tries` runs. `plan` itself must fail.
pub fn shrink(plan: &Plan, tries: usize, mut fails: impl FnMut(&Plan) -> bool) -> Plan {
    let mut best = plan.clone();
    let mut left = tries;
    let mut try_one = |candidate: &Plan| {
        left = left.saturating_sub(1);
        (left > 0).then(|| fails(candidate))
    };
    let mut chunk = best.items.len().div_ceil(2).max(1);
    loop {
        let before = best.items.len();
        let mut from = 0;
        while from < best.items.len() {
            let to = (from + chunk).min(best.items.len());
            let mut candidate = best.clone();
            candidate.items.drain(from..to);
            match try_one(&candidate) {
                Some(true) => best = candidate,
                Some(false) => from = to,
                None => return best,
            }
        }
        if chunk == 1 && best.items.len() == before {
            break;
        }
        chunk = chunk.div_ceil(2).max(1);
    }
    // Gaps that play no part close.
    for place in 0..best.items.len() {
        let start = if place == 0 { 0 } else { best.items[place - 1].at };
        let gap = best.items[place].at - start;
        for shorter in [0, 1_000, 60_000] {
            if shorter >= gap {
                break;
            }
            let mut candidate = best.clone();
            for item in &mut candidate.items[place..] {
                item.at = item.at - gap + shorter;
            }
            match try_one(&candidate) {
                Some(true) => {
                    best = candidate;
                    break;
                }
                Some(false) => {}
                None => return best,
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Act, Head, Item};

    #[test]
    fn two_items_of_many_are_found() {
        let head = Head { seed: 1, machines: vec!["a/b".to_owned()] };
        let items =
            (0..40).map(|number| Item { at: number * 5_000, act: Act::Woke { node: number as usize } });
        let plan = Plan { head, items: items.collect() };
        let has = |plan: &Plan, node| plan.items.iter().any(|item| item.act == Act::Woke { node });
        let small = shrink(&plan, 500, |plan| has(plan, 7) && has(plan, 31));
        let times: Vec<u64> = small.items.iter().map(|item| item.at).collect();
        assert_eq!((small.items.len(), times), (2, vec![0, 0]));
    }
}
