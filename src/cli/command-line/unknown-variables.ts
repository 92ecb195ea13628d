/** Finds misspelled QSP_ variables, which would otherwise be ignored silently. */
import { suggest } from "../../suggest.ts";

/** Variables of the client and of the samples in docs/. */
const clientVariables: readonly string[] = ["QSP_URL", "QSP_CA", "QSP_TOKEN", "QSP_PASSWORD"];
/** Variables of npm run gateway and of the files in deploy/. */
const otherVariables: readonly string[] = ["QSP_ENVOY", "QSP_UID", "QSP_GID", "QSP_BACKUP_DAYS"];

/** Variables of older versions, with their replacements. */
const replaced: ReadonlyMap<string, string> = new Map([["QSP_WORKERS", "QSP_REUSE_PORT"]]);

/** Variables that Kubernetes and Docker set in each container for services whose name begins with qsp. */
const ofServiceLink = /^QSP_(\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?)$/;

/** Maximum variables to report. */
const maxNamed = 10;

/** Returns whether any QSP_ variable exists besides the client's own; if not, the settings need not be loaded. */
export function hasVariables(env: Readonly<Record<string, string | undefined>>): boolean {
  return Object.keys(env).some((name) => isOurs(name) && !clientVariables.includes(name));
}

function isOurs(name: string): boolean {
  return /^QSP_(?!TEST_)/.test(name);
}

/**
 * Describes each QSP_ variable that nothing reads, one sentence each, except the test variables QSP_TEST_…. The
 * sentences never contain a value.
 *
 * @param settings the variables of the `qsp serve` settings
 */
export function findUnknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  settings: readonly string[],
): string[] {
  const known: readonly string[] = [...settings, ...clientVariables, ...otherVariables];
  return Object.keys(env)
    .filter((name) => isOurs(name) && !known.includes(name) && !ofServiceLink.test(name))
    .sort()
    .slice(0, maxNamed)
    .map((name) => {
      const similar = replaced.get(name) ?? suggest(name, known)[0];
      const advice =
        similar === undefined ? "qsp serve --help lists the variables" : `did you mean ${similar}?`;
      return `the variable ${name.slice(0, 100)} is unknown and has no effect; ${advice}`;
    });
}
