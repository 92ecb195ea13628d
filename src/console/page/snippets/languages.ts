/** The programs and languages in which the page writes calls, and what each needs before. */
import { writeCurl, writeGrpcurl } from "../commands.ts";
import type { SnippetCall, SnippetOptions } from "./call.ts";
import { writeGo } from "./go.ts";
import { writePython } from "./python.ts";
import { writeTypeScript } from "./typescript.ts";

export const languageNames = ["curl", "grpcurl", "Python", "Go", "TypeScript"] as const;
export type LanguageName = (typeof languageNames)[number];

interface Language {
  /** @returns undefined for a call that has no such form */
  readonly write: (call: SnippetCall, options: SnippetOptions) => string | undefined;
  /** Commands that install the client in an empty folder; empty for a program that needs nothing else. */
  readonly setUp: (origin: string) => readonly string[];
  /** The file to save the program in, and the command that runs it. */
  readonly file?: string;
  readonly run?: string;
  /** How the client gets the certificate of a private CA: a variable that names its file, or a flag. */
  readonly trust: string;
}

export const languages: Readonly<Record<LanguageName, Language>> = {
  curl: { write: writeCurl, setUp: () => [], trust: "--cacert" },
  grpcurl: { write: writeGrpcurl, setUp: () => [], trust: "-cacert" },
  Python: {
    write: writePython,
    setUp: (origin) => [
      ...fetchProtos(origin),
      "python3 -m venv .venv",
      ".venv/bin/pip install -q grpcio grpcio-tools grpcio-status",
      "mkdir stubs",
      ".venv/bin/python -m grpc_tools.protoc -I protos --python_out=stubs --grpc_python_out=stubs protos/*/*.proto protos/buf/validate/*.proto",
    ],
    file: "call.py",
    run: "PYTHONPATH=stubs .venv/bin/python call.py",
    trust: "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
  },
  Go: {
    write: writeGo,
    setUp: (origin) => [
      ...fetchProtos(origin),
      "go install google.golang.org/protobuf/cmd/protoc-gen-go@latest",
      "go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@latest",
      'export PATH="$(go env GOPATH)/bin:$PATH"',
      "go mod init quantumsafe",
      "protoc -I protos --go_out=. --go_opt=module=quantumsafe --go-grpc_out=. --go-grpc_opt=module=quantumsafe $(ls protos/*/*.proto | grep -v /validate/)",
    ],
    file: "main.go",
    run: "go mod tidy && go run .",
    trust: "SSL_CERT_FILE",
  },
  TypeScript: {
    write: writeTypeScript,
    setUp: () => [
      "# In a clone of Quantum-Safe Playground:",
      "npm pack",
      "# In your own folder, with the path of the file that it made:",
      "npm install ./quantum-safe-playground-0.1.0.tgz --omit=optional",
    ],
    file: "call.mjs",
    run: "node call.mjs",
    trust: "NODE_EXTRA_CA_CERTS",
  },
};

function fetchProtos(origin: string): readonly string[] {
  return ["mkdir protos", `curl -s ${origin}/protos.tar.gz | tar -xz -C protos`];
}
