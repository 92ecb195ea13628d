import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { qsp, qspDone, qspJson, startQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();

describe("qsp wallet", { timeout }, () => {
  it("makes a wallet, signs with it, and answers yes or no to a signature", async () => {
    const place = server.place();
    const { walletId, address } = await qspJson(
      ["wallet", "create", "savings", "--public-key", "w.pub"],
      place,
    );
    expect(await qspDone(["wallet", "list"], place)).toContain(String(address));
    await qspDone(["wallet", "sign", String(walletId), "pay 10", "--out", "s"], place);
    const line = (data: string) => ["wallet", "verify", data, "--signature", "s", "--public-key", "w.pub"];
    expect(await qsp(line("pay 10"), place)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(String(address)),
    });
    expect(await qsp(line("pay 11"), place)).toMatchObject({ code: 1 });
  });

  it("prints a signature in base64 if it goes to no file", async () => {
    const place = server.place();
    const { walletId } = await qspJson(["wallet", "create"], place);
    writeFileSync(join(place.cwd, "s"), await qspDone(["wallet", "sign", String(walletId), "pay"], place));
    expect(Buffer.from(readFileSync(join(place.cwd, "s"), "utf8"), "base64")).toHaveLength(3309);
  });
});

describe("qsp chain", { timeout }, () => {
  it("adds blocks, lists and checks them", async () => {
    const place = server.place();
    const { validatorAddress } = await qspJson(["chain", "validator", "north"], place);
    expect(await qspDone(["chain", "validators"], place)).toContain(`${validatorAddress}  REGISTERED  `);
    const added = await qspJson(["chain", "add", "hello", "--validator", String(validatorAddress)], place);
    expect(added).toMatchObject({ block: { validatorAddress, data: "aGVsbG8=" } });
    expect(await qspDone(["chain", "list"], place)).toMatch(/^0 .* genesis\n(.*\n)*\d+ .* hello$/m);
    expect(await qspDone(["chain", "check"], place)).toMatch(/^The chain is valid: \d+ blocks\.\n$/);
  });

  it("watches blocks as they come", async () => {
    const chain = server.client(BlockchainService);
    await chain.registerNode({});
    const { block } = await chain.addBlock({ data: Buffer.from("before") });
    const line = ["chain", "watch", "--from", String(block?.index), "--count", "2", "--json"];
    const { child, end } = startQsp(line, server.place());
    await new Promise((resolve) => child.stdout?.once("data", resolve));
    await chain.addBlock({ data: Buffer.from("after") });
    const { code, stdout } = await end;
    const seen = stdout
      .trimEnd()
      .split("\n")
      .map((answer) => JSON.parse(answer).block);
    expect(code).toBe(0);
    expect(seen.map(({ data }) => Buffer.from(data, "base64").toString())).toEqual(["before", "after"]);
  });

  it("prints what steers a terminal as something else", async () => {
    await server.client(BlockchainService).registerNode({});
    await server.client(BlockchainService).addBlock({ data: Buffer.from("\u001b[31mred") });
    expect(await qspDone(["chain", "list"], server.place())).not.toContain("\u001b");
  });
});

describe("qsp nft", { timeout }, () => {
  it("mints, shows, transfers and verifies a token", async () => {
    const place = server.place();
    const { tokenId } = await qspJson(["nft", "mint", "Sky", "--description", "at night"], place);
    const owner = `0x${"ab".repeat(20)}`;
    expect(await qspJson(["nft", "transfer", String(tokenId), owner], place)).toMatchObject({
      currentOwner: owner,
    });
    expect(await qspDone(["nft", "show", String(tokenId)], place)).toMatch(/^description +at night$/m);
    expect(await qspDone(["nft", "list", "--owner", owner], place)).toContain(String(tokenId));
    expect(await qspDone(["nft", "verify", String(tokenId)], place)).toContain("is valid");
  });

  it("transfers only from the owner that is named", async () => {
    const { tokenId } = await server.client(NftService).mint({ name: "Sky" });
    const line = ["nft", "transfer", tokenId, `0x${"ab".repeat(20)}`, "--from", `0x${"00".repeat(20)}`];
    expect(await qsp(line, server.place())).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("OWNER_MISMATCH"),
    });
  });
});

