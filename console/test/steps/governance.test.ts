import { createHash } from "node:crypto";
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import canonicalize from "canonicalize";
import { describe, expect, it, onTestFinished } from "vitest";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { settings } from "../../page/settings.ts";
import * as story from "../../page/stories/governance/page.tsx";
import { refusalOf, runStep, serve } from "./fake-caller.ts";

const createdAt = timestampFromMs(1_790_000_000_000);

/** Signers with keys in the browser. */
const gather = () => runStep(story.gathering, serve(DefiService, {}), {});

describe("gathering", () => {
  it("creates all keys in the browser if no key service is running", async () => {
    const { all } = await gather();
    expect(all.map(({ place }) => place)).toEqual(Array(3).fill("in your browser"));
  });

  it("lets Grace sign with a key in the key service", async () => {
    const { publicKey } = ml_dsa65.keygen();
    const caller = serve(KmsService, {
      createKey: () => ({ result: { keyId: "key-1", publicKey } }),
      sign: ({ keyId, data }) => ({ result: { signature: new TextEncoder().encode(`${keyId} ${data}`) } }),
    });
    settings.services.add(KmsService.typeName);
    onTestFinished(() => void settings.services.delete(KmsService.typeName));
    const { grace } = await runStep(story.gathering, caller, {});
    expect(grace).toMatchObject({ publicKey, place: "in the key service" });
    expect(await grace.sign(caller, Uint8Array.of(7))).toEqual(new TextEncoder().encode("key-1 7"));
  });
});

it.each([
  ["finds its three signers", undefined, true],
  ["detects a different signer", "0x", false],
])("founding %s", async (_what, second, isSame) => {
  const caller = serve(DefiService, {
    createMultisig({ signerPublicKeys }) {
      const [first, own, last] = signerPublicKeys.map((key) => `0x${hash(key).slice(0, 40)}`);
      return { signers: [first ?? "", second ?? own ?? "", last ?? ""] };
    },
  });
  expect(await runStep(story.founding, caller, { gathering: await gather() })).toMatchObject({ isSame });
});

describe("proposing", () => {
  const title = 'Ein "Dach"\u2028';
  it.each([
    ["finds the hash of what the reader typed", title, true],
    ["detects that the server stored a different title", "A pool", false],
  ])("%s", async (_what, storedTitle, isSame) => {
    const caller = serve(DefiService, {
      createProposal({ walletId, data, expiresAt }) {
        const text = canonicalize({
          ...{ proposalId: "proposal-1", purpose: "defi proposal", threshold: 2 },
          ...{ title: storedTitle, walletId },
          createdAt: timestampDate(createdAt).toISOString(),
          data: Buffer.from(data).toString("base64"),
          expiresAt: expiresAt && timestampDate(expiresAt).toISOString(),
        });
        const signingHash = Uint8Array.from(Buffer.from(hash(text ?? ""), "hex"));
        return { proposal: { proposalId: "proposal-1", createdAt, signingHash } };
      },
    });
    const given = { founding: { walletId: "wallet-1" }, title, text: "grüße" };
    const proposed = await runStep(story.proposing, caller, given);
    expect(proposed).toMatchObject({ proposalId: "proposal-1", isSame });
  });
});

describe("signing a proposal", () => {
  const proposed = { proposalId: "proposal-1", hash: new Uint8Array(32) };
  let signedBy: string[] = [];
  const caller = serve(DefiService, {
    signProposal({ signer }) {
      if (signedBy.includes(signer)) throw refusalOf("ALREADY_SIGNED");
      signedBy = [...signedBy, signer];
      return { proposal: { signedBy, signatureCount: signedBy.length } };
    },
  });

  it("counts a valid signature, and shows the refusal of a second one", async () => {
    signedBy = [];
    const given = { gathering: await gather(), proposing: proposed };
    const signed = await runStep(story.signing, caller, given);
    expect(signed).toMatchObject({ count: 1, verdicts: { browser: true, server: true } });
    expect(signed.again).toMatchObject({ reason: "ALREADY_SIGNED" });
  });

  it("detects that a signer signed something else", async () => {
    const { grace } = await gather();
    const other = { ...grace, sign: () => grace.sign(caller, Uint8Array.of(1)) };
    const signed = await runStep(story.joining, caller, { gathering: { grace: other }, proposing: proposed });
    expect(signed).toMatchObject({ verdicts: { browser: false } });
  });

  it("finds that an outsider's signature is not Grace's", async () => {
    const given = { gathering: await gather(), proposing: proposed };
    const { address } = given.gathering.grace;
    const refusing = serve(DefiService, {
      signProposal({ signer }) {
        throw refusalOf(signer === address ? "SIGNATURE_INVALID" : "SIGNER_UNKNOWN");
      },
    });
    const found = await runStep(story.intruding, refusing, given);
    expect(found).toMatchObject({ isGraces: false });
  });
});

function hash(content: Uint8Array | string): string {
  return createHash("sha256").update(content).digest("hex");
}
