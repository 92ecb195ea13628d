/** Matchers for response texts that are not known in advance. */
import { expect } from "vitest";

export const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/);
export const anAddress = expect.stringMatching(/^0x[0-9a-f]{40}$/);
export const aHash = expect.stringMatching(/^[0-9a-f]{64}$/);
export const aPem = expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n/);
/** Base64 of this many bytes. */
export const base64Of = (bytes: number) =>
  expect.stringMatching(
    new RegExp(`^[A-Za-z0-9+/]{${Math.ceil((bytes * 4) / 3)}}${"=".repeat((3 - (bytes % 3)) % 3)}$`),
  );
/** An ID: its kind and a UUID. */
export const anId = (kind: string) =>
  expect.stringMatching(
    new RegExp(`^${kind}-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`),
  );
