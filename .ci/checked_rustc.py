#!/usr/bin/env python3
"""Compiles a crate of ours with clippy's lints and documents it, in one pass.

    RUSTC_WORKSPACE_WRAPPER=.ci/checked_rustc.py cargo test --workspace

`cargo clippy` and `cargo doc` need the crates of others in a second form, without code: from cold that is a third of the
time of all builds. Clippy's compiler makes code as well, and rustdoc reads what the test build has. So cargo calls this
program for each crate of the workspace, with the path of rustc and its arguments:

    /path/to/rustc --crate-name inlay_engine --edition=2024 engine/src/lib.rs --crate-type lib --extern …

A warning of clippy or of rustdoc fails the crate. The documentation is that of `cargo doc`, in the same folder; tests,
benches and build scripts are linted only.

Clippy's compiler names the workspace's manifest and clippy's own settings as inputs of each crate. Cargo records them by
their absolute paths, which a later clone does not have, and would compile everything again there: they are taken out of
the list. `unchanged.py` compiles everything again when one of these files changed.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

# Arguments that rustdoc takes as rustc does; those of the second list have their value behind them.
SAME = ("--edition=", "--allow=", "--warn=", "--deny=", "--forbid=", "--cap-lints", "--sysroot")
SAME_WITH_VALUE = ("--crate-name", "--crate-type", "--cfg", "--check-cfg", "--extern", "-L", "--cap-lints", "--target")
# For both. In the environment cargo would find another value than at the last build, and compile again.
LINTS = ["-D", "warnings"]
# By the names that clippy's compiler gives them.
SETTINGS = re.compile(r"Cargo\.toml|(.*/)?\.?clippy\.toml")


def documentation(arguments, directory):
    """The arguments of rustdoc for a crate, or none for one that has no documentation."""
    chosen, at, source, name = [], 0, None, None
    while at < len(arguments):
        argument = arguments[at]
        following = arguments[at + 1] if at + 1 < len(arguments) else ""
        at += 1
        if argument == "--test" or (argument, following) == ("--cfg", "test"):
            return None
        if argument in SAME_WITH_VALUE:
            chosen += [argument, following]
            name = following if argument == "--crate-name" else name
            at += 1
        elif argument.startswith(SAME):
            chosen.append(argument)
        elif argument.endswith(".rs") and not argument.startswith("-"):
            source = argument
    if source is None or name is None or name.startswith("build_script_"):
        return None
    return [*LINTS, "--document-private-items", "-o", str(directory), *chosen, source]


def value(arguments, option):
    """The value behind an option of the compiler."""
    return next((following for name, following in zip(arguments, arguments[1:]) if name == option), None)


def dependencies_file(arguments):
    """The path of the list of a crate's inputs, or none where the compiler writes none."""
    directory, name = value(arguments, "--out-dir"), value(arguments, "--crate-name")
    suffix = [argument.partition("=")[2] for argument in arguments if argument.startswith("extra-filename=")]
    return Path(directory, f"{name}{''.join(suffix)}.d") if directory and name else None


def without_settings(text):
    """The list of inputs without the files that concern all crates.

    >>> without_settings("/t/one.d: /clone/.clippy.toml one/src/lib.rs Cargo.toml\\n\\nCargo.toml:\\n")
    '/t/one.d: one/src/lib.rs\\n\\n'
    """
    lines = [line for line in text.split("\n") if not SETTINGS.fullmatch(line.removesuffix(":"))]
    return "\n".join(" ".join(part for part in line.split(" ") if not SETTINGS.fullmatch(part)) for line in lines)


def main():
    rustc, *arguments = sys.argv[1:]
    tools = Path(rustc).parent if os.sep in rustc else Path()
    # Open descriptors are those by which cargo shares the cores among compilers.
    lints = [] if "-vV" in arguments else LINTS
    compiler = subprocess.Popen([tools / "clippy-driver", rustc, *arguments, *lints], close_fds=False)
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    documented = documentation(arguments, Path(target, "doc"))
    rustdoc = documented and subprocess.Popen(
        [tools / "rustdoc", *documented], stdout=subprocess.DEVNULL, close_fds=False
    )
    status = compiler.wait()
    inputs = dependencies_file(arguments)
    if status == 0 and inputs and inputs.exists():
        inputs.write_text(without_settings(inputs.read_text()))
    if rustdoc and rustdoc.wait() != 0:
        status = status or 1
    sys.exit(status)


if __name__ == "__main__":
    main()
