// The client that the conformance tests start with the address of their server: fermata mcp-server, whose
// demo model calls the tool of the scenario. What the server asks is accepted with an empty answer.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const calls = {
  initialize: 'talk 1',
  tools_call: 'call: x__add_numbers {"a":1,"b":2}',
  'sse-retry': 'call: x__test_reconnection {}',
  'elicitation-sep1034-client-defaults': 'call: x__test_client_elicitation_defaults {}',
};
const prompt = calls[process.env.MCP_CONFORMANCE_SCENARIO];
const client = new Client({ name: 'conformance', version: '1' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: {} }));
await client.connect(new StdioClientTransport({
  command: process.env.FERMATA_BIN,
  args: ['mcp-server', '--demo', '-c', `mcp_servers.x.url="${process.argv[2]}"`, '-c', 'mcp_servers.x.approval="allow"', '-c', 'mcp_servers.x.startup_timeout_sec=600'],
  env: process.env,
}));
const result = await client.callTool({ name: 'codex', arguments: { prompt } }, undefined, { timeout: 600_000 });
console.log(JSON.stringify(result.content));
await client.close();
