import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { runQsp, useServer } from "./qsp.ts";

const server = useServer();

/** Makes a program report its peak memory in KiB when it exits. */
const reporter = `data:text/javascript,${encodeURIComponent(
  'process.on("exit", () => console.error("peak " + process.resourceUsage().maxRSS))',
)}`;

/** Returns the peak memory of the largest process in a run. */
function peakMebibytesOf(stderr: string): number {
  const peaks = [...stderr.matchAll(/^peak (\d+)$/gm)].map(([, kibibytes]) => Number(kibibytes) / 1024);
  return peaks.length === 0 ? Number.NaN : Math.max(...peaks);
}

it("qsp sign and qsp verify use less than 400 MiB of memory for 640 MiB", { timeout: 600_000 }, async () => {
  const place = server.place();
  writeFileSync(join(place.cwd, "file"), "");
  truncateSync(join(place.cwd, "file"), 640 * 1024 ** 2);
  const { result } = await server.client(KmsService).createKey({ algorithm: "ML-DSA-65" });
  const keyId = result?.keyId ?? "";
  const measured = { ...place, env: { NODE_OPTIONS: `--import=${reporter}` } };
  const signing = await runQsp(["sign", "file", "--key", keyId], measured);
  const verifying = await runQsp(["verify", "file", "--signature", "file.sig", "--key", keyId], measured);
  for (const { code, stderr } of [signing, verifying]) {
    expect(code).toBe(0);
    expect(peakMebibytesOf(stderr)).toBeLessThan(400);
  }
});
