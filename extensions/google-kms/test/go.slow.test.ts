/** Google's Go client, cloud.google.com/go/kms, over gRPC and REST. */
import { goProgram } from "./programs.ts";
import { testGoogleClient } from "./story.ts";

testGoogleClient(goProgram);
