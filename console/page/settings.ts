/** Server settings, which the server embeds in the page. */

function readMeta(name: string): string {
  // Step tests have no document.
  return globalThis.document?.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";
}

export const settings = {
  /** Whether calls need a token. */
  wantsToken: readMeta("qsp-auth") === "token",
  /** Full names of the running services, such as "pqc.PqcService", and "" for pages that need no service. */
  services: new Set(["", ...readMeta("qsp-services").split(" ")]),
};
