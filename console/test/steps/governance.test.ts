import { createHash } from "node:crypto";
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import canonicalize from "canonicalize";
import { describe, expect, it } from "vitest";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import {
  executeTwice,
  foundWallet,
  gatherSigners,
  propose,
  signAs,
  signAsStranger,
  signTwice,
} from "../../page/stories/governance/steps.ts";
import { createFakeCaller } from "./fake-caller.ts";

const createdAt = timestampFromMs(1_790_000_000_000);
const refuse = () => {
  throw new ConnectError("refused", Code.FailedPrecondition);
};

describe("gatherSigners", () => {
  it("makes all keys in the browser where no key service runs", async () => {
    const { all } = await gatherSigners(
      createFakeCaller(() => {}),
      false,
    );
    expect(all.map(({ place }) => place)).toEqual(Array(3).fill("in your browser"));
  });

  it("has Grace sign with a key of the key service", async () => {
    const { publicKey } = ml_dsa65.keygen();
    const caller = createFakeCaller(({ service }) =>
      service(KmsService, {
        createKey: () => ({ result: { keyId: "key-1", publicKey } }),
        sign: ({ keyId, data }) => ({ result: { signature: new TextEncoder().encode(`${keyId} ${data}`) } }),
      }),
    );
    const { grace } = await gatherSigners(caller, true);
    expect(grace).toMatchObject({ publicKey, place: "in the key service" });
    expect(await grace.sign(caller, Uint8Array.of(7))).toEqual(new TextEncoder().encode("key-1 7"));
  });
});

describe("foundWallet", () => {
  for (const [name, change, isSame] of [
    ["finds its three signers", (addresses: string[]) => addresses, true],
    ["finds another signer", (addresses: string[]) => addresses.with(1, "0x"), false],
  ] as const) {
    it(name, async () => {
      const caller = createFakeCaller(({ service }) =>
        service(DefiService, {
          createMultisig: ({ signerPublicKeys }) => ({
            signers: change(signerPublicKeys.map((publicKey) => `0x${hash(publicKey).slice(0, 40)}`)),
          }),
        }),
      );
      expect(await foundWallet(caller, await gatherSigners(caller, false))).toMatchObject({ isSame });
    });
  }
});

describe("propose", () => {
  for (const [name, storedTitle, isSame] of [
    ["finds the hash of what the reader typed", "A roof", true],
    ["finds that the server stored another title", "A pool", false],
  ] as const) {
    it(name, async () => {
      const caller = createFakeCaller(({ service }) =>
        service(DefiService, {
          createProposal({ walletId, data, expiresAt }) {
            const text = canonicalize({
              ...{
                proposalId: "proposal-1",
                purpose: "defi proposal",
                threshold: 2,
                title: storedTitle,
                walletId,
              },
              createdAt: timestampDate(createdAt).toISOString(),
              data: Buffer.from(data).toString("base64"),
              expiresAt: expiresAt && timestampDate(expiresAt).toISOString(),
            });
            const signingHash = Uint8Array.from(Buffer.from(hash(text ?? ""), "hex"));
            return { proposal: { proposalId: "proposal-1", createdAt, signingHash } };
          },
        }),
      );
      const proposed = await propose(caller, { walletId: "wallet-1" }, { title: "A roof", text: "grüße" });
      expect(proposed).toMatchObject({ proposalId: "proposal-1", isSame });
    });
  }
});

describe("signing a proposal", () => {
  const proposed = { proposalId: "proposal-1", hash: new Uint8Array(32) };
  let signedBy: string[] = [];
  const caller = createFakeCaller(({ service }) =>
    service(DefiService, {
      signProposal({ signer }) {
        if (signedBy.includes(signer)) refuse();
        signedBy = [...signedBy, signer];
        return { proposal: { signedBy, signatureCount: signedBy.length } };
      },
    }),
  );

  it("counts a valid signature, and shows the refusal of the second time", async () => {
    signedBy = [];
    const signed = await signTwice(caller, await gatherSigners(caller, false), proposed);
    expect(signed).toMatchObject({ count: 1, verdicts: { browser: true, server: true } });
    expect(signed.again).toMatchObject({ code: "FAILED_PRECONDITION" });
  });

  it("finds that a signer signed something else", async () => {
    const { grace } = await gatherSigners(caller, false);
    const other = { ...grace, sign: () => grace.sign(caller, Uint8Array.of(1)) };
    expect(await signAs(caller, other, proposed)).toMatchObject({ verdicts: { browser: false } });
  });

  it("finds that a stranger's signature is not Grace's", async () => {
    const refusing = createFakeCaller(({ service }) => service(DefiService, { signProposal: refuse }));
    const found = await signAsStranger(refusing, await gatherSigners(caller, false), proposed);
    expect(found).toMatchObject({ isGraces: false, asGrace: { code: "FAILED_PRECONDITION" } });
  });
});

describe("executeTwice", () => {
  it("shows the status, and the refusal of the second time", async () => {
    let isExecuted = false;
    const caller = createFakeCaller(({ service }) =>
      service(DefiService, {
        executeProposal() {
          if (isExecuted) refuse();
          isExecuted = true;
          return { proposal: { proposalStatus: "EXECUTED" } };
        },
      }),
    );
    const { status, again } = await executeTwice(caller, { proposalId: "p", hash: new Uint8Array() });
    expect({ status, code: again.code }).toEqual({ status: "EXECUTED", code: "FAILED_PRECONDITION" });
  });
});

function hash(content: Uint8Array | string): string {
  return createHash("sha256").update(content).digest("hex");
}
