//! Panics of Rust: two in one function, one in a method of a trait, one that a library makes, one by an
//! arithmetic overflow.

use std::io::Read;

struct Table {
    rows: Vec<u8>,
}

trait Lookup {
    fn row(&self, at: usize) -> u8;
}

impl Lookup for Table {
    #[inline(never)]
    fn row(&self, at: usize) -> u8 {
        self.rows[at]
    }
}

#[inline(never)]
fn parse(data: &[u8]) -> u32 {
    let text = std::str::from_utf8(&data[1..]).unwrap_or("x").trim();
    if data[0] == b'n' {
        return text.parse().unwrap();
    }
    if data[0] == b'm' {
        panic!("no such mode: {}", text.len());
    }
    text.len() as u32
}

#[inline(never)]
fn add(data: &[u8]) -> u32 {
    data.iter().fold(u32::MAX - 50, |sum, byte| sum.checked_add(u32::from(*byte)).expect("too many"))
}

fn main() {
    let mut data = Vec::new();
    std::io::stdin().read_to_end(&mut data).unwrap();
    match data.first() {
        Some(b'r') => {
            let table = Table { rows: vec![1, 2, 3] };
            println!("{}", table.row(data.len() + 10));
        }
        Some(b'n' | b'm') => println!("{}", parse(&data)),
        Some(b'a') => println!("{}", add(&data)),
        _ => {}
    }
}
