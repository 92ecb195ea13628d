/** What the server wrote into the page about itself. */

function readMeta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";
}

export const settings = {
  /** Whether calls want a token. */
  wantsToken: readMeta("qsp-auth") === "token",
  /** Full names of the services that run: "pqc.PqcService". */
  services: new Set(readMeta("qsp-services").split(" ")),
};
