import { describe, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { qsp, qspDone, qspJson, startQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();

describe("qsp chain", { timeout }, () => {
  it("watches blocks as they arrive", async () => {
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
});

describe("qsp proposal", { timeout }, () => {
  it("refuses to sign a proposal that was changed in the store, and its list marks it", async () => {
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
});

describe("qsp health of a server with some services", { timeout }, () => {
  const some = useServer({ QSP_SERVICES: "kms" });

  it("reports which services are not served", async () => {
    expect(await qspJson(["health"], some.place())).toMatchObject({
      services: { "kms.KmsService": "UP", "nft.NftService": "NOT_SERVED" },
    });
  });
});
