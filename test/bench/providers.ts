/** Speedup of the native provider over Node's OpenSSL, by CPU time. */
import type { ProviderName } from "../../src/crypto/provider.ts";
import type { RawWork } from "./raw-provider.ts";
import { median, report, showProgress } from "./results.ts";
import { measureRaw, rounds } from "./tools.ts";

const comparisons: readonly [RawWork, ProviderName, string][] = [
  ["sign", "openssl", "at least 4.0"],
  ["verify ML-DSA-65", "openssl", "at least 3.0"],
  ["generate", "openssl", "at least 3.0"],
  ["sign mu", "openssl", "at least 25"],
];

/** Compares the native provider with Node's, where the noble library signs mu. */
export async function measureProviders(): Promise<void> {
  for (const [work, other, target] of comparisons) {
    const [native, others]: [number[], number[]] = [[], []];
    for (let round = 1; round <= rounds; round += 1) {
      showProgress(`providers, ${work}: round ${round} of ${rounds}`);
      native.push((await measureRaw(work, "native")).cpuPerCall);
      others.push((await measureRaw(work, other)).cpuPerCall);
    }
    showProgress();
    const name = `ML-DSA-65, ${work.replace(" ML-DSA-65", "")}: CPU of ${other} against native`;
    const ratios = native.map((value, round) => (others[round] ?? 0) / value);
    report(name, ratios, {
      unit: "times",
      target,
      parts: { [other]: median(others), native: median(native) },
    });
  }
}
