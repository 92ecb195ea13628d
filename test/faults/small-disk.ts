/** Disks that fill up quickly. */
import { execFileSync } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, onTestFinished, vi } from "vitest";
import type { AtEnd } from "../support/at-end.ts";

/** Describes tests that need their own disks; the name of skipped tests has the reason, as in interop/tools.ts. */
export function describeSmallDisks(name: string, define: () => void): void {
  const isSkipped = process.env.QSP_TEST_REQUIRE_ALL !== "1" && !canMount();
  describe.skipIf(isSkipped)(isSkipped ? `${name}: needs Linux and the right to mount` : name, define);
}

function canMount(): boolean {
  try {
    unmount(mount("64k"));
    return true;
  } catch {
    return false;
  }
}

/**
 * Mounts a directory of limited size for one test, or for one file with `afterAll`.
 *
 * @param size as mount expects it, such as "2m"
 */
export function makeSmallDisk(size: string, atEnd: AtEnd = onTestFinished): string {
  const path = mount(size);
  atEnd(() => unmount(path));
  return path;
}

function mount(size: string): string {
  const path = mkdtempSync(join(tmpdir(), "qsp-test-disk-"));
  try {
    const options = `size=${size},mode=0700`;
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "qsp-test", path], { stdio: "pipe" });
  } catch (error) {
    rmdirSync(path);
    throw error;
  }
  return path;
}

/** Lazily: a program that was just killed may still hold a file. */
function unmount(path: string): void {
  execFileSync("umount", ["--lazy", path], { stdio: "pipe" });
  rmdirSync(path);
}

/** Writes a file that does not belong to the program, of at most this many bytes, or until the disk is full. */
export function writeForeignFile(directory: string, maxBytes = Number.MAX_SAFE_INTEGER) {
  const path = join(directory, "foreign");
  const file = openSync(path, "w");
  const block = Buffer.alloc(4096, 1);
  try {
    for (let bytes = 0; bytes < maxBytes; bytes += block.length) writeSync(file, block);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
  } finally {
    closeSync(file);
  }
  return { remove: () => rmSync(path) };
}

/** Waits until the server has allocated its reserve, which takes it a moment after its start. */
export function waitForReserve(directory: string): Promise<unknown> {
  return vi.waitUntil(() => existsSync(join(directory, "qsp.db-reserve")), { timeout: 100_000 });
}
