import { hash } from "node:crypto";
import canonicalize from "canonicalize";

export interface Metadata {
  readonly name: string;
  readonly description: string;
  readonly artworkUri: string;
}

/** SHA-256 over the RFC 8785 canonical JSON of the metadata; 64 lower-case hexadecimal digits. */
export function hashMetadata({ name, description, artworkUri }: Metadata): string {
  return hash("sha256", canonicalize({ artworkUri, description, name }) ?? "", "hex");
}
