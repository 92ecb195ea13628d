/** A call as a command or a program, in each language. */
import { writeCurl } from "./curl.ts";
import { writeGo } from "./go.ts";
import { writeGrpcurl } from "./grpcurl.ts";
import type { SnippetInput } from "./input.ts";
import { writePython } from "./python.ts";
import { writeTypeScript } from "./typescript.ts";

/** In the order of their tabs. */
export const languageNames = ["curl", "gRPC", "Python", "Go", "TypeScript"] as const;

export type Language = (typeof languageNames)[number];

export const languages: Readonly<Record<Language, (input: SnippetInput) => string>> = {
  curl: writeCurl,
  gRPC: writeGrpcurl,
  Python: writePython,
  Go: writeGo,
  TypeScript: writeTypeScript,
};
