/** Google's Node client, @google-cloud/kms, over gRPC and REST. */
import { nodePrograms } from "./programs.ts";
import { testGoogleClient } from "./story.ts";

for (const program of nodePrograms) testGoogleClient(program);
