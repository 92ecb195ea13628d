/** What this extension's examples need besides the examples before them. */
export const prepare = {
  // Entries are listed once a checkpoint covers them. Requesting a checkpoint creates one without waiting.
  "list-log-entries": (url: string) => fetch(`${url}/api/logs/audit/checkpoint`),
};
