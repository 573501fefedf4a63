// profiles: what tests take for a profile.
import type { Profile } from "../../src/api/answers.js";

/** Of a process that has sampled nothing. */
export const NO_SAMPLES: Profile = {
  sampled: null,
  partial: null,
  weight_bytes: null,
  samples_taken: null,
  samples_lost: null,
  samples: [],
  lifetimes: [],
};
