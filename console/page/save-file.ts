/** Saves a JSON document as a file on the visitor's machine. */
export function saveFile(name: string, json: BlobPart): void {
  const url = URL.createObjectURL(new Blob([json], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}
