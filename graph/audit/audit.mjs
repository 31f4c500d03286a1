// Prints the audits of GraphQL over HTTP that the server at a URL does not pass, and how many it was asked.
import { auditServer } from "graphql-http";

const results = await auditServer({ url: process.argv[2] });
const failed = results.filter(({ status }) => status !== "ok");
for (const { id, name, status, reason } of failed) {
  console.log(`${status} ${id} ${name}: ${reason}`);
}
console.log(`${results.length - failed.length} of ${results.length}`);
