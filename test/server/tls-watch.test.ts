import { symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import { expect, it, onTestFinished, vi } from "vitest";
import { watchTls } from "../../src/server/tls.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

it("certificate files that are unreadable for a moment cause a warning, and do not end the server", async () => {
  const directory = makeTemporaryDirectory();
  const [certificate, key] = [join(directory, "gateway.crt"), join(directory, "gateway.key")];
  writeFileSync(certificate, "not a certificate");
  writeFileSync(key, "not a key");
  const warn = vi.fn();
  const logger: Pick<Logger, "info" | "warn"> = { info: () => {}, warn };
  onTestFinished(watchTls([{ certificate, key }], () => {}, logger as Logger));
  warn.mockClear();
  unlinkSync(certificate);
  // A link to itself: the system answers ELOOP, as it answers EACCES for a closed directory.
  symlinkSync("gateway.crt", certificate);
  await expect.poll(() => warn.mock.calls.map(([, text]) => text)).toContain("new certificates are not used");
});
