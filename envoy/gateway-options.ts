/** The command line of `npm run gateway`. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { explainTakenOptions } from "../src/cli/command-line/npm-options.ts";

/** An error that the operator can fix. */
export class CannotStart extends Error {}

/** The parsed command line and environment variables. */
export interface GatewayOptions {
  readonly isHelp: boolean;
  readonly port: number;
  readonly replicas: number;
  /** Whether to continue with the other servers when one ends. */
  readonly keepGoing: boolean;
  readonly serverArgs: readonly string[];
  readonly tlsDirectory: string;
  readonly auth: "open" | "token";
}

/** The output of `npm run gateway -- --help`. */
export const gatewayHelp = `usage: npm run gateway -- [options] [-- server settings]

Starts Envoy with TLS on 127.0.0.1, and servers behind it. Creates a private CA and a certificate in tls/ in the data
directory if none exist, and a master key for a new store. The first signal drains, the second stops immediately.

Options:
  --port NUMBER      Port of Envoy, 0 to 65535; 0 picks a free one; default: 8443
  --replicas NUMBER  Servers behind it, 1 to 64; more than one requires a PostgreSQL database; default: 1
  --keep-going       If a server ends, the others continue; otherwise everything stops. If Envoy ends, everything stops
  --help             Prints this help

Server settings are listed by qsp serve --help.

Example:
  $ npm run gateway -- --port 9443 -- --auth token
`;

const flags = {
  port: { type: "string" },
  replicas: { type: "string" },
  "keep-going": { type: "boolean" },
  help: { type: "boolean" },
} as const;

/** @throws CannotStart */
export function readGatewayOptions(args: readonly string[], env: NodeJS.ProcessEnv): GatewayOptions {
  const end = args.includes("--") ? args.indexOf("--") : args.length;
  const own = args.slice(0, end);
  const serverArgs = args.slice(end + 1);
  const options = Object.entries(flags).map(([name, { type }]) =>
    type === "string" ? { name, valueName: "number" } : { name },
  );
  const taken = explainTakenOptions("gateway", options, own, env);
  if (taken !== undefined) throw new CannotStart(taken);
  const { port, replicas, keepGoing, isHelp } = readFlags(own);
  const hasDatabase = flagValueOf("--database-url", serverArgs) ?? env.QSP_DATABASE_URL;
  if (replicas > 1 && !hasDatabase && !isHelp)
    throw new CannotStart("--replicas: several servers share a database; add -- --database-url postgres://…");
  const isEncrypted = ["--tls-cert", "--tls-key"].some((flag) => flagValueOf(flag, serverArgs));
  if (!isHelp && (isEncrypted || env.QSP_TLS_CERT || env.QSP_TLS_KEY))
    throw new CannotStart(
      "--tls-cert, --tls-key (QSP_TLS_CERT, QSP_TLS_KEY): Envoy terminates TLS and reaches its servers without it; leave them out",
    );
  const dataDir = flagValueOf("--data-dir", serverArgs) ?? env.QSP_DATA_DIR ?? "data";
  const hasIssuer = flagValueOf("--issuer-url", serverArgs) ?? env.QSP_ISSUER_URL;
  // One issuer URL for all servers, because clients do not know the servers' own ports. A port not yet chosen is
  // unknown here.
  const issuer = hasIssuer || port === 0 ? [] : ["--issuer-url", `https://localhost:${port}`];
  // The servers reject any other value.
  const auth = (flagValueOf("--auth", serverArgs) ?? env.QSP_AUTH) === "token" ? "token" : "open";
  return {
    ...{ isHelp, port, replicas, keepGoing, auth },
    serverArgs: [...issuer, ...serverArgs],
    tlsDirectory: join(dataDir, "tls"),
  };
}

function readFlags(args: readonly string[]) {
  try {
    const { values } = parseArgs({ args: [...args], options: flags });
    return {
      port: toInteger("port", values.port ?? "8443", 0, 65_535),
      replicas: toInteger("replicas", values.replicas ?? "1", 1, 64),
      keepGoing: values["keep-going"] ?? false,
      isHelp: values.help ?? false,
    };
  } catch (error) {
    if (error instanceof CannotStart) throw error;
    const [sentence] = String(error instanceof Error ? error.message : error).split(". ");
    throw new CannotStart(`${sentence}; put server settings after --; --help lists the options`);
  }
}

function toInteger(name: string, text: string, min: number, max: number): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= min && number <= max) return number;
  throw new CannotStart(`--${name}: "${text}" is not a whole number from ${min} to ${max}`);
}

/** The value of a flag, as "--name value" or "--name=value". */
function flagValueOf(flag: string, args: readonly string[]): string | undefined {
  const index = args.findLastIndex((arg) => arg === flag || arg.startsWith(`${flag}=`));
  if (index < 0) return undefined;
  return args[index] === flag ? args[index + 1] : args[index]?.slice(flag.length + 1);
}
