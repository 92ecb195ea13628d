/** Finds the client address of a request, including behind proxies that the operator trusts. */
import { BlockList, isIP, isIPv6 } from "node:net";
import type { Exchange } from "./exchange.ts";

/** Returns the client address of a request. */
export type ReadClient = (request: Pick<Exchange, "peer" | "headers">) => string;

/**
 * Creates the function that finds the client address of a request. This is the peer, unless the peer is a
 * trusted proxy: then it is the last address in X-Forwarded-For, and so on from right to left.
 *
 * @param trusted addresses, and networks such as 10.0.0.0/8
 */
export function createReadClient(trusted: readonly string[]): ReadClient {
  const isTrusted = createAddressCheck(trusted);
  return ({ peer = "", headers }) => {
    const forwardedFor = headers["x-forwarded-for"];
    let client = plain(peer);
    if (forwardedFor === undefined || !isTrusted(client)) return client || "unknown";
    const hops = String(forwardedFor)
      .split(",")
      .map((hop) => plain(hop.trim()));
    for (let hop = hops.pop(); hop !== undefined && isIP(hop) !== 0; hop = hops.pop()) {
      client = hop;
      if (!isTrusted(client)) break;
    }
    return client;
  };
}

/** Creates the check whether an address is listed or belongs to a listed network. */
export function createAddressCheck(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const text of networks) {
    const [address = "", prefix] = text.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    list.addSubnet(address, Number(prefix ?? (family === "ipv6" ? 128 : 32)), family);
  }
  return (address) => isIP(address) !== 0 && list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

/** Converts an IPv4-mapped IPv6 address, as a dual-stack socket reports it, to IPv4. */
export function plain(address: string): string {
  return address.startsWith(":") ? address.replace(/^::ffff:(?=\d+\.)/i, "") : address;
}
