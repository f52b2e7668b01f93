//! Seeded randomness: a failure names the seed that repeats it.

/// A SplitMix64 generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Seeded by `PELTON_SEED`, else by the time; printed under `name`.
    pub fn seeded(name: &str) -> Rng {
        let seed = std::env::var("PELTON_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(from_time);
        eprintln!("{name}: PELTON_SEED={seed}");
        Rng(seed)
    }

    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform enough for tests, in `0..n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.draw() % n
    }

    pub fn millis(&mut self, from: u64, to: u64) -> std::time::Duration {
        std::time::Duration::from_millis(from + self.below(to - from))
    }
}

fn from_time() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_nanos() as u64 % 1_000_000_000
}
