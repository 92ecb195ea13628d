/** What lists say of records that somebody changed straight in the database. */
import { expect, it } from "vitest";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { bytesOf, describeService, present } from "./service-server.ts";

/** Who had a record before, and who has it now. */
const thief = "mallory";

interface Listed {
  readonly damaged?: boolean | undefined;
}

/** Of two records the first was changed: it is marked, and the other is not. */
function expectFirstMarked(listed: readonly Listed[]): void {
  expect(listed.map(({ damaged }) => damaged)).toEqual([true, undefined]);
}

describeService("WalletService.ListWallets", WalletService, (start) => {
  it.each([{ owner: thief }, { label: "other" }, { address: `0x${"0".repeat(40)}` }])(
    "marks a wallet that somebody changed: %j",
    async (change) => {
      const { client, tamper } = await start();
      const { walletId } = await client.createWallet({});
      await client.createWallet({});
      await tamper(async (db) => {
        await db.updateTable("wallets").set(change).where("wallet_id", "=", walletId).execute();
      });
      expectFirstMarked((await client.listWallets({})).wallets);
    },
  );
});

describeService("VpnService.ListTunnels", VpnService, (start) => {
  it.each([{ owner: thief }, { peer_name: "other" }, { address_number: 77 }])(
    "marks a tunnel that somebody changed: %j",
    async (change) => {
      const { client, tamper } = await start();
      const { tunnelId } = await client.registerPeer({});
      await client.registerPeer({});
      await tamper(async (db) => {
        await db.updateTable("vpn_tunnels").set(change).where("tunnel_id", "=", tunnelId).execute();
      });
      expectFirstMarked((await client.listTunnels({})).tunnels);
    },
  );
});

describeService("NftService.ListTokens", NftService, (start) => {
  it.each([{ minter: thief }, { name: "other" }, { current_owner: `0x${"0".repeat(40)}` }])(
    "marks a token that somebody changed: %j",
    async (change) => {
      const { client, tamper } = await start();
      const { tokenId } = await client.mint({ name: "one" });
      await client.mint({ name: "two" });
      await tamper(async (db) => {
        await db.updateTable("nft_tokens").set(change).where("token_id", "=", tokenId).execute();
      });
      expectFirstMarked((await client.listTokens({})).tokens);
    },
  );
});

describeService("DefiService's lists", DefiService, (start) => {
  it.each([{ owner: thief }, { threshold: 1 }])("mark a wallet that somebody changed: %j", async (change) => {
    const { client, tamper } = await start();
    const { walletId } = await client.createMultisig({ threshold: 2, signerCount: 2 });
    await client.createMultisig({ threshold: 2, signerCount: 2 });
    await tamper(async (db) => {
      await db.updateTable("defi_wallets").set(change).where("wallet_id", "=", walletId).execute();
    });
    expectFirstMarked((await client.listWallets({})).wallets);
  });

  it.each([{ owner: thief }, { data: bytesOf("pay mallory") }, { proposal_status: "EXECUTED" }])(
    "mark a proposal that somebody changed: %j",
    async (change) => {
      const { client, tamper } = await start();
      const { walletId } = await client.createMultisig({ threshold: 1, signerCount: 1 });
      const propose = async () =>
        present((await client.createProposal({ walletId, data: bytesOf("pay bob") })).proposal);
      const { proposalId } = await propose();
      await propose();
      await tamper(async (db) => {
        await db.updateTable("defi_proposals").set(change).where("proposal_id", "=", proposalId).execute();
      });
      expectFirstMarked((await client.listProposals({})).proposals);
    },
  );
});

describeService("DappService.ListContracts", DappService, (start) => {
  it.each([
    { owner: thief },
    { name: "other" },
    { code_hash: "0".repeat(64) },
    { public_key: new Uint8Array(1952) },
    { deployed_at_ms: 1 },
    { record_tag: "" },
  ])("marks a contract that somebody changed: %j", async (change) => {
    const { client, tamper } = await start();
    const { contractId } = await client.deployContract({ code: "one" });
    await client.deployContract({ code: "two" });
    await tamper(async (db) => {
      await db.updateTable("dapp_contracts").set(change).where("contract_id", "=", contractId).execute();
    });
    expectFirstMarked((await client.listContracts({})).contracts);
  });
});
