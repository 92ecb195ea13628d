/** Which address a call came from, also through proxies that the operator trusts. */
import { BlockList, isIP, isIPv6 } from "node:net";
import { createContextKey, type HandlerContext } from "@connectrpc/connect";

/** Where handlers and interceptors find the address that a call came from. */
export const clientKey = createContextKey("unknown", { description: "client address" });

/** Tells which address a call came from. */
export function clientOf({ values }: Pick<HandlerContext, "values">): string {
  return values.get(clientKey);
}

/**
 * Names whose calls an address's are to be counted with: whoever has an IPv6 address has its whole /64, and counts as
 * one, however the address is written.
 */
export function networkOf(address: string): string {
  return networksOf(address)[0] ?? address;
}

/** Bits of an IPv6 prefix that one customer may have: of one network, and of a site as providers delegate it (RFC 6177). */
const ipv6Prefixes = [64, 56, 48];

/** Names the networks of an address, the smallest first: /64, /56 and /48 of IPv6; an IPv4 address alone. */
export function networksOf(address: string): readonly string[] {
  if (!isIPv6(address)) return [address];
  const [before = [], after = []] = address
    .split("::")
    .map((groups) => groups.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill("0");
  const groups = [...before, ...zeros, ...after].slice(0, 4).map((group) => Number.parseInt(group, 16));
  return ipv6Prefixes.map((bits) => {
    const masked = groups.slice(0, Math.ceil(bits / 16)).map((group, i) => {
      const kept = Math.min(16, bits - i * 16);
      return (group & (0xffff << (16 - kept)) & 0xffff).toString(16);
    });
    return `${masked.join(":")}::/${bits}`;
  });
}

/** Tells where a request comes from. */
export type ReadClient = (
  peer: string | undefined,
  forwardedFor: string | readonly string[] | undefined,
) => string;

/**
 * Makes the function that tells where a request comes from: its peer, unless that is a proxy that is trusted; then
 * whom the proxy names last in X-Forwarded-For, and so on.
 *
 * @param trusted addresses, and networks as in 10.0.0.0/8.
 */
export function createReadClient(trusted: readonly string[]): ReadClient {
  const proxies = new BlockList();
  for (const text of trusted) {
    const [address = "", prefix] = text.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    proxies.addSubnet(address, Number(prefix ?? (family === "ipv6" ? 128 : 32)), family);
  }
  const isTrusted = (address: string): boolean =>
    isIP(address) !== 0 && proxies.check(address, isIPv6(address) ? "ipv6" : "ipv4");
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

/** An IPv4 address as a socket for both versions shows it is the same address. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}
