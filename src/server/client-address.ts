/** Finds the address that a call came from, also through proxies that the operator trusts. */
import { BlockList, isIP, isIPv6 } from "node:net";

/** Finds the address that a request comes from. */
export type ReadClient = (
  peer: string | undefined,
  forwardedFor: string | readonly string[] | undefined,
) => string;

/**
 * Creates the function that finds the address of a request. This is the peer, unless the peer is a trusted proxy.
 * Then it is the last address that the proxy names in X-Forwarded-For, and so on.
 *
 * @param trusted addresses, and networks as in 10.0.0.0/8.
 */
export function createReadClient(trusted: readonly string[]): ReadClient {
  const isTrusted = createAddressCheck(trusted);
  return (peer, forwardedFor) => {
    let client = plain(peer ?? "");
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

/** Creates the check whether an address is one of those, or in one of the networks. */
export function createAddressCheck(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const text of networks) {
    const [address = "", prefix] = text.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    list.addSubnet(address, Number(prefix ?? (family === "ipv6" ? 128 : 32)), family);
  }
  return (address) => isIP(address) !== 0 && list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

/** Converts an IPv4-mapped IPv6 address, as a dual-stack socket shows it, to the IPv4 address. */
export function plain(address: string): string {
  return address.startsWith(":") ? address.replace(/^::ffff:(?=\d+\.)/i, "") : address;
}
