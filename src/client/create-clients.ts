/** Clients of all services of one server, for Node and browsers. */
import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { isLoopback } from "./loopback.ts";
import { type Services, services } from "./services.ts";

/** A client for each service: `clients.kms.sign({ … })`. */
export type Clients = { readonly [Name in keyof Services]: Client<Services[Name]> };

/** The options of a transport. */
export interface TransportInput {
  readonly baseUrl: string;
  readonly interceptors: Interceptor[];
}

/** How the clients call. */
export interface ClientOptions {
  /** The bearer token of each call; a function is asked before each call, and may return "" for none. */
  readonly token?: string | (() => string | Promise<string>);
  /** Sends the token over http to a machine that is not this one. Only for networks that you control. */
  readonly allowCleartext?: boolean;
  /**
   * Creates the transport, such as `createGrpcTransport` of @connectrpc/connect-node. By default the clients speak the
   * Connect protocol over `fetch`, which every browser and Node have; `fetch` cannot send a stream of messages.
   */
  readonly createTransport?: (input: TransportInput) => Transport;
}

/** The characters of a bearer token (RFC 6750, section 2.1). */
const tokenPattern = /^[A-Za-z0-9._~+/-]+=*$/;

/**
 * Creates clients for a server. Sends nothing yet.
 *
 * @param url scheme, host and port: "https://qsp.example:8443"
 * @throws TypeError for another URL. A call rejects with ConnectError. Its cause is a TypeError if the token is
 *   malformed, or would leave this machine unencrypted; the call was not sent then.
 */
export function createClients(url: string, options: ClientOptions = {}): Clients {
  const origin = readOrigin(url);
  const interceptors = options.token === undefined ? [] : [authorize(origin, options.token, options)];
  const { createTransport = createConnectTransport } = options;
  const transport = createTransport({ baseUrl: origin.origin, interceptors });
  const entries = Object.entries(services).map(([name, service]) => [name, createClient(service, transport)]);
  // Each name has the client of its service.
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
    // The text itself stays out of the error, because it may be a secret.
    if (!tokenPattern.test(secret)) throw new TypeError("token must be a bearer token on one line");
    request.header.set("authorization", `Bearer ${secret}`);
    return next(request);
  };
}
