//! Two folders and what is seen of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use super::*;

const LONG: Duration = Duration::from_secs(3600);

fn places(root: &Path) -> SyncFolders {
    let instances = Some((root.to_owned(), "own".to_owned()));
    SyncFolders { instances, folders: Vec::new(), relist: LONG }
}

fn put(root: &Path, peer: &str, name: &str, data: &[u8]) {
    let queue = root.join(peer).join("queue");
    fs::create_dir_all(&queue).unwrap();
    // As fuzzers do: whole, under its final name.
    fs::write(root.join(".new"), data).unwrap();
    fs::rename(root.join(".new"), queue.join(name)).unwrap();
}

fn all(peers: &mut Peers, known: impl Fn(&str) -> Position) -> Vec<(&'static str, u32, Vec<u8>)> {
    peers.look(known);
    let next = || peers.take().map(|import| (import.peer, import.number, import.data));
    std::iter::from_fn(next).collect()
}

fn nothing(_: &str) -> Position {
    Position::default()
}

#[test]
fn files_are_taken_once_in_order_and_later_ones_when_they_come() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    put(root, "own", "id:000000,orig:x", b"mine");
    put(root, "a", "id:000001,src:000000", b"1");
    put(root, "a", "id:000000,orig:x", b"0");
    let mut peers = Peers::new(places(root));
    assert_eq!(all(&mut peers, nothing), [("a", 0, b"0".to_vec()), ("a", 1, b"1".to_vec())]);
    assert_eq!(all(&mut peers, nothing), []);
    put(root, "a", "id:000007,src:000001", b"7");
    put(root, "b", "id:000000,orig:y", b"y");
    assert_eq!(all(&mut peers, nothing), [("a", 7, b"7".to_vec()), ("b", 0, b"y".to_vec())]);
    let mut moved = peers.moved();
    moved.sort_by_key(|(name, _)| *name);
    let next = |next| Position { next, newest: 0 };
    assert_eq!(moved, [("a", next(8)), ("b", next(1))]);
    assert_eq!(peers.moved(), []);
    // Trimmed: the same number again is no news.
    put(root, "a", "id:000000,orig:x", b"!");
    assert_eq!(all(&mut peers, nothing), []);
}

#[test]
fn reading_goes_on_behind_the_position_and_begins_anew_with_the_peer() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..4 {
        put(dir.path(), "a", &format!("id:{number:06},x"), &[number]);
    }
    let known = |_: &str| Position { next: 3, newest: 0 };
    let mut peers = Peers::new(places(dir.path()));
    assert_eq!(all(&mut peers, known), [("a", 3, vec![3])]);
    fs::remove_dir_all(dir.path().join("a")).unwrap();
    assert_eq!(all(&mut peers, known), []);
    put(dir.path(), "a", "id:000000,x", b"new");
    assert_eq!(all(&mut peers, known), [("a", 0, b"new".to_vec())]);
}

#[test]
fn what_is_no_input_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    put(root, "a", "id:000000,empty", b"");
    put(root, "a", "id:000001,large", &vec![1; (1 << 20) + 1]);
    put(root, "a", "notes", b"no number");
    put(root, "a", ".hidden", b"hidden");
    let queue = root.join("a/queue");
    nix::unistd::mkfifo(&queue.join("id:000002,fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("nowhere", queue.join("id:000003,broken")).unwrap();
    fs::create_dir(queue.join("id:000004,folder")).unwrap();
    put(root, "a", "id:000005,good", b"5");
    let mut peers = Peers::new(places(root));
    assert_eq!(all(&mut peers, nothing), [("a", 5, b"5".to_vec())]);
    let notes = peers.take_notes();
    assert!(notes.len() == 2 && notes[0].contains("\"notes\""), "{notes:?}");
    assert!(notes[1].contains("\"id:000003,broken\"") && notes[1].contains("is a link"));
    put(root, "a", "more notes", b"told already");
    assert_eq!((all(&mut peers, nothing), peers.take_notes().len()), (vec![], 0));
    // A link to a whole file counts; one that is just being written does not.
    fs::hard_link(queue.join("id:000005,good"), queue.join("id:000006,link")).unwrap();
    let open = fs::File::create(queue.join("id:000007,open")).unwrap();
    assert_eq!(all(&mut peers, nothing), [("a", 6, b"5".to_vec())]);
    std::io::Write::write_all(&mut &open, b"7").unwrap();
    drop(open);
    assert_eq!(all(&mut peers, nothing), [("a", 7, b"7".to_vec())]);
}

#[test]
fn the_last_file_of_a_listing_is_taken_again_when_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "a", "id:000000,x", b"0");
    let path = dir.path().join("a/queue/id:000001,y");
    let mut file = fs::File::create(&path).unwrap();
    std::io::Write::write_all(&mut file, b"ha").unwrap();
    let mut peers = Peers::new(places(dir.path()));
    assert_eq!(all(&mut peers, nothing).len(), 2);
    std::io::Write::write_all(&mut file, b"lf").unwrap();
    drop(file);
    assert_eq!(all(&mut peers, nothing), [("a", 1, b"half".to_vec())]);
}

#[test]
fn a_folder_of_another_tool_is_read_by_time() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("corpus");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("b5f1"), b"one").unwrap();
    let mut peers =
        Peers::new(SyncFolders { instances: None, folders: vec![folder.clone()], relist: LONG });
    assert_eq!(all(&mut peers, nothing), [("corpus_0", 0, b"one".to_vec())]);
    let (_, position) = peers.moved()[0];
    assert_eq!(Position::from_bytes(&position.to_bytes()), Some(position));
    let mut again =
        Peers::new(SyncFolders { instances: None, folders: vec![folder.clone()], relist: LONG });
    assert_eq!(all(&mut again, |_| position), []);
    fs::write(folder.join("a"), b"two").unwrap();
    assert_eq!(all(&mut again, |_| position), [("corpus_0", 1, b"two".to_vec())]);
}

#[test]
fn afls_position_is_four_bytes() {
    assert_eq!(Position { next: 5, newest: 0 }.to_bytes(), [5, 0, 0, 0]);
    // Invalid content: a wrong length, and a time in the future.
    let later = Position { next: 1, newest: u64::MAX }.to_bytes();
    for bytes in [&[][..], &[1, 2], &[0; 5], &[0; 13], &later] {
        assert_eq!(Position::from_bytes(bytes), None, "{bytes:?}");
    }
}
