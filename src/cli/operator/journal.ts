/** Detects whether the output goes to the systemd journal. */
import { fstatSync } from "node:fs";

/** Standard output and standard error; systemd names either if only that one goes to the journal. */
const descriptors = [1, 2];

/**
 * Returns whether standard output or standard error goes to the systemd journal.
 *
 * JOURNAL_STREAM contains the journal's device and inode (systemd.exec(5), "Environment variables in spawned
 * processes"). Desktop programs inherit the variable, but their terminals do not match it.
 */
export function writesToJournal({ JOURNAL_STREAM: journal }: NodeJS.ProcessEnv): boolean {
  if (journal === undefined) return false;
  return descriptors.some((descriptor) => {
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    return journal === `${dev}:${ino}`;
  });
}
