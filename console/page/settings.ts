/** The server's settings, which it wrote into the page. */

function readMeta(name: string): string {
  // Tests of steps have no document.
  return globalThis.document?.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";
}

export const settings = {
  /** Whether calls need a token. */
  wantsToken: readMeta("qsp-auth") === "token",
  /** Full names of the services that run: "pqc.PqcService"; and the empty name, for pages that need no certain one. */
  services: new Set(["", ...readMeta("qsp-services").split(" ")]),
};
