/** Speedup of the native provider over Node's OpenSSL, by CPU time. */
import type { RawWork } from "./raw-provider.ts";
import { median, ratiosOf, report } from "./results.ts";
import { measureInTurn, measureRaw } from "./tools.ts";

const targets: readonly [RawWork, string][] = [
  ["sign", "at least 4.0"],
  ["verify", "at least 3.0"],
  ["generate", "at least 3.0"],
  ["sign mu", "at least 25"],
];

/** Compares the native provider with Node's, where the noble library signs mu. */
export async function measureProviders(): Promise<void> {
  for (const [work, target] of targets) {
    const [native = [], openssl = []] = await measureInTurn(
      (["native", "openssl"] as const).map((provider) => [
        `${work}, ${provider}`,
        async () => (await measureRaw(work, provider)).cpuPerCall,
      ]),
    );
    const name = `ML-DSA-65, ${work}: CPU of openssl against native`;
    const parts = { openssl: median(openssl), native: median(native) };
    report(name, ratiosOf(openssl, native), { unit: "times", target, parts });
  }
}
