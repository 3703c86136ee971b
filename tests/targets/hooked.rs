//! Panics at two places, with a hook that ends the process without a word, several functions deep.

use std::io::Read;

#[inline(never)]
fn last() {
    std::process::abort()
}

#[inline(never)]
fn flush() {
    last()
}

#[inline(never)]
fn send() {
    flush()
}

#[inline(never)]
fn write() {
    send()
}

#[inline(never)]
fn first() {
    panic!("one")
}

#[inline(never)]
fn second() {
    panic!("another")
}

fn main() {
    std::panic::set_hook(Box::new(|_| write()));
    let mut input = String::new();
    let _ = std::io::stdin().read_to_string(&mut input);
    match input.as_bytes().first() {
        Some(b'a') => first(),
        Some(b'b') => second(),
        _ => {}
    }
}
