//! `--messages`: the messages that a target with a socket receives and sends in one run.

use super::args::Args;
use super::{MIN_TIMEOUT_MS, input, to_file};
use crate::cmd::exit::Failure;
use crate::cmd::tool::{self, Scratch, ToolTarget};
use crate::config::env::Environment;
use crate::engine::executor::ExitKind;
use crate::exec::FreshOptions;

pub(super) fn run(args: &mut Args, environment: &Environment) -> Result<u8, Failure> {
    if args.target.net.is_none() {
        let remedy = "name the socket of the target, for example --net tcp:80";
        return Err(Failure::new(
            "--messages needs a target whose inputs come over a socket",
            remedy,
        ));
    }
    let input = input(args)?;
    let scratch = Scratch::new("showmap", None);
    tool::exit_on_signals(&[&scratch], None);
    let timeout = args.target.timeout(MIN_TIMEOUT_MS, tool::NO_TIMEOUT)?;
    let mut wanted = ToolTarget::new(&args.target, &scratch, timeout);
    wanted.any_program = true;
    let (_, mut target) = wanted.start_fresh(environment)?;
    let ended = target.run(&input, FreshOptions::within(timeout)).map_err(tool::failure)?;
    let session = ended.session.unwrap_or_default().to_string();
    tool::print(session.as_bytes(), to_file(args.output()))?;
    tool::report(ended.exit, None, args.quiet);
    Ok(match ended.exit {
        ExitKind::Ok => 0,
        ExitKind::Hang | ExitKind::Cut => super::TIMED_OUT,
        _ => super::CRASHED,
    })
}
