//! `messaging demo`: a relay and two daemons as real processes on loopback, one short exchange, a timeline.

mod processes;
mod story;
mod timeline;

use crate::cli::{Demo, Failure, Shell, before_end};
use processes::World;
use timeline::Timeline;

/// Runs the demonstration.
pub(crate) fn run(shell: &Shell, args: &Demo) -> Result<(), Failure> {
    let timeline = Timeline::start(shell.out);
    let folder = tempfile::Builder::new()
        .prefix("messaging-demo-")
        .tempdir()
        .map_err(|_| Failure::new("internal", "no temporary folder can be made"))?;
    let mut world = World::new(folder.path());
    let (processes, path) = (world.processes(), folder.path().to_owned());
    before_end(move || {
        // Held to the end: no process is started after this, and nothing is said of what ends by it.
        let mut processes = processes.lock();
        processes.stop();
        let _ = std::fs::remove_dir_all(path);
        std::mem::forget(processes);
    });
    timeline.note("starting a relay and two daemons on this machine");
    world.start()?;
    let told = story::tell(&world, &timeline);
    if args.keep && told.is_ok() {
        // The folder outlives this process on purpose.
        let folder = folder.keep();
        timeline.summary(told?);
        timeline.keep(&world, &folder);
        world.keep();
        return Ok(());
    }
    world.stop();
    timeline.summary(told?);
    Ok(())
}
