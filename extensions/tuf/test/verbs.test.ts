/** `qsp tuf`: a repository from the ceremony to the file, and what a signer refuses. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { RepositoryService } from "#gen/tuf/repository_service_pb.ts";
import { qsp, qspDone, qspJson, timeout, useServer } from "../../../test/cli/qsp.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

const server = useServer();
const repository = "plant";

interface Proposed {
  readonly proposal: { readonly proposalId: string };
}

describe("qsp tuf", { timeout, shuffle: false }, () => {
  let proposalId = "";

  let place: ReturnType<typeof server.place>;

  beforeAll(async () => {
    place = { cwd: makeTemporaryDirectory(afterAll), url: server.url };
    for (const name of ["ada", "bob", "eve"]) await qspDone(["keygen", name], place);
    const signers = ["--signer", "ada.pub", "--signer", "bob.pub", "--threshold", "2"];
    const { walletId } = (await qspJson(["multisig", "create", ...signers], place)) as { walletId: string };
    const { proposal } = (await qspJson(["tuf", "init", repository, walletId], place)) as unknown as Proposed;
    proposalId = proposal.proposalId;
  }, timeout);

  const signRoot = (...options: string[]) =>
    qsp(["tuf", "sign-root", repository, proposalId, ...options], place);
  /** Signs the root that the server shows. */
  const signWith = async (keyFile: string) => {
    const [, sha256 = ""] = /^sha256 +(.*)$/m.exec((await signRoot()).stdout) ?? [];
    return signRoot("--key-file", keyFile, "--sha256", sha256);
  };

  it("names the signers whose public keys are known, next to their key IDs", async () => {
    const { stdout } = await signRoot("--known", "bob.pub", "--known", "eve.pub");
    expect(stdout).toMatch(/^0x[0-9a-f]{40} +[0-9a-f]{64} +bob\.pub$/m);
    expect(stdout.match(/^0x/gm)).toHaveLength(2);
    expect(stdout).not.toContain("eve.pub");
  });

  it("signs only the root that the signer has read, and only with a signer's key", async () => {
    for (const [args, code, message] of [
      [[], 2, "read the root before you sign it"],
      [["--sha256", "0".repeat(64)], 1, "not the one that you read"],
    ] as const) {
      const stderr = expect.stringContaining(message);
      expect(await signRoot("--key-file", "ada.key", ...args)).toMatchObject({ code, stderr });
    }
    const stderr = expect.stringContaining("which is no signer of this root");
    expect(await signWith("eve.key")).toMatchObject({ code: 2, stderr });
    const { proposal } = await server.client(RepositoryService).getRootProposal({ repository, proposalId });
    expect(proposal?.signers.some(({ hasSigned, hasVoted }) => hasSigned || hasVoted)).toBe(false);
  });

  it("publishes a root once enough signers have signed", async () => {
    await signWith("ada.key");
    const early = await qsp(["tuf", "publish-root", repository, proposalId], place);
    expect(early).toMatchObject({ code: 3, stderr: expect.stringContaining("THRESHOLD_NOT_REACHED") });
    await signWith("bob.key");
    expect(await qspDone(["tuf", "status", repository], place)).toMatch(/root .* 2 of the wallet's signers/);
    const publish = () => qsp(["tuf", "publish-root", repository, proposalId], place);
    const [winner, loser] = (await Promise.all([publish(), publish()])).sort(({ code }) =>
      code === 0 ? -1 : 1,
    );
    expect(winner).toMatchObject({ code: 0, stdout: expect.stringMatching(/root +1 .* 2 of 2 signers/) });
    expect(loser).toMatchObject({ stderr: expect.stringContaining("ROOT_OUTDATED") });
    const { proposals } = await server.client(DefiService).listProposals({ proposalStatus: "EXECUTED" });
    expect(proposals.map((one) => one.proposalId)).toEqual([proposalId]);
  });

  it("adds, publishes and removes a file", async () => {
    writeFileSync(join(place.cwd, "app.bin"), randomBytes(3_000_000));
    const added = ["tuf", "add", repository, "sensor/app.bin", "app.bin", "--device-type", "sensor"];
    expect(await qspDone(added, place)).toBe("sensor/app.bin: 3,000,000 bytes, not published yet\n");
    const publish = () => qspDone(["tuf", "publish", repository], place);
    expect(await publish()).toContain("1 target added or replaced, 0 removed");
    await qspDone(["tuf", "remove", repository, "sensor/app.bin"], place);
    expect(await publish()).toContain("0 targets added or replaced, 1 removed");
  });

  it("delegates a device type, and shows the state of its key", async () => {
    const done = (...args: string[]) => qspDone(["tuf", ...args], place);
    expect(await done("delegate", repository, "sensor")).toMatch(/^role +sensor\nkey +key-/);
    expect(await done("status", repository)).toMatch(/sensor .* with the next publish/);
    const { repository: found } = await server.client(RepositoryService).getRepository({ repository });
    const keyId = found?.roles.find(({ role }) => role === "sensor")?.keyId ?? "";
    await server.client(KmsService).disableKey({ keyId });
    expect(await done("status", repository)).toMatch(/sensor .* DISABLED +with the next/);
  });

  it("replaces root signers: the current ones vote, and the new ones sign", async () => {
    const signers = ["--signer", "bob.pub", "--signer", "eve.pub", "--threshold", "2"];
    const { walletId } = await qspJson(["multisig", "create", ...signers], place);
    const proposed = await qspJson(["tuf", "rotate", repository, "--wallet", String(walletId)], place);
    proposalId = (proposed as unknown as Proposed).proposal.proposalId;
    for (const name of ["ada", "bob"]) await signWith(`${name}.key`);
    const early = await qsp(["tuf", "publish-root", repository, proposalId], place);
    expect(early).toMatchObject({ code: 3, stderr: expect.stringContaining("THRESHOLD_NOT_REACHED") });
    expect((await signWith("eve.key")).stdout).toMatch(/voted +2 of 2\nsigned +2 of 2/);
    expect(await qspDone(["tuf", "publish-root", repository, proposalId], place)).toContain(String(walletId));
  });
});
