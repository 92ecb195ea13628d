import http from "node:http";

/** Returns whether a method is registered. CONNECT is excluded, because this server is not a proxy. */
export function isKnownMethod(method: string): boolean {
  return http.METHODS.includes(method) && method !== "CONNECT";
}
