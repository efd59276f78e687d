//! `completions` and `man`: files generated from the table of verbs.

use super::args::{Completions, Man};
use super::failure::Failure;
use super::shell::Shell;
use super::value::{array, object, string};
use super::verbs::{complete, man, table};

pub(super) fn completions(shell: &Shell, args: &Completions) -> Result<(), Failure> {
    let root = table();
    let script = match args.shell.as_str() {
        "bash" => complete::bash(&root),
        "zsh" => complete::zsh(&root),
        "fish" => complete::fish(&root),
        _ => {
            return Err(Failure::usage("completions exist for bash, zsh and fish")
                .with_remedy("run `messaging completions bash`, or with zsh or fish."));
        }
    };
    shell.out.verbatim(&object([("shell", string(&args.shell)), ("script", string(&script))]), &script);
    Ok(())
}

pub(super) fn pages(shell: &Shell, args: &Man) -> Result<(), Failure> {
    let cannot = || Failure::usage("the folder cannot be written").with_remedy("name a folder of yours.");
    std::fs::create_dir_all(&args.folder).map_err(|_| cannot())?;
    let pages = man::pages(&table());
    for (name, text) in &pages {
        std::fs::write(args.folder.join(name), text).map_err(|_| cannot())?;
    }
    let names = array(pages.iter().map(|(name, _)| string(name)));
    let folder = args.folder.display().to_string();
    shell.out.result(&object([("folder", string(&folder)), ("pages", names)]), || {
        format!("{} pages are in {folder}. Read one:\n    man -l {folder}/messaging.1", pages.len())
    });
    Ok(())
}
