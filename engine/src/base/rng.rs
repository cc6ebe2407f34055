//! Chance as an argument: the operating system's, or a seeded sequence for tests.

use parking_lot::Mutex;

/// Fills buffers with random bytes.
pub trait Rng: Send + Sync + 'static {
    /// Fills `out`.
    fn fill(&self, out: &mut [u8]);

    /// Eight random bytes as a number.
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `bound`; a bound of zero gives zero. The bias is below 2^-32 for small bounds.
    fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }
}

/// The operating system's generator, fit for keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRng;

impl Rng for SystemRng {
    fn fill(&self, out: &mut [u8]) {
        getrandom::fill(out).expect("the operating system provides random bytes");
    }
}

/// A repeatable sequence (SplitMix64). For tests and sample data only.
#[derive(Debug)]
pub struct SeededRng(Mutex<u64>);

impl SeededRng {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }
}

impl Rng for SeededRng {
    fn fill(&self, out: &mut [u8]) {
        let mut state = self.0.lock();
        for piece in out.chunks_mut(8) {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = *state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^= z >> 31;
            piece.copy_from_slice(&z.to_le_bytes()[..piece.len()]);
        }
    }
}
