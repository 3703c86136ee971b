//! A hash stable across versions of Rust, unlike that of std.

use std::hash::Hasher;

use sha1::{Digest, Sha1};

/// The first eight bytes of SHA-1.
#[derive(Clone, Debug, Default)]
pub struct StableHasher(Sha1);

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_known() {
        let mut hasher = StableHasher::default();
        hasher.write(b"a");
        hasher.write(b"bc");
        assert_eq!(hasher.finish(), 0xa999_3e36_4706_816a);
    }
}
