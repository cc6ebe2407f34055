//! `cargo tool dist`: the archive for users who do not compile.
//!
//! `cargo tool dist` builds the server in release and writes, under `target/dist`,
//! `inlay-0.1.0-x86_64-linux.tar.gz` with the binary, the licences, a systemd unit, the manual and the
//! completions of shells, and beside it a `.sha256` that `sha256sum --check` reads. `cargo tool dist
//! --binary PATH` packs a binary that is already there.
//!
//! The same commit gives the same bytes, wherever it was built by the same compiler: paths of the machine
//! are replaced in what compilers write, and entries of the archive are sorted, belong to root and carry
//! the time of the commit.
//!
//! ```text
//! inlay-0.1.0-x86_64-linux/LICENSE
//! inlay-0.1.0-x86_64-linux/THIRD-PARTY-LICENSES.txt
//! inlay-0.1.0-x86_64-linux/completions/_inlay            and inlay.bash, inlay.fish
//! inlay-0.1.0-x86_64-linux/inlay                         mode 755; all others 644
//! inlay-0.1.0-x86_64-linux/man/man1/inlay.1              and one for each command
//! inlay-0.1.0-x86_64-linux/operations.md
//! inlay-0.1.0-x86_64-linux/systemd/inlay.service
//! ```

#![expect(
    clippy::disallowed_methods,
    reason = "a tool of the workspace reads and writes its files"
)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail, ensure};
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};

use crate::licenses;

/// Files of the archive that are copied as they are: from the repository, and where to.
const COPIED: [(&str, &str); 3] = [
    ("LICENSE", "LICENSE"),
    ("server/dist/inlay.service", "systemd/inlay.service"),
    ("server/doc/operations.md", "operations.md"),
];

/// Completions, by the shell's name and the file name that the shell looks for.
const SHELLS: [(&str, &str); 3] =
    [("bash", "inlay.bash"), ("zsh", "_inlay"), ("fish", "inlay.fish")];

/// An entry of the archive; a program gets mode 755.
struct Entry {
    bytes: Vec<u8>,
    is_program: bool,
}

/// Writes the archive and its checksum; says where. With `binary` nothing is built, and manual and completions come from that one.
///
/// Errors: the build fails, a file is missing, or the binary cannot print manual and completions.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub fn run(root: &Path, binary: Option<&Path>) -> anyhow::Result<()> {
    let metadata = licenses::metadata(root)?;
    let output = metadata.target_directory()?.join("dist");
    let binary = match binary {
        Some(binary) => binary.to_owned(),
        None => build(root, &output.join("build"))?,
    };
    let version = metadata.version("inlay")?;
    let name = format!("inlay-{version}-{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let mut entries = BTreeMap::new();
    for (from, to) in COPIED {
        entries.insert(to.to_owned(), file(&root.join(from))?);
    }
    let licenses = licenses::third_party(root, &metadata)?.into_bytes();
    entries.insert(
        "THIRD-PARTY-LICENSES.txt".to_owned(),
        Entry { bytes: licenses, is_program: false },
    );
    entries.insert("inlay".to_owned(), Entry { is_program: true, ..file(&binary)? });
    for (shell, file) in SHELLS {
        let bytes = output_of(&binary, &["completions", shell])?;
        entries.insert(format!("completions/{file}"), Entry { bytes, is_program: false });
    }
    entries.extend(manual(&binary, &output.join("man"))?);
    let archive = pack(&name, &entries, commit_seconds(root)?)?;
    fs::create_dir_all(&output)?;
    let path = output.join(format!("{name}.tar.gz"));
    fs::write(&path, &archive).with_context(|| path.display().to_string())?;
    let digest = Sha256::digest(&archive);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(output.join(format!("{name}.tar.gz.sha256")), format!("{digest}  {name}.tar.gz\n"))?;
    println!(
        "{} ({} bytes, {} files)\nsha256 {digest}",
        path.display(),
        archive.len(),
        entries.len()
    );
    Ok(())
}

