/** Refusals of every kind of field and of most codes. Which calls are refused is for the tests of the services. */
import type { DescMethod } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import type { Members } from "../openapi/call-examples.ts";
import { toCall } from "./calls.ts";
import type { Tested } from "./client-tests.ts";

/** Nothing has this ID, which needs care in a path, in a query and in JSON. */
export const oddId = 'no such/key? "é" & 100%+😀';

const data = Buffer.from("hello").toString("base64");

type Refused = readonly [title: string, method: DescMethod, request: Members, code: string, reason: string];

const refused: readonly Refused[] = [
  ["an unknown ID in a path", KmsService.method.getKey, { keyId: oddId }, "NOT_FOUND", "KEY_NOT_FOUND"],
  [
    "an unknown ID beside a body",
    WalletService.method.signTransaction,
    { walletId: oddId, data },
    "NOT_FOUND",
    "WALLET_NOT_FOUND",
  ],
  [
    "an unknown ID in a body",
    VpnService.method.handshake,
    { tunnelId: oddId },
    "NOT_FOUND",
    "TUNNEL_NOT_FOUND",
  ],
  [
    "an unknown ID that a method with GET has",
    NftService.method.getHistory,
    { tokenId: oddId },
    "NOT_FOUND",
    "TOKEN_NOT_FOUND",
  ],
  [
    "a wrong page token in a query",
    KmsService.method.listKeys,
    { pageToken: oddId },
    "INVALID_ARGUMENT",
    "FIELD_INVALID",
  ],
  ["a call without a token", TokenService.method.getSecureData, {}, "UNAUTHENTICATED", "TOKEN_MISSING"],
];

/** Tests that a client is told the code and the reason of a refusal. */
export function testRefusals({ driver, nextServer }: Tested): void {
  describe("is told why a call is refused:", () => {
    it.each(refused)("%s", async (_title, method, request, code, reason) => {
      const server = nextServer(method.parent);
      expect(await driver.call(server.url, toCall(server, method, request))).toEqual({
        refusal: { code, reason },
      });
    });
  });
}
