//! Files in a store of objects, with a simulated disk as their cache.

use super::*;
use crate::vfs::{read_all, sim::SimVfs, sim_objects::SimObjects};

const DIRECTORIES: &[&str] = &["seg", "ckpt"];

fn disk() -> SimVfs {
    let disk = SimVfs::new();
    for directory in ["tmp", "seg/l0", "ckpt", "wal"] {
        disk.create_dir(directory).unwrap();
    }
    disk
}

fn over(disk: &SimVfs, objects: &SimObjects) -> ObjectVfs {
    let (disk, objects) = (Arc::new(disk.clone()), Arc::new(objects.clone()));
    ObjectVfs::new(disk, objects, DIRECTORIES)
}

fn write(vfs: &ObjectVfs, name: &str, bytes: &[u8]) -> io::Result<()> {
    ignore_missing(vfs.remove("tmp/new"))?;
    let file = vfs.create("tmp/new")?;
    file.write_at(0, bytes)?;
    file.sync()?;
    vfs.rename("tmp/new", name)
}

#[test]
fn a_file_is_there_for_another_disk_and_goes_from_both() {
    let (one, objects) = (disk(), SimObjects::default());
    let vfs = over(&one, &objects);
    write(&vfs, "seg/l0/a.seg", b"rows").unwrap();
    write(&vfs, "wal/1.wal", b"records").unwrap();
    let other = disk();
    let vfs = over(&other, &objects);
    assert_eq!(vfs.list("seg/l0").unwrap(), ["a.seg"]);
    assert_eq!(vfs.list("wal").unwrap(), [] as [&str; 0], "the log is not in the store");
    assert_eq!(&*vfs.map("seg/l0/a.seg").unwrap(), b"rows");
    assert!(other.files().contains_key("seg/l0/a.seg"), "it is cached");
    vfs.link("seg/l0/a.seg", "copy").unwrap();
    assert_eq!(read_all(&*vfs.open("copy").unwrap()).unwrap(), b"rows");
    vfs.remove("seg/l0/a.seg").unwrap();
    vfs.purge().unwrap();
    assert_eq!(vfs.map("seg/l0/a.seg").err().unwrap().kind(), io::ErrorKind::NotFound);
    // The first disk has a copy that nothing names.
    assert_eq!(over(&one, &objects).list("seg/l0").unwrap(), ["a.seg"]);
    over(&one, &objects).remove("seg/l0/a.seg").unwrap();
    assert!(over(&one, &objects).list("seg/l0").unwrap().is_empty());
}

#[test]
fn an_object_stays_for_a_while_after_its_file_was_removed() {
    let (one, objects) = (disk(), SimObjects::default());
    let vfs = over(&one, &objects);
    let stored = || objects.list("seg/").unwrap();
    for name in ["seg/l0/a.seg", "seg/l0/b.seg", "seg/l0/c.seg"] {
        write(&vfs, name, b"rows").unwrap();
    }
    vfs.remove("seg/l0/a.seg").unwrap();
    assert_eq!(vfs.list("seg/l0").unwrap(), ["b.seg", "c.seg"], "it is gone for this disk");
    assert_eq!(vfs.map("seg/l0/a.seg").err().unwrap().kind(), io::ErrorKind::NotFound);
    assert_eq!(vfs.sweep().unwrap(), 0);
    // A log that has lost its newest records may name it again.
    assert_eq!(&*over(&disk(), &objects).map("seg/l0/a.seg").unwrap(), b"rows");
    vfs.remove("seg/l0/b.seg").unwrap();
    objects.fail_at(0, io::ErrorKind::TimedOut);
    assert!(vfs.sweep().is_err());
    assert_eq!(vfs.sweep().unwrap(), 1, "it is tried again");
    assert_eq!(stored(), ["seg/l0/b.seg", "seg/l0/c.seg"]);
    // What is uploaded again stays.
    write(&vfs, "seg/l0/b.seg", b"rows").unwrap();
    assert_eq!(vfs.sweep().unwrap(), 0);
    vfs.remove("seg/l0/c.seg").unwrap();
    vfs.purge().unwrap();
    assert_eq!(stored(), ["seg/l0/b.seg"]);
}