describe("qsp proposal", { timeout }, () => {
  it("is signed by signers with keys of their own, and executed once enough of them did", async () => {
    const place = server.place();
    for (const name of ["ada", "bob", "eve"]) await qspDone(["keygen", name], place);
    const created = ["multisig", "create", "--signer", "ada.pub", "--signer", "bob.pub", "--threshold", "2"];
    const { walletId } = await qspJson(created, place);
    const proposed = await qspJson(
      ["proposal", "create", String(walletId), "pay", "--title", "June", "--expires", "2999-01-01T00:00:00Z"],
      place,
    );
    const { proposalId } = proposed.proposal as { proposalId: string };
    const sign = (name: string) => qsp(["proposal", "sign", proposalId, "--key-file", `${name}.key`], place);
    expect(await sign("ada")).toMatchObject({ code: 0, stdout: expect.stringContaining("1 of 2") });
    expect(await qsp(["proposal", "execute", proposalId], place)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("THRESHOLD_NOT_REACHED"),
    });
    expect(await sign("eve")).toMatchObject({ code: 3, stderr: expect.stringContaining("SIGNER_UNKNOWN") });
    expect(await sign("bob")).toMatchObject({ code: 0, stdout: expect.stringContaining("2 of 2") });
    expect(await qspDone(["proposal", "execute", proposalId], place)).toMatch(/^status +EXECUTED$/m);
  });

  it("is not signed here if somebody changed it in the store, and its list says so", async () => {
    const place = server.place();
    for (const name of ["ada", "bob"]) await qspDone(["keygen", name], place);
    const created = ["multisig", "create", "--signer", "ada.pub", "--signer", "bob.pub", "--threshold", "1"];
    const { walletId } = await qspJson(created, place);
    const { proposal } = await qspJson(["proposal", "create", String(walletId), "pay bob"], place);
    const { proposalId } = proposal as { proposalId: string };
    server.tamper(
      `update defi_proposals set data = cast('pay eve' as blob) where proposal_id = '${proposalId}'`,
    );
    expect(await qspDone(["proposal", "list", String(walletId)], place)).toMatch(/ DAMAGED: /);
    expect(await qsp(["proposal", "sign", proposalId, "--key-file", "ada.key"], place)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`proposal ${proposalId} was changed`),
    });
  });

  it("is signed by signers of the server", async () => {
    const { walletId, signers } = await server
      .client(DefiService)
      .createMultisig({ signerCount: 1, threshold: 1 });
    const { proposal } = await server
      .client(DefiService)
      .createProposal({ walletId, data: Buffer.from("pay") });
    const line = ["proposal", "sign", proposal?.proposalId ?? "", "--signer", signers[0] ?? ""];
    expect(await qspDone(line, server.place())).toContain("1 of 1");
    expect(await qspDone(["multisig", "list"], server.place())).toContain(walletId);
  });

  it.each([
    [["proposal", "create", "w", "pay", "--expires", "tomorrow"], "--expires"],
    [["proposal", "sign", "p"], "--key-file"],
    [["multisig", "create", "--threshold", "1"], "--signers"],
    [["multisig", "create", "--signers", "2"], "--threshold"],
  ])("refuses %j", async (args, named) => {
    const { code, stderr } = await qsp(args, server.place());
    expect({ code, isNamed: stderr.includes(named) }).toEqual({ code: 2, isNamed: true });
  });
});

describe("qsp health", { timeout }, () => {
  it("shows all services that are up", async () => {
    const { services } = await qspJson(["health"], server.place());
    expect(new Set(Object.values(services as Record<string, string>))).toEqual(new Set(["UP"]));
    expect(Object.keys(services as object)).toHaveLength(10);
  });
});

describe("qsp health of a server of some services", { timeout }, () => {
  const some = useServer({ QSP_SERVICES: "kms" });

  it("tells which are not served", async () => {
    expect(await qspJson(["health"], some.place())).toMatchObject({
      services: { "kms.KmsService": "UP", "nft.NftService": "NOT_SERVED" },
    });
  });
});
