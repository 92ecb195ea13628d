/**
 * Uses the native library with inputs of random lengths, and drops, erases and garbage-collects keys while
 * they work. `native/check` runs it under a sanitizer: `node --expose-gc stress.ts <library> <seconds>`.
 */
import { randomBytes, randomInt } from "node:crypto";
import { createRequire } from "node:module";
import { mlDsaNames, mlKemNames } from "../src/crypto/algorithms.ts";
import type { NativeAddon, NativeAlgorithm, NativeSecretKey } from "../src/crypto/native/addon.ts";
import { testKnownAnswers } from "../src/crypto/native/known-answers.ts";

const [path = "", seconds = "60"] = process.argv.slice(2);
const addon: NativeAddon = createRequire(import.meta.url)(path);
const collectGarbage = globalThis.gc ?? (() => {});
const names: readonly NativeAlgorithm[] = [...mlDsaNames, ...mlKemNames];
const counts = { answered: 0, refused: 0, wrong: 0 };

/** Random bytes, often of about the right length, or none. */
function someBytes(usual: number): Uint8Array {
  const lengths = [usual, usual, usual - 1, usual + 1, 0, randomInt(10_000)];
  return randomBytes(Math.max(0, lengths[randomInt(lengths.length)] ?? 0));
}

/** Jobs with one key. Wrong lengths are rejected at once or by the job; neither may harm the process. */
const jobs: readonly ((key: NativeSecretKey) => Promise<unknown>)[] = [
  (key) => key.sign(someBytes(100), someBytes(20)),
  (key) => key.signMu(someBytes(64)),
  (key) => key.signDeterministic(someBytes(100), someBytes(255)),
  (key) => key.decapsulate(someBytes(1088)),
  (key) => key.publicKey().verify(someBytes(100), someBytes(3309), someBytes(10)),
  async (key) => {
    const [ciphertext, sharedSecret] = await key.publicKey().encapsulate();
    count("wrong", (await key.decapsulate(ciphertext)).toHex() !== sharedSecret.toHex());
  },
  async (key) => {
    const [message, context] = [someBytes(100), randomBytes(randomInt(256))];
    const publicKey = key.publicKey();
    const signature = await key.sign(message, context);
    count("wrong", !(await publicKey.verify(message, signature, context)));
  },
  async (key) => [key.exportExpanded(), key.exportSeed(), key.publicKey().export()],
];

function count(name: keyof typeof counts, happened = true): void {
  if (happened) counts[name] += 1;
}

/** Starts jobs with a new key, and erases or drops the key while they run. */
async function round(): Promise<void> {
  const algorithm = names[randomInt(names.length)] ?? "ML-DSA-44";
  const key = await addon.generateKeyPair(algorithm);
  const attempts = [
    async () => addon.importSecretKey(algorithm, someBytes(randomInt(2) === 0 ? 32 : 64), undefined),
    async () => addon.importSecretKey(algorithm, undefined, someBytes(key.exportExpanded().length)),
    async () => addon.importSecretKey(algorithm, undefined, key.exportExpanded()),
    async () => addon.importPublicKey(algorithm, someBytes(key.publicKey().export().length)),
    ...Array.from({ length: 8 }, () => {
      const job = jobs[randomInt(jobs.length)] ?? round;
      return async () => job(key);
    }),
  ];
  const erasedAfter = randomInt(2 * attempts.length);
  const running = attempts.map((attempt, i) => {
    if (i === erasedAfter) key.erase();
    return attempt();
  });
  if (randomInt(10) === 0) collectGarbage();
  for (const { status } of await Promise.allSettled(running))
    count(status === "fulfilled" ? "answered" : "refused");
}

await testKnownAnswers(addon);
const endMs = performance.now() + Number(seconds) * 1000;
while (performance.now() < endMs) await Promise.all(Array.from({ length: 8 }, round));
console.log(
  `native/check: ${counts.answered} jobs answered, ${counts.refused} rejected, ${counts.wrong} wrong`,
);
if (counts.wrong > 0 || counts.answered === 0 || counts.refused === 0) process.exitCode = 1;
