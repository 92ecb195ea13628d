/** `qsp wireguard up`: the agent beside a WireGuard interface, of a peer or of the gateway. */
import { lookup } from "node:dns/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { type WatchPeersResponse, WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { type ApiClient, oneOf } from "../../src/cli/connection/api-client.ts";
import { type AuthorizedServer, createAuthorizedServer } from "../../src/cli/connection/credentials.ts";
import { CliError, exitCodes, usageError } from "../../src/cli/exit-codes.ts";
import { withProvider } from "../../src/cli/keys/read-keys.ts";
import { declareVerb, type Verb, type VerbInput } from "../../src/cli/verb.ts";
import { openLog } from "../../src/server/log.ts";
import { describeSystemError } from "../../src/system-error.ts";
import type { AgentDeps } from "./agent.ts";
import { runGatewayAgent } from "./gateway-agent.ts";
import { openInterface, type WireguardInterface } from "./interface.ts";
import { InterfaceError } from "./interface-driver.ts";
import { type KeyTiming, keyTiming } from "./key-state.ts";
import { runPeerAgent } from "./peer-agent.ts";
import { agreeOnKey, fetchTunnel } from "./peer-agreement.ts";
import { openPeer, readPeerState } from "./peer-state.ts";
import { openAgentTokens, tokenOptions } from "./tokens.ts";

const { method } = WireguardService;

/** Creates the verb. Only tests change its timing. */
export function createUpVerbs(timing: KeyTiming = keyTiming): readonly Verb[] {
  return [
    declareVerb({
      line: "wireguard up",
      options: {
        interface: { value: "NAME", meaning: "WireGuard interface, such as wg0" },
        state: {
          value: "FILE",
          meaning: "Peer: file that qsp wireguard join wrote",
          file: "reads",
          isSecret: true,
        },
        gateway: { meaning: "Gateway: manages the interface's peers in 10.8.0.0/16" },
        endpoint: { value: "HOST:PORT", meaning: "Gateway: where peers reach the interface" },
        ...tokenOptions,
      },
      meaning:
        "Runs beside a WireGuard interface, and gives its peers a new pre-shared key every two minutes. Peers agree on\n" +
        "the keys with the server; the gateway receives them. Without a recent agreement the keys are random, and no\n" +
        "handshake succeeds. Needs the right to change the interface. Logs JSON lines to standard error. The first signal\n" +
        "leaves random keys behind; the second ends the agent immediately.",
      example: "qsp wireguard up --interface wg0 --state peer.json",
      isService: true,
      run: (input) => up(input, timing),
      explain: (error) =>
        error instanceof InterfaceError ? new CliError(exitCodes.unreachable, error.message) : undefined,
    }),
  ];
}

async function up(input: VerbInput, timing: KeyTiming): Promise<number> {
  const { options, server } = input;
  const isGateway = options.flag("gateway");
  if (isGateway === (options.text("state") !== undefined))
    throw usageError("use exactly one of --state, for a peer, and --gateway");
  if (!isGateway && options.text("endpoint") !== undefined)
    throw usageError("--endpoint is for --gateway; a peer has the gateway's endpoint in its file");
  // Pre-shared keys or tokens travel over this connection.
  server.requirePrivacy();
  const wireguard = openInterface(options.need("interface"));
  const scope = isGateway ? "wireguard.gateway" : "wireguard.peer";
  const authorized = createAuthorizedServer(server, openAgentTokens(options, server, scope));
  const log = openLog({ level: "info", base: null });
  const deps: AgentDeps = { wireguard, timing, log, now: Date.now, url: server.url };
  const run = isGateway ? runGateway : runPeer;
  await run(input, authorized, deps, stopOnSignal(log));
  return exitCodes.done;
}

