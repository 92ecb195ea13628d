/** Encryption with stored keys: its cost on the event loop, and that all failures of Decrypt take the same time. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { headBytes } from "../../src/crypto/encryption-head.ts";
import { decryptData, encryptData } from "../../src/crypto/key-encryption.ts";
import { measureWithH2load } from "./h2load.ts";
import { median, ratiosOf, report } from "./results.ts";
import { type Child, grpc, type MethodCall, measureInTurn, measureMs, post } from "./tools.ts";

const keyId = "key-00000000-0000-4000-8000-000000000001";
/** Decryptions of each kind. */
const attempts = 10_000;

export async function measureEncryption(app: Child): Promise<void> {
  const [encrypting, kem] = await Promise.all(
    ["ENCRYPT", "KEM"].map(
      async (usage) => (await post(app, "/api/kms/create-key", { algorithm: "X-Wing", usage })).result,
    ),
  );
  const encrypt = grpc(KmsService.method.encrypt, {
    keyId: encrypting.keyId,
    plaintext: Buffer.alloc(1000, 1),
  });
  const encapsulate = grpc(KmsService.method.encapsulate, { keyId: kem.keyId });
  const loopMicros = async (call: MethodCall): Promise<number> =>
    (await measureWithH2load(app, { call }, measureMs)).cpu.loop;
  const [first = [], second = []] = await measureInTurn([
    ["Encrypt", () => loopMicros(encrypt)],
    ["Encapsulate", () => loopMicros(encapsulate)],
  ]);
  report("Encrypt of 1 kB against Encapsulate with X-Wing, event loop", ratiosOf(first, second), {
    unit: "times",
    target: "stay below 1.5",
    parts: { "µs per call": median(first), against: median(second) },
  });
  await measureFailures();
}

/** Decrypts in turns what does not decrypt, for different reasons, and compares the medians with their mean. */
async function measureFailures(): Promise<void> {
  const provider = await createCryptoProvider("openssl");
  const { publicKey, secretKey } = await provider.generateKeyPair("X-Wing");
  const associatedData = Buffer.from("row 17");
  const plaintext = Buffer.alloc(1000, 1);
  const sealed = await encryptData(provider, { keyId, publicKey }, { data: plaintext, associatedData });
  const flip = (at: number): Uint8Array => Uint8Array.from(sealed, (byte, i) => (i === at ? byte ^ 1 : byte));
  const endOfEnc = headBytes + 1120;
  const lowOrder = Uint8Array.from(sealed).fill(0, endOfEnc - 32, endOfEnc);
  const faults = [
    { what: "ML-KEM part of enc", data: flip(headBytes), associatedData },
    { what: "X25519 part of enc", data: flip(endOfEnc - 1), associatedData },
    { what: "a point of low order", data: lowOrder, associatedData },
    { what: "ct", data: flip(endOfEnc), associatedData },
    { what: "tag", data: flip(sealed.length - 1), associatedData },
    { what: "associated data", data: sealed, associatedData: Buffer.from("row 18") },
  ].map((fault) => ({ ...fault, times: [] as number[] }));
  for (let attempt = -500; attempt < attempts; attempt += 1)
    for (const { data, associatedData: aad, times } of faults) {
      const startMs = performance.now();
      await decryptData(provider, secretKey, { data, associatedData: aad }).catch(() => {});
      if (attempt >= 0) times.push((performance.now() - startMs) * 1000);
    }
  await provider.close();
  const medians = faults.map(({ what, times }) => [what, median(times)] as const);
  const mean = medians.reduce((sum, [, micros]) => sum + micros, 0) / medians.length;
  const deviations = medians.map(([, micros]) => Math.abs(micros - mean) / mean);
  report("Failures of Decrypt: largest deviation from their mean", [100 * Math.max(...deviations)], {
    unit: "%",
    target: "noise",
    parts: Object.fromEntries(medians),
  });
}
