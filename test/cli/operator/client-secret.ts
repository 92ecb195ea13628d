/** Reads the secrets that qsp client prints. */
import { expect } from "vitest";
import type { Place } from "../../support/on-both.ts";
import { runCommand } from "./command-line.ts";

export const secretPattern = /^[A-Za-z0-9_-]{43}\n$/;

/** The secret that a command prints, and nothing else. */
export async function secretOf(place: Pick<Place, "settings">, ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(place, ["client", ...words]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(secretPattern)]);
  expect(stderr).not.toContain(stdout.trim());
  return stdout.trim();
}
