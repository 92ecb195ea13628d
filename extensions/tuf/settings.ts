/** Settings for TUF repositories. */
import { type AddedSettings, defineInteger, defineSwitch } from "../../src/config/setting.ts";

export const maxTargetBytes = defineInteger(
  "tuf-max-target-bytes",
  { fallback: 1_073_741_824, min: 1, max: 1_099_511_627_776 },
  "Maximum bytes of a target in a TUF repository.",
);

export const maxBytesPerUser = defineInteger(
  "tuf-max-bytes-per-user",
  { fallback: 10_737_418_240, min: 0, max: 1_125_899_906_842_624 },
  "Maximum bytes of all targets in a user's TUF repositories; 0 for no limit. With --auth open, all callers share it.",
);

export const tufPrivate = defineSwitch(
  "tuf-private",
  "Requires a token, from a user, a client or a device, to read the files of TUF repositories; by default anyone may.",
);

/** In the order of the help text. */
export const settings: AddedSettings = {
  after: "cors-origins",
  settings: [maxTargetBytes, maxBytesPerUser, tufPrivate],
};
