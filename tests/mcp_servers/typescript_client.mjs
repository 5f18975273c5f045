// Calls tools of an MCP server with the official client for TypeScript, and prints what it makes of each answer.
//
//   node typescript_client.mjs NODE_MODULES CALLS COMMAND [ARGUMENT…]
//
// CALLS: JSON, a list of [tool, arguments]. Printed as a line of JSON: the tools, and for each call what came back.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, calls, command, ...args] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${modules}/`));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command, args, stderr: "inherit" }));
const { tools } = await client.listTools();
const answers = [];
for (const [name, given] of JSON.parse(calls)) {
  try {
    answers.push(await client.callTool({ name, arguments: given }));
  } catch (error) {
    answers.push({ refused: `${error.code}: ${error.message}` });
  }
}
console.log(JSON.stringify({ tools, answers }));
await client.close();