async function runGateway(
  { options, output }: VerbInput,
  authorized: AuthorizedServer,
  deps: AgentDeps,
  stop: AbortSignal,
): Promise<void> {
  const { wireguard, url } = deps;
  const endpoint = options.need("endpoint");
  const publicKey = await readOwnKey(wireguard);
  const request = { wireguardPublicKey: Uint8Array.fromBase64(publicKey), endpoint };
  report(output, wireguard, { gateway: true, endpoint, publicKey, url });
  await runGatewayAgent(
    {
      ...deps,
      watch: () => watchPeers(authorized, request),
      report: async (key) => (await authorized.call((server) => server.ask(method.reportKey, key))).awaited,
    },
    stop,
  );
}

async function* watchPeers(
  authorized: AuthorizedServer,
  request: MessageInitShape<typeof method.watchPeers.input>,
): AsyncGenerator<WatchPeersResponse> {
  const { first, others } = await authorized.call(async (server) => {
    const events = server.stream(method.watchPeers, oneOf(request));
    // The first event shows whether the server accepts the token.
    return { first: await events.next(), others: events };
  });
  if (first.done) return;
  yield first.value;
  yield* others;
}

async function runPeer(
  { files, output }: VerbInput,
  authorized: AuthorizedServer,
  deps: AgentDeps,
  stop: AbortSignal,
): Promise<void> {
  const { wireguard, url } = deps;
  const path = files.need("state");
  const state = readPeerState(path, url);
  const publicKey = await readOwnKey(wireguard);
  if (publicKey !== state.wireguardPublicKey)
    throw usageError(
      `${path} was made for the WireGuard key ${state.wireguardPublicKey}, but ${wireguard.name} has ${publicKey}`,
    );
  const endpoint = await resolveEndpoint(state.gatewayEndpoint);
  await withProvider(async (provider) => {
    const peer = await openPeer(provider, state, path);
    const server: Pick<ApiClient, "ask"> = {
      ask: (called, request, limits) =>
        authorized.call((client) => client.ask(called, request, limits), limits),
    };
    const agree = async (): Promise<Uint8Array> => {
      const { lastEpoch, serverTimeMs } = await fetchTunnel({ server, provider, peer });
      // Neither the peer's clock nor an unsigned one.
      return agreeOnKey({ server, provider, peer }, Math.max(lastEpoch + 1, serverTimeMs));
    };
    const gateway = {
      publicKey: state.gatewayWireguardPublicKey,
      allowedIps: [`${state.gatewayAddress}/32`],
      endpoint,
    };
    report(output, wireguard, { tunnelId: state.tunnelId, endpoint, publicKey, url });
    try {
      await runPeerAgent({ ...deps, agree }, gateway, stop);
    } finally {
      peer.registeredKey.erase();
    }
  });
}

function report(
  output: VerbInput["output"],
  { name }: WireguardInterface,
  facts: Readonly<Record<string, unknown>>,
): void {
  output.report({ interface: name, ...facts }, `qsp wireguard is up on ${name}`);
}

/** @throws CliError for an interface without a key */
async function readOwnKey(wireguard: WireguardInterface): Promise<string> {
  const publicKey = await wireguard.readPublicKey();
  if (publicKey === undefined)
    throw usageError(
      `${wireguard.name} has no private key; set one with wg set ${wireguard.name} private-key FILE`,
    );
  return publicKey;
}

/** Resolves the host: UAPI accepts only addresses. */
async function resolveEndpoint(endpoint: string): Promise<string> {
  const [, bracketed, host = bracketed ?? "", port] =
    /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(endpoint) ?? [];
  if (port === undefined)
    throw usageError(`the gateway's endpoint "${endpoint}" is not HOST:PORT; join again`);
  try {
    const { address, family } = await lookup(host);
    return family === 6 ? `[${address}]:${port}` : `${address}:${port}`;
  } catch (error) {
    throw new CliError(
      exitCodes.unreachable,
      `the gateway's host ${host} cannot be resolved: ${describeSystemError(error)}`,
    );
  }
}

/** Aborts at the first signal. A second one ends the process. */
function stopOnSignal(log: Logger): AbortSignal {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) process.exit(exitCodes.interrupted);
    log.info({ signal }, "stopping; a second signal ends the agent immediately");
    stop.abort();
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return stop.signal;
}
