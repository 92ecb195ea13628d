/** Creates clients for all services of a server, in Node and in browsers. */
import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { isLoopback } from "./loopback.ts";
import { type Services, services } from "./services.ts";

/** One client per service: `clients.kms.sign({ … })`. */
export type Clients = { readonly [Name in keyof Services]: Client<Services[Name]> };

/** What a custom transport is created from. */
export interface TransportInput {
  readonly baseUrl: string;
  readonly interceptors: Interceptor[];
}

/** How the clients authenticate and connect. */
export interface ClientOptions {
  /** Bearer token for every call; a function runs before each call and may return "" for none. */
  readonly token?: string | (() => string | Promise<string>);
  /** Allows sending the token over http to another machine. Only for networks that you control. */
  readonly allowCleartext?: boolean;
  /**
   * Creates the transport, for example `createGrpcTransport` from @connectrpc/connect-node. By default, the clients
   * speak the Connect protocol over `fetch`, which browsers and Node support; `fetch` cannot send a stream of
   * messages.
   */
  readonly createTransport?: (input: TransportInput) => Transport;
}

/** Characters of a bearer token (RFC 6750, section 2.1). */
const tokenPattern = /^[A-Za-z0-9._~+/-]+=*$/;

/**
 * Creates clients for a server, without connecting yet.
 *
 * @param url scheme, host and port: "https://qsp.example:8443"
 * @throws TypeError for any other URL. Calls reject with ConnectError; if its cause is a TypeError, the token is
 *   malformed or would leave this machine unencrypted, and the call was not sent.
 */
export function createClients(url: string, options: ClientOptions = {}): Clients {
  const origin = readOrigin(url);
  const interceptors = options.token === undefined ? [] : [authorize(origin, options.token, options)];
  const { createTransport = createConnectTransport } = options;
  const transport = createTransport({ baseUrl: origin.origin, interceptors });
  const entries = Object.entries(services).map(([name, service]) => [name, createClient(service, transport)]);
  // Each name maps to the client of its service.
  return Object.fromEntries(entries) as Clients;
}

function readOrigin(url: string): URL {
  const found = URL.canParse(url) ? new URL(url) : undefined;
  const isPlain =
    found?.pathname === "/" && `${found.search}${found.hash}${found.username}${found.password}` === "";
  if (found === undefined || !isPlain || !["http:", "https:"].includes(found.protocol))
    throw new TypeError("url must be a scheme, a host and a port, such as https://qsp.example:8443");
  return found;
}

function authorize(
  { protocol, hostname, origin }: URL,
  token: NonNullable<ClientOptions["token"]>,
  { allowCleartext = false }: ClientOptions,
): Interceptor {
  const isPrivate = allowCleartext || protocol === "https:" || isLoopback(hostname);
  return (next) => async (request) => {
    const secret = typeof token === "string" ? token : await token();
    if (secret === "") return next(request);
    if (!isPrivate)
      throw new TypeError(
        `${origin} would receive the token unencrypted; use https, or set allowCleartext if you control the network`,
      );
    // Do not quote the token in the error: it may be a secret.
    if (!tokenPattern.test(secret)) throw new TypeError("token must be a bearer token on one line");
    request.header.set("authorization", `Bearer ${secret}`);
    return next(request);
  };
}
