import { type Config, listFiles } from "../config.ts";

/** Converts settings to the dependencies of services. */
export function serviceSettings({
  maxChallengesPerDevice,
  maxChallengesPerClient,
  tlsCert,
  valueFor,
}: Config) {
  return {
    challengeLimits: { perDevice: maxChallengesPerDevice, perClient: maxChallengesPerClient },
    certificateFiles: listFiles(tlsCert),
    valueFor,
  };
}
