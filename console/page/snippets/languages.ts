/** The tools and languages for which the pages generate snippets. */
import { writeCurl } from "./curl.ts";
import { writeGo } from "./go.ts";
import { writeGrpcurl } from "./grpcurl.ts";
import type { SnippetInput } from "./input.ts";
import { writePython } from "./python.ts";
import { writeTypeScript } from "./typescript.ts";

/** In tab order. */
export const languageNames = ["curl", "grpcurl", "Python", "Go", "TypeScript"] as const;
export type LanguageName = (typeof languageNames)[number];

interface Language {
  readonly write: (input: SnippetInput) => string;
  /** How the client gets a private CA's certificate: a variable with its file name, or a flag. */
  readonly trust: string;
  /** The program's file name and the command that runs it. */
  readonly file?: string;
  readonly run?: string;
}

export const languages: Readonly<Record<LanguageName, Language>> = {
  curl: { write: writeCurl, trust: "--cacert" },
  grpcurl: { write: writeGrpcurl, trust: "-cacert" },
  Python: {
    write: writePython,
    trust: "REQUESTS_CA_BUNDLE",
    file: "call.py",
    run: "python3 -m pip install requests && python3 call.py",
  },
  Go: { write: writeGo, trust: "SSL_CERT_FILE", file: "main.go", run: "go run main.go" },
  TypeScript: {
    write: writeTypeScript,
    trust: "NODE_EXTRA_CA_CERTS",
    file: "call.mjs",
    run: "node call.mjs",
  },
};
