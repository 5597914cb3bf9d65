//! The binary: every verb, with no tasks of its own.

fn main() -> std::process::ExitCode {
    threadmill::cli::main()
}
