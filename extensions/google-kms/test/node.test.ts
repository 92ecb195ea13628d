/** Google's own client for Node, @google-cloud/kms, over gRPC and over REST. */
import { testGoogleKeys } from "./google-keys-story.ts";
import { nodePrograms } from "./google-programs.ts";
import { testGoogleCalls } from "./google-story.ts";

for (const program of nodePrograms) {
  testGoogleCalls(program);
  testGoogleKeys(program);
}
