/** Tells whether a program runs as a service of systemd. */
import { fstatSync } from "node:fs";

/** Standard output, and standard error, which systemd names if both go to the journal on their own. */
const descriptors = [1, 2];

/**
 * Tells whether the output of this program goes to the journal of systemd.
 *
 * JOURNAL_STREAM holds its device and inode (systemd.exec(5), "Environment variables in spawned processes"). Programs of
 * a desktop inherit the variable, and their terminals do not match it.
 */
export function writesToJournal({ JOURNAL_STREAM: journal }: NodeJS.ProcessEnv): boolean {
  if (journal === undefined) return false;
  return descriptors.some((descriptor) => {
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    return journal === `${dev}:${ino}`;
  });
}
