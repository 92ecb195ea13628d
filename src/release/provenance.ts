/** The provenance of a package: an in-toto statement (v1) with SLSA's predicate (v1). */

/** What the statement says about one build. */
export interface ProvenanceInput {
  /** Name of the tarball. */
  readonly name: string;
  /** SHA-256 of the tarball, in hex. */
  readonly sha256: string;
  readonly version: string;
  /** Git commit that the tarball was built from, in hex. */
  readonly commit: string;
  readonly startedAt: Date;
  readonly finishedAt: Date;
}

/** Payload type of the envelope (DSSE), which names the kind of statement to verifiers. */
export const payloadType = "application/vnd.in-toto+json";

/** Renders the statement as JSON. */
export function renderProvenance(input: ProvenanceInput): string {
  const source = `pkg:npm/quantum-safe-playground@${input.version}`;
  const statement = {
    _type: "https://in-toto.io/Statement/v1",
    subject: [{ name: input.name, digest: { sha256: input.sha256 } }],
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: `${source}#src/release/release.ts`,
        externalParameters: { version: input.version },
        resolvedDependencies: [{ uri: source, digest: { gitCommit: input.commit } }],
      },
      runDetails: {
        // No build service vouches for the build, only the owner of the signing key.
        builder: { id: "pkg:generic/maintainer-machine" },
        metadata: {
          startedOn: input.startedAt.toISOString(),
          finishedOn: input.finishedAt.toISOString(),
        },
      },
    },
  };
  return `${JSON.stringify(statement, null, 2)}\n`;
}
