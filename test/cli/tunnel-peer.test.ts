import { hash } from "node:crypto";
import { createRouterTransport } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import type { ApiClient } from "../../src/cli/connection/api-client.ts";
import { CliError, exitCodes } from "../../src/cli/exit-codes.ts";
import { type OpenTunnel, sendContent } from "../../src/cli/verbs/tunnel/packets.ts";
import {
  createSession,
  type HandshakeDeps,
  type PeerSession,
  shakeHands,
} from "../../src/cli/verbs/tunnel/peer.ts";
import { makeTunnelEnd } from "../../src/client/tunnel-end.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { CryptoProvider, KeyPair } from "../../src/crypto/provider.ts";
import { confirmAsPeer, directionKeysAsPeer, openAsPeer, sealAsPeer } from "../services/vpn-peer.ts";
import { flipBit } from "../support/bytes.ts";

let provider: CryptoProvider;
/** Key pairs of a gateway, an attacker and the peer. */
let keys: Record<"kem" | "identity" | "otherKem" | "otherIdentity" | "peer", KeyPair>;
beforeAll(async () => {
  provider = await createCryptoProvider("openssl");
  const [kem, otherKem, peer, identity, otherIdentity] = await Promise.all([
    provider.generateKeyPair("ML-KEM-1024"),
    provider.generateKeyPair("ML-KEM-1024"),
    provider.generateKeyPair("ML-KEM-1024"),
    provider.generateKeyPair("ML-DSA-65"),
    provider.generateKeyPair("ML-DSA-65"),
  ]);
  keys = { kem, otherKem, peer, identity, otherIdentity };
});
afterAll(() => provider.close());

/** How a gateway deviates from the proto. */
interface Deviation {
  readonly kem?: "otherKem";
  readonly identity?: "otherIdentity";
  readonly transcriptOf?: (genuine: string) => string;
  /** Whether it uses one key for both directions, although it was asked for two. */
  readonly isShared?: true;
}

/** A gateway that answers handshakes as the proto specifies, except for the tested deviation. */
function gatewayThat(deviation: Deviation): HandshakeDeps {
  const transport = createRouterTransport(({ service }) => {
    service(VpnService, {
      async handshake({ tunnelId, ciphertext, keyForm }) {
        expect(keyForm).toBe("PER_DIRECTION");
        const secret = await provider.decapsulate(keys[deviation.kem ?? "kem"].secretKey, ciphertext);
        const peerHash = hash("sha256", keys.peer.publicKey.exportRaw(), "hex");
        const genuine = `${tunnelId}:${Buffer.from(ciphertext).toString("base64")}:${peerHash}`;
        const transcript = deviation.transcriptOf?.(genuine) ?? genuine;
        const { confirm } = directionKeysAsPeer(secret, transcript);
        return {
          transcript,
          signature: Uint8Array.from(
            await provider.sign(keys[deviation.identity ?? "identity"].secretKey, Buffer.from(transcript)),
          ),
          keyConfirmation: deviation.isShared ? confirmAsPeer(secret, transcript) : confirm(transcript),
        };
      },
    });
  });
  const server: Pick<ApiClient, "ask"> = {
    ask: async (method, request) =>
      (await transport.unary(method, undefined, undefined, undefined, request)).message,
  };
  return {
    provider,
    server: server as ApiClient,
    gateway: { kem: keys.kem.publicKey, identity: keys.identity.publicKey },
    tunnelId: "tunnel-1",
    peerPublicKey: keys.peer.publicKey,
  };
}

describe("a peer's handshake", () => {
  const deviations = {
    "a signature by a different identity": { identity: "otherIdentity" },
    "a gateway that derives a different session key": { kem: "otherKem" },
    "a gateway that uses one key for both directions": { isShared: true },
    "a transcript of a different tunnel": {
      transcriptOf: (genuine) => genuine.replace("tunnel-1", "tunnel-2"),
    },
    "a transcript of a different peer": {
      transcriptOf: (genuine) => genuine.replace(/:[0-9a-f]{64}$/, `:${"0".repeat(64)}`),
    },
    "a transcript of a different ciphertext": {
      transcriptOf: (genuine) => genuine.replace(/:(.)/, (_, first) => `:${first === "A" ? "B" : "A"}`),
    },
  } as const satisfies Record<string, Deviation>;

  it("establishes a session with a gateway that follows the proto, and overwrites the shared secret", async () => {
    const deps = gatewayThat({});
    const secrets: Uint8Array[] = [];
    const noting: HandshakeDeps["provider"] = {
      ...provider,
      async encapsulate(publicKey) {
        const made = await provider.encapsulate(publicKey);
        secrets.push(made.sharedSecret);
        return made;
      },
    };
    const session = await shakeHands({ ...deps, provider: noting });
    expect(await session.seal(Buffer.from("a packet"))).toHaveLength(28 + 8);
    expect(secrets).toEqual([new Uint8Array(32)]);
  });

  it.each(Object.entries(deviations))("does not trust %s", async (_, deviation) => {
    await expect(shakeHands(gatewayThat(deviation))).rejects.toMatchObject({ exitCode: 1 });
  });
});

describe("a peer's session", () => {
  const secret = new Uint8Array(32).fill(7);
  const { toGateway, fromGateway } = directionKeysAsPeer(secret, "a transcript");
  const newSession = async (): Promise<PeerSession> =>
    createSession(await makeTunnelEnd(secret, "a transcript"));
  const data = Buffer.from("a packet");
  const sealed = sealAsPeer(fromGateway, data);

  it("exchanges packets with the other key holder, and does not open its own", async () => {
    const session = await newSession();
    expect(openAsPeer(toGateway, await session.seal(data))).toEqual(Uint8Array.from(data));
    expect(Buffer.from(await session.open(sealAsPeer(fromGateway, data)))).toEqual(data);
    await expect(session.open(await session.seal(data))).rejects.toThrow(CliError);
  });

  it("seals each packet with a fresh initialization vector", async () => {
    const session = await newSession();
    const packets = await Promise.all(Array.from({ length: 100 }, () => session.seal(data)));
    expect(new Set(packets.map((packet) => packet.subarray(0, 12).toHex())).size).toBe(100);
  });

  it("rejects a replayed packet", async () => {
    const session = await newSession();
    const packet = sealAsPeer(fromGateway, data);
    await session.open(packet);
    await expect(session.open(packet)).rejects.toThrow("twice");
  });

  it.each([
    ...[0, 12, 19, 20, 35].map(
      (at) => [`a packet with a flipped bit in byte ${at}`, flipBit(sealed, at)] as const,
    ),
    ...[0, 1, 27].map((length) => [`a packet of ${length} bytes`, new Uint8Array(length)] as const),
  ])("rejects %s", async (_what, packet) => {
    await expect((await newSession()).open(packet)).rejects.toThrow(CliError);
  });
});

it("a file is not sent if the gateway ends the stream early", async () => {
  async function* chunks() {
    for (const byte of [1, 2]) yield Uint8Array.of(byte);
  }
  async function* stream(_: unknown, requests: AsyncIterable<unknown>) {
    for await (const _request of requests) {
      yield { result: { case: "received", value: { data: Uint8Array.of(1) } } };
      return;
    }
  }
  const session = { seal: async (data: Uint8Array) => data };
  const tunnel = { server: { stream }, session, tunnelId: "t" } as unknown as OpenTunnel;
  await expect(sendContent(tunnel, chunks())).rejects.toMatchObject({ exitCode: exitCodes.unreachable });
});