#[test]
fn an_object_that_the_store_has_lost_is_uploaded_again_where_there_is_a_copy() {
    let (one, objects) = (disk(), SimObjects::default());
    let vfs = over(&one, &objects);
    let names = ["seg/l0/a.seg", "seg/l0/b.seg", "seg/l0/c.seg"].map(str::to_owned);
    for name in &names {
        write(&vfs, name, b"rows").unwrap();
    }
    objects.remove("seg/l0/a.seg").unwrap();
    objects.remove("seg/l0/b.seg").unwrap();
    one.remove("seg/l0/b.seg").unwrap();
    let compare = |names, is_whole: bool, may| vfs.reconcile(names, &|_| is_whole, &|| may);
    let compared = compare(&names[..2], true, true).unwrap();
    let expected = Reconciled { lost: vec![names[1].clone()], unnamed: vec![names[2].clone()] };
    assert_eq!(compared, expected);
    assert_eq!(objects.list("seg/").unwrap(), ["seg/l0/a.seg", "seg/l0/c.seg"]);
    objects.remove("seg/l0/a.seg").unwrap();
    assert!(compare(&names[..1], true, false).is_err(), "it may not any more");
    assert_eq!(compare(&names[..1], false, true).unwrap().lost, names[..1], "damaged");
    // One that was cut off is replaced.
    write(&vfs, "seg/l0/a.seg", b"rows").unwrap();
    objects.remove("seg/l0/a.seg").unwrap();
    let short = disk();
    short.set_file("short", Some(b"ro".to_vec()));
    objects.put("seg/l0/a.seg", &*short.open("short").unwrap()).unwrap();
    assert_eq!(compare(&names[..1], false, true).unwrap().lost, names[..1]);
    assert!(compare(&names[..1], true, true).unwrap().lost.is_empty());
    assert_eq!(objects.list_sizes("seg/l0/a").unwrap(), [(names[0].clone(), 4)]);
    objects.remove("seg/l0/a.seg").unwrap();
    // What was removed in between must not come back.
    vfs.remove("seg/l0/c.seg").unwrap();
    vfs.purge().unwrap();
    assert_eq!(compare(&names[..1], true, true).unwrap(), Reconciled::default());
}

#[test]
fn a_file_that_is_removed_or_discarded_while_it_is_fetched_does_not_come() {
    let (one, objects) = (disk(), SimObjects::default());
    write(&over(&one, &objects), "seg/l0/a.seg", b"rows").unwrap();
    for removes in [true, false] {
        let other = disk();
        let vfs = over(&other, &objects);
        let claim = vfs.claim("seg/l0/a.seg");
        // Neither waits for the fetch.
        match removes {
            true => vfs.remove("seg/l0/a.seg").unwrap(),
            false => assert!(!vfs.discard_copy("seg/l0/a.seg").unwrap()),
        }
        let fetched = vfs.fetch_claimed(&claim, None);
        assert_eq!(fetched.err().unwrap().kind(), io::ErrorKind::NotFound);
        drop(claim);
        assert!(other.files().is_empty(), "{:?}", other.files());
    }
    // A fetch that fails leaves nothing, and a copy is replaced only by one that is whole.
    let other = disk();
    let vfs = over(&other, &objects);
    objects.fail_at(0, io::ErrorKind::ConnectionReset);
    assert!(vfs.prefetch("seg/l0/a.seg").is_err());
    assert!(other.files().is_empty());
    other.set_file("seg/l0/a.seg", Some(b"dust".to_vec()));
    let refuses = |_: View| Err(io::ErrorKind::InvalidData.into());
    assert!(vfs.replace_copy("seg/l0/a.seg", &refuses).is_err());
    assert_eq!(other.files()["seg/l0/a.seg"], b"dust");
    vfs.replace_copy("seg/l0/a.seg", &|_| Ok(())).unwrap();
    assert_eq!(&*vfs.map("seg/l0/a.seg").unwrap(), b"rows");
}

#[test]
fn directories_of_the_store_are_listed_where_the_disk_has_none() {
    let (one, objects) = (disk(), SimObjects::default());
    one.create_dir("seg/2026-11").unwrap();
    write(&over(&one, &objects), "seg/2026-11/b.seg", b"rows").unwrap();
    let vfs = over(&disk(), &objects);
    assert_eq!(vfs.list_dirs("seg").unwrap(), ["2026-11", "l0"]);
    assert_eq!(vfs.list("seg/2026-11").unwrap(), ["b.seg"]);
    assert_eq!(vfs.list("seg/none").err().unwrap().kind(), io::ErrorKind::NotFound);
    assert_eq!(&*vfs.map("seg/2026-11/b.seg").unwrap(), b"rows");
}

#[test]
fn a_name_is_given_on_the_disk_only_once_the_store_has_the_file() {
    let (one, objects) = (disk(), SimObjects::default());
    let vfs = over(&one, &objects);
    objects.fail_at(0, io::ErrorKind::TimedOut);
    assert_eq!(write(&vfs, "seg/l0/a.seg", b"rows").err().unwrap().kind(), io::ErrorKind::TimedOut);
    assert!(vfs.list("seg/l0").unwrap().is_empty());
    write(&vfs, "seg/l0/a.seg", b"rows").unwrap();
    // The same again, but never another file under the same name.
    write(&vfs, "seg/l0/a.seg", b"rows").unwrap();
    let again = write(&vfs, "seg/l0/a.seg", b"other rows").err().unwrap();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(
        vfs.create("seg/l0/d.seg").err().unwrap().kind(),
        io::ErrorKind::Unsupported,
        "it would stay on the disk"
    );
    objects.lose_answer_at(0, io::ErrorKind::TimedOut);
    assert!(write(&vfs, "seg/l0/c.seg", b"more").is_err());
    write(&vfs, "seg/l0/c.seg", b"more").unwrap();
    // A file that is fetched and cut off is not there.
    let other = disk();
    objects.fail_at(0, io::ErrorKind::ConnectionReset);
    assert!(over(&other, &objects).map("seg/l0/a.seg").is_err());
    assert!(!other.files().contains_key("seg/l0/a.seg"));
    assert_eq!(&*over(&other, &objects).map("seg/l0/a.seg").unwrap(), b"rows");
}
