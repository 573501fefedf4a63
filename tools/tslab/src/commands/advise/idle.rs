//! Memory that nobody needs, and how it goes back to the system: in windows, by threads that
//! allocate, or by a helper, which is born when there is much of it (docs/memory.md).

use crate::sampling::float;

// Option purge_delay_ms.
const WINDOW_NS: u64 = 100_000_000;

// At least so much goes back in a window, if it is there; at first no more, and four times as much
// each time that more had no use (src/memory/window.h).
const LEAST_BYTES: f64 = 4_194_304.0;
const RATION_GROWTH: f64 = 4.0;

// A program is quiet after so many windows in which it needed at most so much of what had no use.
const QUIET_WINDOWS: u32 = 4;
const NEXT_TO_NOTHING: f64 = 0.125;

// What a helper is born for in a process of several threads, and of one.
const MUCH_BYTES: f64 = 8_388_608.0;
const MUCH_BYTES_ALONE: f64 = 33_554_432.0;

// It ends when nothing went back in so many windows.
const MOST_IDLE_WINDOWS: u32 = 10;

/// Of what has no use, what has not gone back yet.
#[derive(Debug, Default)]
pub struct Idle {
    bytes: f64,
    // In this window.
    least: f64,
    passed_ns: u64,
    // When it began.
    before: f64,
    quiet_windows: u32,
    ration: f64,
    // The windows that a helper still waits; 0: none lives.
    helper_windows: u32,
}

/// Who may give memory back at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Givers {
    /// A thread of the program allocates or frees.
    pub is_awake: bool,
    /// The process has several threads.
    pub has_threads: bool,
    /// A helper may be born.
    pub may_have_helper: bool,
}

impl Idle {
    /// What has not gone back yet.
    pub fn bytes(&self) -> f64 {
        self.bytes
    }

    /// So many bytes more have no use, or get one if they are below 0.
    pub fn add(&mut self, bytes: f64) {
        self.bytes = (self.bytes + bytes).max(0.0);
        self.least = self.least.min(self.bytes);
    }

    /// Time passes.
    pub fn wait(&mut self, passed_ns: u64, givers: Givers) {
        let much = if givers.has_threads { MUCH_BYTES } else { MUCH_BYTES_ALONE };
        if givers.may_have_helper && self.bytes >= much {
            self.helper_windows = MOST_IDLE_WINDOWS;
        }
        if self.helper_windows == 0 && !givers.is_awake {
            return;
        }
        self.passed_ns = self.passed_ns.saturating_add(passed_ns);
        while self.passed_ns >= WINDOW_NS {
            self.passed_ns -= WINDOW_NS;
            self.end_window();
        }
    }

    fn end_window(&mut self) {
        let needed = self.bytes.max(self.before) - self.least;
        let is_quiet = self.least > 0.0 && needed <= self.least * NEXT_TO_NOTHING;
        self.quiet_windows = if is_quiet { self.quiet_windows + 1 } else { 0 };
        let goes = self.part();
        self.bytes -= goes;
        self.least = self.bytes;
        self.before = self.bytes;
        let went = goes > 0.0;
        self.helper_windows =
            if went { self.helper_windows } else { self.helper_windows.saturating_sub(1) };
    }

    // What goes back at the end of a window.
    fn part(&mut self) -> f64 {
        let is_quiet = self.quiet_windows >= QUIET_WINDOWS;
        let share = if is_quiet { 0.75 } else { 0.5 };
        let is_little = self.least <= 2.0 * LEAST_BYTES;
        let part = if is_little { self.least.min(LEAST_BYTES) } else { self.least * share };
        let most = self.ration.max(LEAST_BYTES);
        if is_quiet || part < most {
            return part;
        }
        self.ration = most * RATION_GROWTH;
        most
    }
}

/// About the share of what was given up that is left after a time in which somebody gives back.
pub fn share_left(passed_ns: u64) -> f64 {
    (-float(passed_ns) / float(WINDOW_NS)).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    // After so many ms.
    fn left(mib: f64, ms: u64, givers: Givers) -> f64 {
        let mut idle = Idle::default();
        idle.add(mib * MIB);
        (0..ms / 20).for_each(|_| idle.wait(20_000_000, givers));
        idle.bytes() / MIB
    }

    fn is(value: f64, wanted: f64) -> bool {
        (value - wanted).abs() < 0.01
    }

    #[test]
    fn it_goes_back_by_parts_and_in_the_end_whole() {
        let awake = Givers { is_awake: true, has_threads: false, may_have_helper: false };
        assert!(is(left(24.0, 100, awake), 24.0), "what was needed in the window stays");
        assert!(is(left(24.0, 200, awake), 20.0), "4 MiB at first");
        assert!(is(left(24.0, 300, awake), 10.0), "half, where it is less than four times as much");
        assert!(is(left(24.0, 400, awake), 5.0));
        assert!(is(left(24.0, 600, awake), 0.0));
        assert!(is(left(1024.0, 400, awake), 940.0));
        assert!(is(left(1024.0, 500, awake), 235.0), "three quarters, once it is quiet");
    }

    #[test]
    fn what_is_needed_again_is_not_quiet() {
        let awake = Givers { is_awake: true, has_threads: false, may_have_helper: false };
        let mut idle = Idle::default();
        idle.add(1024.0 * MIB);
        for _ in 0..10 {
            idle.wait(WINDOW_NS / 2, awake);
            idle.add(-300.0 * MIB);
            idle.add(300.0 * MIB);
            idle.wait(WINDOW_NS / 2, awake);
        }
        assert!(idle.bytes() > 300.0 * MIB);
        assert!(idle.quiet_windows == 0);
    }

    #[test]
    fn in_a_silent_process_a_helper_is_born_for_much() {
        let silent = Givers { is_awake: false, has_threads: false, may_have_helper: true };
        assert!(is(left(24.0, 5000, silent), 24.0));
        assert!(is(left(40.0, 5000, silent), 0.0));
        let with_threads = Givers { has_threads: true, ..silent };
        assert!(is(left(24.0, 5000, with_threads), 0.0));
        assert!(is(left(6.0, 5000, with_threads), 6.0));
        let never = Givers { may_have_helper: false, ..with_threads };
        assert!(is(left(24.0, 5000, never), 24.0));
    }
}
