//! A Rust program that ends in other ways than by an index: an assertion, an abort, a slice of text, and
//! a null pointer.

use std::io::Read;

mod check {
    pub struct Version<T>(pub T);

    impl<T: Into<u64> + Copy> Version<T> {
        #[inline(never)]
        pub fn verify(&self) {
            assert_eq!(self.0.into() % 7, 99, "bad version");
        }
    }

    #[inline(never)]
    pub fn title(text: &str, at: usize) -> &str {
        &text[at..]
    }
}

#[inline(never)]
fn leave() {
    std::process::abort();
}

#[inline(never)]
fn poke(at: usize) {
    // SAFETY: there is none, that is the bug.
    unsafe { *(at as *mut u8) = 1 }
}

fn main() {
    let mut data = Vec::new();
    std::io::stdin().read_to_end(&mut data).unwrap();
    match data.first() {
        Some(b'v') => check::Version(data.len() as u32).verify(),
        Some(b't') => println!("{}", check::title("a", data.len())),
        Some(b'l') => leave(),
        Some(b'p') => poke(data.len()),
        _ => {}
    }
}
