/** Google's Node client, @google-cloud/kms, over gRPC and REST. */
import { testGoogleKeys } from "./keys-story.ts";
import { nodePrograms } from "./programs.ts";
import { testGoogleCalls } from "./story.ts";

for (const program of nodePrograms) {
  testGoogleCalls(program);
  testGoogleKeys(program);
}
