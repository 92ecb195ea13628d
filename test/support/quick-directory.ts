/** Where tests keep files that need not survive a crash of the machine. */
import { readFileSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";

/** A file system in memory, as Linux has it for everyone. */
const memory = "/dev/shm";
/** Bytes that must be free there; containers often have less. */
const minBytes = 4 * 1024 ** 3;

/**
 * The directory in which to make others: in memory if there is room, else on the disk. Writing a store takes a tenth of
 * the CPU time in memory, and no waiting; all that programs see of it is the same.
 */
export const quickDirectory = hasRoomInMemory() ? memory : tmpdir();

function hasRoomInMemory(): boolean {
  // Who names another place for temporary files means it.
  if (process.env.TMPDIR) return false;
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize >= minBytes && !forbidsPrograms();
  } catch {
    return false; // Other systems have no such place.
  }
}

/** Containers may let no program be run there, and some tests write one. */
function forbidsPrograms(): boolean {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  const options = mounts.find((line) => line.split(" ")[1] === memory)?.split(" ")[3];
  return options?.split(",").includes("noexec") ?? false;
}
