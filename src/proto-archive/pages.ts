/** Serves the protos, so that clients in any language can generate stubs from a running server. */
import type { DescFile } from "@bufbuild/protobuf";
import type { FastifyInstance } from "fastify";
import { prepareCompressed, prepareContent, serveContent } from "../http/static-content.ts";
import { listSources, serializeDescriptors } from "./sources.ts";
import { packTarGz } from "./tar.ts";

/** The files that the pages serve. */
interface Served {
  /** Every file that reflection describes, imports first. */
  readonly files: readonly DescFile[];
}

/**
 * Adds GET /protos.binpb, one FileDescriptorSet with all imports, and GET /protos.tar.gz, the sources under
 * their import paths. The first request creates them.
 */
export async function protoPages(app: FastifyInstance, { files }: Served): Promise<void> {
  serveContent(
    app,
    "/protos.binpb",
    async () => prepareContent("application/x-protobuf", serializeDescriptors(files)),
    asDownload("protos.binpb"),
  );
  serveContent(
    app,
    "/protos.tar.gz",
    // RFC 6713, section 3.
    async () => prepareCompressed("application/gzip", packTarGz(await listSources(files))),
    asDownload("protos.tar.gz"),
  );
}

function asDownload(name: string): Record<string, string> {
  return { "content-disposition": `attachment; filename="${name}"` };
}
