/** `qsp tunnel`: acts as a peer of the gateway, with its own half of the key agreement. */

import { existsSync, rmSync } from "node:fs";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { answerVerb, listVerb, unaryVerb } from "../../call-verbs.ts";
import { inputFile } from "../../command-line/options.ts";
import { distrustError, exitCodes, usageError } from "../../exit-codes.ts";
import { readState, withNewState } from "../../files/state.ts";
import { parsePublicKey, readPublicKey, withProvider } from "../../keys/read-keys.ts";
import { bytes, counted } from "../../output/output.ts";
import { readWithProgress } from "../../output/progress.ts";
import { declareVerb, type Verb, type VerbInput } from "../../verb.ts";
import { maxPacketBytes, type OpenTunnel, pingOnce, replayPacket, sendContent } from "./packets.ts";
import { askGatewayKeys, shakeHands, toHandshake, tunnelKind, tunnelOption } from "./peer.ts";

const { method } = VpnService;

export const tunnelVerbs: readonly Verb[] = [
  answerVerb(method.registerPeer.output, up, {
    line: "tunnel up [NAME]",
    options: {
      ...tunnelOption,
      "gateway-identity": inputFile(
        "Public key that the gateway must sign with, PEM or a JWK; default: trusts and stores the key that the gateway sends",
      ),
    },
    meaning:
      "Registers a peer with its own key and makes a handshake: encapsulates to the gateway's key, and verifies its\n" +
      "signature and its key confirmation. Stores the gateway's keys; later verbs accept no others.",
    example: "qsp tunnel up laptop --tunnel laptop.json",
    say: ({ tunnelId: tunnel, assignedIp: address }, { files }) => ({
      ...{ tunnel, address },
      handshake: "the gateway's signature and its key confirmation are valid",
      file: files.need("tunnel"),
    }),
  }),
  declareVerb({
    line: "tunnel ping",
    options: {
      ...tunnelOption,
      count: { value: "NUMBER", meaning: "Number of packets, 1 to 100000; default: 4" },
      size: { value: "BYTES", meaning: `Bytes in each packet, 1 to ${maxPacketBytes}; default: 64` },
      replay: { meaning: "Sends the last packet again, which the gateway must refuse" },
    },
    meaning: "Agrees on a session key, and sends packets to the gateway and back.",
    example: "qsp tunnel ping --count 2 --replay",
    run: ping,
  }),
  declareVerb({
    line: "tunnel send FILE",
    operandFiles: { FILE: "reads" },
    options: tunnelOption,
    meaning: "Agrees on a session key, and sends a file of any size, - for standard input, as packets.",
    example: "qsp tunnel send contract.txt",
    run: send,
  }),
  listVerb(method.listTunnels, {
    line: "tunnel list",
    meaning: "Lists the gateway's tunnels.",
    items: ({ tunnels }) => tunnels,
    none: "There are no tunnels.",
    columns: {
      TUNNEL: "tunnelId",
      NAME: "peerName",
      ADDRESS: "assignedIp",
      SESSION: "sessionStatus",
      PACKETS: "packetCount",
      BYTES: "byteCount",
    },
  }),
  unaryVerb(method.disconnect, {
    line: "tunnel down",
    options: tunnelOption,
    meaning: "Ends the tunnel and removes its file.",
    ask: ({ files, server }) => {
      const { tunnelId } = readState(files.need("tunnel"), server.url, tunnelKind);
      return { tunnelId };
    },
    finish: (_, { files }) => rmSync(files.need("tunnel")),
    say: ({ tunnelId, tunnelStatus }) => `${tunnelId} is ${tunnelStatus}.`,
  }),
];

async function up({ operands: [peerName = ""], files, options, server }: VerbInput) {
  const path = files.need("tunnel");
  if (existsSync(path)) throw usageError(`${path} already exists; qsp tunnel down ends its tunnel`);
  const identityFile = options.text("gateway-identity");
  return withProvider(async (provider) => {
    const keys = await askGatewayKeys(provider, server);
    if (identityFile !== undefined) {
      const pinned = readPublicKey(provider, identityFile).toPem();
      if (parsePublicKey(provider, keys.gatewayIdentityPem, "the gateway's identity").toPem() !== pinned)
        throw distrustError(`the identity of the gateway at ${server.url} differs from ${identityFile}`);
    }
    const { publicKey, secretKey } = await provider.generateKeyPair("ML-KEM-1024");
    return withNewState(path, async (keep) => {
      const answer = await server.ask(method.registerPeer, { peerName, publicKeyPem: publicKey.toPem() });
      const { tunnelId, assignedIp } = answer;
      const state = { url: server.url, tunnelId, assignedIp, secretKeyPem: secretKey.toPem(), ...keys };
      keep(state);
      await shakeHands(await toHandshake(provider, server, state, path));
      return answer;
    });
  });
}

/** Negotiates a session key and runs a function with the session. */
function withSession(
  { files, server }: VerbInput,
  use: (tunnel: OpenTunnel) => Promise<number>,
): Promise<number> {
  const path = files.need("tunnel");
  const state = readState(path, server.url, tunnelKind);
  return withProvider(async (provider) => {
    const session = await shakeHands(await toHandshake(provider, server, state, path));
    return use({ server, session, tunnelId: state.tunnelId });
  });
}

function ping(input: VerbInput): Promise<number> {
  const { options, output } = input;
  const count = options.whole("count", 1, 100_000) ?? 4;
  const size = options.whole("size", 1, maxPacketBytes) ?? 64;
  return withSession(input, async (tunnel) => {
    const timesMs: number[] = [];
    let packet = new Uint8Array();
    for (let i = 1; i <= count; i += 1) {
      const round = await pingOnce(tunnel, size);
      packet = round.packet;
      timesMs.push(round.roundTripMs);
      if (!output.isJson)
        output.print(`packet ${i}: ${bytes(size)} there and back in ${milliseconds(round.roundTripMs)}`);
    }
    const replay = options.flag("replay") ? await replayPacket(tunnel, packet) : undefined;
    if (options.flag("replay") && replay !== "PACKET_REPLAYED")
      throw distrustError("the gateway accepted a packet twice");
    const meanMs = timesMs.reduce((sum, time) => sum + time, 0) / count;
    output.report(
      {
        tunnelId: tunnel.tunnelId,
        packets: count,
        size,
        meanMs,
        maxMs: Math.max(...timesMs),
        ...(replay && { replay }),
      },
      `${counted(count, "packet")} there and back, ${milliseconds(meanMs)} on average` +
        (replay === undefined ? "" : `; the gateway refused the repeated last packet (${replay})`),
    );
    return exitCodes.done;
  });
}

function send(input: VerbInput): Promise<number> {
  const { operands, output } = input;
  const chunks = readWithProgress(operands[0] ?? "");
  return withSession(input, async (tunnel) => {
    const sent = await sendContent(tunnel, chunks);
    output.report(
      { tunnelId: tunnel.tunnelId, ...sent },
      `${counted(sent.packets, "packet")}, ${bytes(sent.bytes)}, as the gateway received them`,
    );
    return exitCodes.done;
  });
}

function milliseconds(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}