/// Builds the server so that its bytes do not depend on the directories of this machine.
fn build(root: &Path, target: &Path) -> anyhow::Result<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let paths = [(target, "/target"), (root, "/inlay"), (cargo.as_path(), "/cargo")];
    let for_rust = paths.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    let for_c = paths.map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()));
    let status = Command::new("cargo")
        .args(["build", "--release", "--locked", "--package", "inlay", "--target-dir"])
        .arg(target)
        .env("CARGO_ENCODED_RUSTFLAGS", for_rust.join("\u{1f}"))
        .env("CFLAGS", for_c.join(" "))
        .env("SOURCE_DATE_EPOCH", commit_seconds(root)?.to_string())
        .current_dir(root)
        .status()
        .context("cargo cannot be run")?;
    ensure!(status.success(), "the server was not built");
    Ok(target.join("release").join("inlay"))
}

/// Pages of the manual, written by the binary itself.
fn manual(binary: &Path, directory: &Path) -> anyhow::Result<BTreeMap<String, Entry>> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    fs::create_dir_all(directory)?;
    let target = directory.to_str().context("the directory is not UTF-8")?;
    output_of(binary, &["manual", target])?;
    let mut pages = BTreeMap::new();
    for page in fs::read_dir(directory)? {
        let page = page?;
        let name = page.file_name().to_string_lossy().into_owned();
        pages.insert(format!("man/man1/{name}"), file(&page.path())?);
    }
    ensure!(pages.contains_key("man/man1/inlay.1"), "{} wrote no manual", binary.display());
    Ok(pages)
}

/// A file of the repository as an entry that is no program.
fn file(path: &Path) -> anyhow::Result<Entry> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(Entry { bytes, is_program: false })
}

/// Output of the binary. Errors: it cannot be run, or fails; then with its error output.
fn output_of(binary: &Path, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let run = Command::new(binary).args(arguments).output();
    let output = run.with_context(|| format!("{} cannot be run", binary.display()))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("{} {}: {error}", binary.display(), arguments.join(" "));
    }
    Ok(output.stdout)
}

/// When the commit was made that is checked out, in seconds since 1970; `SOURCE_DATE_EPOCH` overrides it.
fn commit_seconds(root: &Path) -> anyhow::Result<u64> {
    let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => seconds,
        Err(_) => {
            let mut log = Command::new("git");
            let output = log.args(["log", "-1", "--format=%ct"]).current_dir(root).output();
            String::from_utf8(output.context("git cannot be run")?.stdout)?
        }
    };
    seconds.trim().parse().with_context(|| format!("{seconds:?} is no time of a commit"))
}

/// A compressed archive of `entries` below a folder of its name; the same entries give the same bytes.
fn pack(name: &str, entries: &BTreeMap<String, Entry>, seconds: u64) -> anyhow::Result<Vec<u8>> {
    let compressed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let mut archive = tar::Builder::new(compressed);
    for (path, Entry { bytes, is_program }) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(bytes.len())?);
        header.set_mode(if *is_program { 0o755 } else { 0o644 });
        header.set_mtime(seconds);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, format!("{name}/{path}"), bytes.as_slice())?;
    }
    Ok(archive.into_inner()?.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn entries() -> BTreeMap<String, Entry> {
        let program = Entry { bytes: b"binary".to_vec(), is_program: true };
        let text = Entry { bytes: b"text".to_vec(), is_program: false };
        BTreeMap::from([("man/man1/a.1".to_owned(), text), ("inlay".to_owned(), program)])
    }

    #[test]
    fn the_same_entries_give_the_same_bytes() {
        let archive = pack("inlay-1", &entries(), 1_700_000_000).unwrap();
        assert_eq!(archive, pack("inlay-1", &entries(), 1_700_000_000).unwrap());
        assert_ne!(archive, pack("inlay-1", &entries(), 1_700_000_001).unwrap());
    }

    #[test]
    fn an_archive_holds_what_was_put_into_it() {
        let archive = pack("inlay-1", &entries(), 1_700_000_000).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 1_700_000_000));
            let path = entry.path().unwrap().display().to_string();
            found.push((path, entry.header().mode().unwrap(), text));
        }
        let expected =
            [("inlay-1/inlay", 0o755, "binary"), ("inlay-1/man/man1/a.1", 0o644, "text")];
        assert_eq!(
            found,
            expected.map(|(path, mode, text)| (path.to_owned(), mode, text.to_owned()))
        );
    }
}
