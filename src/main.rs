//! The one executable. Which command runs is decided by the program's own name or its first
//! argument (see [`ffuzz::cmd`]).

fn main() -> std::process::ExitCode {
    ffuzz::cmd::main(std::env::args_os().collect())
}
