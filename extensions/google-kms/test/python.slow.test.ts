/** Google's Python client, google-cloud-kms, over gRPC and REST. */
import { pythonProgram } from "./programs.ts";
import { testGoogleClient } from "./story.ts";

testGoogleClient(pythonProgram);
