/**
 * Returns whether a host is this machine, so that nobody else can read the traffic.
 *
 * @param hostname as in `URL.hostname`
 */
export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}
