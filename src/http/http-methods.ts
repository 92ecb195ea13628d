/** The HTTP methods that this server takes. */
import http from "node:http";

/** Tells whether a method is registered. This server is not a proxy, so it does not take CONNECT. */
export function isKnownMethod(method: string): boolean {
  return http.METHODS.includes(method) && method !== "CONNECT";
}
