/** Groups addresses into networks, for counting. */
import { isIPv6 } from "node:net";
import { LRUCache } from "lru-cache";

/**
 * Names the network that calls from an address are counted for. An IPv6 client has a whole /64, which counts
 * as one, regardless of how the address is spelled.
 */
export function findNetwork(address: string): string {
  return listNetworks(address)[0] ?? address;
}

/**
 * Cached networks of recent IPv6 addresses: computing them takes longer than all other work on an address.
 */
const known = new LRUCache<string, readonly string[]>({ max: 10_000 });

/**
 * IPv6 prefix lengths that one customer may have: a network, or a site as delegated by providers (RFC 6177).
 */
const ipv6Prefixes = [64, 56, 48];

/**
 * Names the networks of an address, smallest first: /64, /56 and /48 for IPv6; for IPv4 only the address
 * itself.
 */
export function listNetworks(address: string): readonly string[] {
  if (!address.includes(":")) return [address];
  const found = known.get(address) ?? computeNetworks(address);
  known.set(address, found);
  return found;
}

function computeNetworks(address: string): readonly string[] {
  if (!isIPv6(address)) return [address];
  const [before = [], after = []] = address
    .split("::")
    .map((groups) => groups.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill("0");
  const groups = [...before, ...zeros, ...after].slice(0, 4).map((group) => Number.parseInt(group, 16));
  return ipv6Prefixes.map((bits) => {
    const masked = groups.slice(0, Math.ceil(bits / 16)).map((group, i) => {
      const keptBits = Math.min(16, bits - i * 16);
      return (group & (0xffff << (16 - keptBits)) & 0xffff).toString(16);
    });
    return `${masked.join(":")}::/${bits}`;
  });
}
