/** Tells whether a host is this machine, to which nobody else can listen. @param hostname as URL has it */
export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}
