//! What the operating system says of this process. Linux only; elsewhere the families are left out.

/// Figures of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::relay) struct Process {
    /// Resident memory in bytes.
    pub(in crate::relay) resident_bytes: Option<u64>,
    /// Open file descriptors.
    pub(in crate::relay) open_fds: Option<u64>,
    /// Seconds since 1970 at which it started.
    pub(in crate::relay) start_seconds: Option<u64>,
}

impl Process {
    /// Reads them.
    pub(in crate::relay) fn read() -> Self {
        let read = |path| std::fs::read_to_string(path).ok();
        Self {
            resident_bytes: read("/proc/self/statm")
                .and_then(|statm| resident_pages(&statm))
                .map(|pages| pages.saturating_mul(rustix::param::page_size() as u64)),
            open_fds: std::fs::read_dir("/proc/self/fd").ok().map(|fds| fds.count() as u64),
            start_seconds: read("/proc/self/stat").and_then(|stat| start_ticks(&stat)).and_then(|ticks| {
                let booted = boot_seconds(&read("/proc/stat")?)?;
                Some(booted + ticks / rustix::param::clock_ticks_per_second())
            }),
        }
    }
}

fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Field 22; the name in field 2 can hold spaces and parentheses.
fn start_ticks(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn boot_seconds(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_plausible() {
        let process = Process::read();
        assert!(process.resident_bytes.unwrap() > 100_000);
        assert!(process.open_fds.unwrap() > 2);
        let now = crate::clock::wall().0 / 1_000;
        let start = process.start_seconds.unwrap();
        assert!(start <= now + 2 && start + 3_600 > now, "{start} {now}");
    }

    #[test]
    fn a_name_with_parentheses_is_skipped() {
        let fields: Vec<String> = (3..30).map(|field| field.to_string()).collect();
        assert_eq!(start_ticks(&format!("1 (a) b) {}", fields.join(" "))), Some(22));
    }
}
